// One node: its state, host memory, GPUs, the largest host processes and its sensors.

import { fill, h } from "../dom.js";
import { duration, gib, gibOf, percent, wholePercent } from "../format.js";
import { gpuData, gpuRatio, hostUse, indexAlerts, nodeData, runOfGpu, runsByNode } from "../judge.js";
import { markIcon } from "../marks.js";
import { aged, alertLines, crumbs, facts, nothing, row, runLinks, section, sensors, table } from "../parts.js";
import { link } from "../router.js";
import { gpuKey } from "../store.js";
import { stateText } from "./nodes-table.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */

/** @type {import("../main.js").MakeView} */
export function nodeView(root, app, route) {
  const name = route.args[0] ?? "";
  const body = h("div", { class: "columns" });
  root.append(h("div", { class: "detail-page" }, crumbs([[app.words.t("nav.fleet"), link("fleet")]], name), body));
  const update = () => {
    const view = app.store.nodes.get(name);
    if (view === undefined)
      fill(
        body,
        nothing(
          app.words.t(app.store.connection.phase === "connecting" ? "state.connecting" : "node.unknown", {
            node: name,
          }),
        ),
      );
    else fill(body, ...columns(app, view));
  };
  update();
  return { update, close: () => undefined };
}

/** @param {App} app @param {NodeView} view */
function columns(app, view) {
  const { words, store } = app;
  const { facts: known } = view.info;
  const alerts = [...store.alerts.values()].filter((alert) => alert.labels.node === view.info.node);
  return [
    h(
      "div",
      { class: "wide" },
      section(words.t("nodes.gpus"), gpuTable(app, view)),
      section(words.t("host.processes"), hostProcesses(app, view)),
    ),
    h(
      "div",
      { class: "narrow" },
      section(words.t("nav.alerts"), alertLines(words, alerts)),
      section(words.t("node.title"), nodeFacts(app, view)),
      section(words.t("sensors.title"), sensors(words, known.sources)),
    ),
  ];
}

/** @param {App} app @param {NodeView} view */
function gpuTable(app, view) {
  const { words, store } = app;
  if (view.gpus.length === 0) return nothing(words.t("node.no_gpus"));
  const levels = indexAlerts(store.alerts.values()).gpus;
  const runs = runsByNode(store);
  const ofNode = nodeData(view, store.now());
  const rows = view.gpus.map((gpu) => {
    const data = gpuData(gpu, ofNode);
    const level = levels.get(gpuKey(gpu.node, gpu.facts.gpu)) ?? null;
    const mark = level === null ? null : markIcon(level, words.t(`mark.${level}`));
    const name = h(
      "span",
      { class: "name" },
      mark,
      h("a", { href: link("gpu", [gpu.node, gpu.facts.gpu]) }, words.t("name.gpu", { gpu: gpu.facts.gpu })),
    );
    const used =
      data === "ok"
        ? `${gibOf(words, gpu.usedBytes, gpu.usableBytes)}\u2002${percent(words, gpuRatio(gpu))}`
        : words.t(data === "lost" ? "gpu.lost" : "gpu.no_data");
    const run = runOfGpu(gpu, runs);
    const utilization = data === "ok" ? wholePercent(words, gpu.utilizationRatio) : "–";
    return row([name, gpu.facts.name, run === null ? "" : runLinks([run]), used, utilization], [3, 4]);
  });
  const heads = [
    words.t("name.gpu_column"),
    words.t("gpu.model"),
    words.t("nodes.run"),
    words.t("gpu.used"),
    words.t("gpu.utilization"),
  ];
  return table(heads, [3, 4], h("tbody", {}, ...rows));
}

/** @param {App} app @param {NodeView} view */
function hostProcesses(app, view) {
  const { words } = app;
  const processes = view.info.sample?.host?.processes ?? null;
  if (processes === null) return nothing(words.t("processes.unknown"));
  const rows = processes.map((process) =>
    row([String(process.pid), process.name, process.run ?? "", gib(words, process.rss_bytes)], [0, 3]),
  );
  const heads = [
    words.t("processes.pid"),
    words.t("processes.name"),
    words.t("processes.run"),
    words.t("processes.rss"),
  ];
  return table(heads, [0, 3], h("tbody", {}, ...rows));
}

/** @param {App} app @param {NodeView} view */
function nodeFacts(app, view) {
  const { words, store } = app;
  const { info } = view;
  const { host } = info.facts;
  const use = nodeData(view, store.now()) === "ok" ? hostUse(view) : null;
  const limit = host?.memory_limit_bytes ?? null;
  const runs = runsByNode(store).get(info.node) ?? [];
  const skewed = Math.abs(info.skew_seconds) >= 2;
  return facts([
    [words.t("nodes.state"), stateText(words, view, store.now())],
    [words.t("node.seen"), aged(words, "age.ago", view.heardAt)],
    [words.t("nodes.run"), runs.length === 0 ? null : runLinks(runs)],
    [
      words.t("host.memory"),
      use === null ? "–" : `${gibOf(words, use.used, use.whole)}\u2002${percent(words, use.ratio)}`,
    ],
    [
      words.t("host.limit"),
      limit === null
        ? null
        : `${gib(words, limit)}${host?.memory_limit_source ? ` (${host.memory_limit_source})` : ""}`,
    ],
    [words.t("host.cpus"), host?.cpu_count == null ? null : String(host.cpu_count)],
    [words.t("host.kernel"), host?.kernel ?? null],
    [words.t("node.interval"), duration(words, info.interval_seconds)],
    [words.t("node.agent"), info.agent_version],
    [words.t("node.skew"), skewed ? duration(words, Math.abs(info.skew_seconds)) : null],
  ]);
}
