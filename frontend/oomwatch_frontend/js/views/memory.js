// Who holds the memory: processes, what each probe says of torch's allocator, and the rollout engines.

import { h } from "../dom.js";
import { UNKNOWN, gib, percent } from "../format.js";
import { aged, nothing, row, runLinks, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../dom.js").Child} Child */

/** @param {Words} words @param {number | null} count */
const countOf = (words, count) => (count === null ? UNKNOWN : words.integer.format(count));

/** @param {string | null} run */
const runOf = (run) => (run === null ? "" : runLinks([run]));

/**
 * The processes on a GPU. None is told apart from not read.
 * @param {Words} words @param {import("../wire.js").GpuProcess[] | null} processes @param {number | null} at @returns {Child[]}
 */
export function gpuProcesses(words, processes, at) {
  if (processes === null) return [nothing(words.t("processes.unknown"))];
  if (processes.length === 0) return [nothing(words.t("processes.none"))];
  const heads = ["pid", "name", "run", "rank", "role", "memory"].map((name) => words.t(`processes.${name}`));
  const sorted = [...processes].sort((a, b) => (b.used_bytes ?? 0) - (a.used_bytes ?? 0));
  const rows = sorted.map(({ pid, name, run, rank, role, used_bytes: used }) =>
    row(
      [String(pid), name ?? UNKNOWN, runOf(run), countOf(words, rank), role ?? UNKNOWN, gib(words, used)],
      [0, 3, 5],
      String(pid),
    ),
  );
  const read = at === null ? null : h("p", { class: "hint" }, aged(words, "processes.read", at));
  return [table(words, heads, [0, 3, 5], h("tbody", {}, ...rows)), read];
}

/**
 * The largest processes in a host's memory, as shares of the limit that counts, and the rest of what is in use.
 * @param {Words} words @param {import("../wire.js").HostProcess[] | null} processes @param {import("../judge.js").HostUse | null} use
 */
export function hostProcesses(words, processes, use) {
  if (processes === null) return nothing(words.t("processes.unknown"));
  if (processes.length === 0) return nothing(words.t("processes.none_host"));
  const heads = ["pid", "name", "run", "rss"].map((name) => words.t(`processes.${name}`));
  heads.push(words.t(use?.contained ? "host.share_of_limit" : "host.share_of_machine"));
  const share = (/** @type {number} */ bytes) => (use === null ? UNKNOWN : percent(words, bytes / use.whole));
  const sorted = [...processes].sort((a, b) => b.rss_bytes - a.rss_bytes);
  const rows = sorted.map(({ pid, name, run, rss_bytes: rss }) =>
    row([String(pid), name, runOf(run), gib(words, rss), share(rss)], [0, 3, 4], String(pid)),
  );
  const rest = use === null ? 0 : use.used - sorted.reduce((sum, { rss_bytes: rss }) => sum + rss, 0);
  if (rest > 0) rows.push(row(["", words.t("host.rest"), "", gib(words, rest), share(rest)], [0, 3, 4]));
  return table(words, heads, [0, 3, 4], h("tbody", {}, ...rows));
}

/** What torch's allocator says in each process that has the probe. @param {Words} words @param {import("../wire.js").TorchSample[]} probes of one GPU */
export function probeTable(words, probes) {
  if (probes.length === 0) return nothing(words.t("probe.none"));
  const names = ["rank", "role", "pid", "reserved", "allocated", "split", "retries", "ooms"];
  const numeric = [0, 2, 3, 4, 5, 6, 7];
  const sorted = [...probes].sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity) || a.pid - b.pid);
  const rows = sorted.map((probe) =>
    row(
      [
        countOf(words, probe.rank),
        probe.role ?? UNKNOWN,
        String(probe.pid),
        gib(words, probe.reserved_bytes),
        gib(words, probe.allocated_bytes),
        gib(words, probe.inactive_split_bytes),
        countOf(words, probe.alloc_retries_total),
        countOf(words, probe.ooms_total),
      ],
      numeric,
    ),
  );
  const heads = names.map((name) => words.t(`probe.${name}`));
  return table(words, heads, numeric, h("tbody", {}, ...rows));
}

/** The rollout engines of a node. @param {Words} words @param {import("../wire.js").EngineSample[]} engines */
export function engineTable(words, engines) {
  if (engines.length === 0) return nothing(words.t("engine.none"));
  const names = ["name", "address", "run", "kv", "running", "waiting", "preemptions"];
  const numeric = [3, 4, 5, 6];
  const rows = engines.map((engine) =>
    row(
      [
        engine.model === null ? engine.engine : words.t("text.noted", { text: engine.engine, note: engine.model }),
        engine.address,
        runOf(engine.run),
        percent(words, engine.kv_used_ratio),
        countOf(words, engine.requests_running),
        countOf(words, engine.requests_waiting),
        countOf(words, engine.preemptions_total),
      ],
      numeric,
    ),
  );
  const heads = names.map((name) => words.t(`engine.${name}`));
  return table(words, heads, numeric, h("tbody", {}, ...rows));
}
