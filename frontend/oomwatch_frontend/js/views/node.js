// One node: its state, host memory, GPUs, the largest host processes, rollout engines and its sources.

import { h, setText } from "../dom.js";
import { absent } from "../elements/absent.js";
import { Detail } from "../elements/detail.js";
import { TimeBar } from "../elements/time-bar.js";
import { UNKNOWN, duration, gib, gibOf, percent, wholePercent } from "../format.js";
import { gpuData, gpuRatio, hostUse, indexAlerts, nodeData, runsByNode } from "../judge.js";
import { markIcon } from "../marks.js";
import { watchNode } from "../nodewatch.js";
import { aged, alertLines, crumbs, facts, nothing, row, runLinks, section, sourceList, table } from "../parts.js";
import { patch } from "../patch.js";
import { link } from "../router.js";
import { gpuKey } from "../store.js";
import { engineTable, hostProcesses } from "./memory.js";
import { HostChart } from "./node-chart.js";
import { stateText } from "./nodes-table.js";
import { Sparks } from "./sparks.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */

/** @type {import("../main.js").MakeView} */
export const nodeView = (root, app, route) => new NodePage(root, app, route);

class NodePage {
  /** @param {HTMLElement} root @param {App} app @param {import("../router.js").Route} route */
  constructor(root, app, route) {
    const [name = ""] = route.args;
    this.app = app;
    this.name = name;
    const { words } = app;
    const part = () => h("div");
    this.parts = { gpus: part(), processes: part(), engines: part(), alerts: part(), facts: part(), sources: part() };
    this.note = h("p", { class: "note", role: "status" });
    this.unknown = h("div");
    this.bar = new TimeBar(app, route, (range) => this.#look(range));
    const say = (/** @type {string} */ key, /** @type {string} */ reason) =>
      setText(this.note, key === "" ? "" : words.t(key, { reason }));
    this.chart = new HostChart(app, name, this.bar, say);
    this.detail = new Detail(words);
    this.sparks = new Sparks(app, name, this.bar.range, () => this.#drawGpus());
    this.columns = h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "wide" },
        this.bar.element,
        section(words.t("nodes.gpus"), this.parts.gpus),
        section(words.t("host.memory"), this.note, this.chart.element),
        ...this.detail.around(
          section(words.t("host.processes"), this.parts.processes),
          section(words.t("engine.title"), this.parts.engines),
        ),
      ),
      h(
        "div",
        { class: "narrow" },
        section(words.t("nav.alerts"), this.parts.alerts),
        section(words.t("node.title"), this.parts.facts),
        section(words.t("sources.title"), this.parts.sources),
      ),
    );
    const way = crumbs([[words.t("nav.fleet"), link("fleet")]], name);
    root.append(h("div", { class: "detail-page" }, way, this.unknown, this.columns));
    this.stopWatching = watchNode(app.store, name);
    this.update(new Set());
    void this.chart.load();
  }

  /** @param {import("../timerange.js").Range} range */
  #look(range) {
    this.sparks.look(range);
    void this.chart.look(range);
    this.#drawGpus();
  }

  #drawGpus() {
    const view = this.app.store.nodes.get(this.name);
    if (view !== undefined) patch(this.parts.gpus, gpuTable(this.app, view, this.sparks));
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { store, words } = this.app;
    const view = store.nodes.get(this.name);
    this.columns.hidden = view === undefined;
    this.unknown.hidden = view !== undefined;
    if (view === undefined) {
      const ways = /** @type {[string, string][]} */ ([[words.t("nav.fleet"), link("fleet")]]);
      const isWaiting = store.connection.phase === "connecting";
      const said = absent(words.t("node.unknown", { node: this.name }), words.t("node.unknown_next"), ways);
      patch(this.unknown, isWaiting ? nothing(words.t("state.connecting")) : said);
      return;
    }
    const { facts: known, sample } = view.info;
    const ticked = topics.has("tick") && store.ticked.includes(this.name);
    this.sparks.take(view, ticked);
    const alerts = [...store.alerts.values()].filter((alert) => alert.labels.node === this.name);
    this.#drawGpus();
    this.detail.draw(view.isDetailed);
    if (view.isDetailed) {
      patch(this.parts.processes, hostProcesses(words, sample?.host?.processes ?? null, hostUse(view)));
      patch(this.parts.engines, engineTable(words, sample?.engines ?? []));
    }
    patch(this.parts.alerts, alertLines(words, alerts));
    patch(this.parts.facts, nodeFacts(this.app, view));
    patch(this.parts.sources, sourceList(words, known.sources));
    this.chart.take(view, ticked);
  }

  close() {
    this.stopWatching();
    this.sparks.close();
    this.chart.close();
  }
}

