// What a run tells, its configuration, and the phase that it is in.

import { h } from "../dom.js";
import { nothing, aged, phaseName, prose, row, table } from "../parts.js";
import { markIcon } from "../marks.js";
import { UNKNOWN, plain } from "../format.js";
import { batchesOf } from "../run-batches.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Run} Run */
/** @typedef {import("../wire.js").Coverage} Coverage */

/** Each signal with its source, or with what is missing and how to switch it on. @param {Words} words @param {Coverage[]} coverage */
export function coverageTable(words, coverage) {
  if (coverage.length === 0) return nothing(words.t("coverage.none"));
  const names = ["signal", "source", "seen", "count", "problem"];
  const rows = coverage.map((one) => {
    const seen = one.last_seen_at === null ? UNKNOWN : aged(words, "age.ago", one.last_seen_at);
    const mark = markIcon(one.problem === null ? "ok" : one.source === null ? "stale" : "watch");
    return row(
      [
        h("span", { class: "name" }, mark, words.t(`coverage.signal.${one.signal}`)),
        one.source ?? UNKNOWN,
        seen,
        one.count === 0 ? UNKNOWN : words.integer.format(one.count),
        problemOf(words, one),
      ],
      [3],
    );
  });
  const heads = names.map((name) => words.t(`coverage.${name}`));
  return h("div", { class: "coverage" }, table(heads, [3], h("tbody", {}, ...rows)));
}

/** @param {Words} words @param {Coverage} coverage */
function problemOf(words, { problem, texts }) {
  if (problem === null) return "";
  return prose(words, words.said(texts, problem));
}

/** The settings that memory depends on, as the trainer printed them. @param {Words} words @param {Run["config"]} config */
export function configTable(words, config) {
  const names = Object.keys(config).sort();
  if (names.length === 0) return nothing(words.t("config.none"));
  const rows = names.map((name) => row([h("code", {}, name), valueOf(config[name])], [1]));
  const heads = [words.t("config.key"), words.t("config.value")];
  return h("div", { class: "config" }, table(heads, [1], h("tbody", {}, ...rows)));
}

/** What the settings come to, for one step and one GPU. @param {Words} words @param {Run["config"]} config */
export function batchTable(words, config) {
  if (Object.keys(config).length === 0) return null;
  const rows = batchesOf(config).map(({ name, value, broken, ...from }) =>
    row(
      [
        h("span", {}, words.t(`run.batch_${name}`)),
        value === null ? h("span", { class: "muted" }, words.t("run.unknown_number")) : plain(words, value),
        h("span", { class: "muted" }, ...reasons(words, from)),
        broken === null ? null : h("span", { class: "broken" }, markIcon("warning"), words.t(`run.broken_${broken}`)),
      ],
      [1],
    ),
  );
  const heads = [words.t("run.batch_what"), words.t("config.value"), words.t("run.batch_how"), words.t("run.batch_problem")];
  return h("div", { class: "batches" }, table(heads, [1], h("tbody", {}, ...rows)));
}

/**
 * What a number comes from, what was assumed for it, and what it lacks.
 * @param {Words} words @param {Pick<import("../run-batches.js").Derived, "how" | "missing" | "together" | "assumed">} from
 */
function reasons(words, { how, missing, together, assumed }) {
  const lists = /** @type {[string, string[]][]} */ ([
    ["run.batch_missing", missing],
    ["run.batch_global", together],
    ["run.batch_assumed", assumed],
  ]);
  const told = lists.filter(([, keys]) => keys.length > 0);
  return [how, ...told.flatMap(([key, keys]) => [` ${words.t(key)} `, ...keys.map(code)])];
}

/** @param {string} key */
const code = (key) => h("code", {}, key);

/** As trainers write it. @param {string | number | boolean} value */
export const valueOf = (value) => (typeof value === "boolean" ? (value ? "True" : "False") : String(value));

/** The phase that a mark told, else the last one that a step line told of. @param {Words} words @param {Run} run @returns {HTMLElement | null} null: none is known */
export function currentPhase(words, run) {
  const last = run.phases.at(-1);
  if (last === undefined) return null;
  const name = phaseName(words, last.phase);
  if (last.end_at === null) return h("span", {}, h("b", {}, name), " ", aged(words, "phases.since", last.start_at));
  return h("span", { class: "muted" }, `${words.t("phases.last", { phase: name })} `, aged(words, "phases.ended", last.end_at));
}