/** @param {App} app @param {NodeView} view @param {Sparks} sparks */
function gpuTable(app, view, sparks) {
  const { words, store } = app;
  if (view.gpus.length === 0) return nothing(words.t("node.no_gpus"));
  const levels = indexAlerts(store.alerts.values()).gpus;
  const ofNode = nodeData(view, store.now());
  const rows = view.gpus.map((gpu) => {
    const data = gpuData(gpu, ofNode);
    const level = levels.get(gpuKey(gpu.node, gpu.facts.gpu)) ?? null;
    const mark = level === null ? null : markIcon(level, words.t(`mark.${level}`));
    const name = h(
      "span",
      { class: "name" },
      mark,
      h("a", { href: link("gpu", [gpu.node, gpu.facts.gpu]), "data-focus": `gpu-${gpu.facts.gpu}` }, words.t("name.gpu", { gpu: gpu.facts.gpu })),
    );
    const used =
      data === "ok"
        ? `${gibOf(words, gpu.usedBytes, gpu.usableBytes)}\u2002${percent(words, gpuRatio(gpu))}`
        : words.t(data === "lost" ? "gpu.lost" : "gpu.no_data");
    const torch = gib(words, gpu.torchReservedBytes);
    const utilization = data === "ok" ? wholePercent(words, gpu.utilizationRatio) : "–";
    const run = gpu.run === null ? "" : runLinks([gpu.run]);
    return row([name, used, sparks.draw(gpu) ?? "", run, torch, utilization, gpu.facts.name], [1, 4, 5], gpu.facts.gpu);
  });
  const heads = [
    words.t("name.gpu_column"),
    words.t("gpu.used"),
    words.t("gpu.peaks"),
    words.t("nodes.run"),
    words.t("torch.reserved"),
    words.t("gpu.utilization"),
    words.t("gpu.model"),
  ];
  return table(words, heads, [1, 4, 5], h("tbody", {}, ...rows));
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
        : host?.memory_limit_source
          ? words.t("text.noted", { text: gib(words, limit), note: host.memory_limit_source })
          : gib(words, limit),
    ],
    [words.t("host.shm"), partOf(words, view, "shm_used_bytes", host?.shm_total_bytes)],
    [words.t("host.swap"), partOf(words, view, "swap_used_bytes", host?.swap_total_bytes)],
    [words.t("host.spill"), partOf(words, view, "disk_used_bytes", host?.disk_total_bytes)],
    [words.t("host.pressure"), pressureText(words, view)],
    [words.t("host.cpus"), host?.cpu_count == null ? null : String(host.cpu_count)],
    [words.t("host.kernel"), host?.kernel ?? null],
    [words.t("node.interval"), duration(words, info.interval_seconds)],
    [words.t("node.agent"), info.agent_version],
    [words.t("node.skew"), skewed ? duration(words, Math.abs(info.skew_seconds)) : null],
  ]);
}

/**
 * @param {import("../i18n.js").Words} words @param {NodeView} view
 * @param {"shm_used_bytes" | "swap_used_bytes" | "disk_used_bytes"} field @param {number | null | undefined} whole bytes
 */
function partOf(words, view, field, whole) {
  if (whole == null || whole === 0) return null;
  const used = view.info.sample?.host?.[field];
  if (used == null) return UNKNOWN;
  return `${gibOf(words, used, whole)}\u2002${percent(words, used / whole)}`;
}

/** The share of time that some task waited for memory. @param {import("../i18n.js").Words} words @param {NodeView} view */
function pressureText(words, view) {
  const ratio = view.info.sample?.host?.memory_pressure_some_ratio;
  return ratio == null ? UNKNOWN : percent(words, ratio);
}
