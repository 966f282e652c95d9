// One GPU: how full it is, how it came to be, who holds the memory, and what its node's sources say.

import { Part, fill, h, setText } from "../dom.js";
import { absent } from "../elements/absent.js";
import { Detail } from "../elements/detail.js";
import { TimeBar } from "../elements/time-bar.js";
import { UNKNOWN, gib, gibOf, percent, wholePercent } from "../format.js";
import { gpuData, gpuRatio, nodeData } from "../judge.js";
import { watchNode } from "../nodewatch.js";
import { alertLines, crumbs, facts, nothing, runLinks, section, sourceList } from "../parts.js";
import { patch } from "../patch.js";
import { link } from "../router.js";
import { GpuChart } from "./gpu-chart.js";
import { gpuProcesses, probeTable } from "./memory.js";
import { memoryNow } from "./memory-now.js";
import { stateText } from "./nodes-table.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../store.js").GpuView} GpuView */

/** @type {import("../main.js").MakeView} */
export const gpuView = (root, app, route) => new Gpu(root, app, route);

class Gpu {
  /** @param {HTMLElement} root @param {App} app @param {import("../router.js").Route} route */
  constructor(root, app, route) {
    this.app = app;
    [this.node = "", this.gpu = ""] = route.args;
    this.drawn = new Map();
    this.parts = {
      figures: h("div", { class: "figures" }),
      note: h("p", { class: "note", role: "status" }),
      alerts: h("div"),
      now: h("div"),
      processes: h("div"),
      probes: h("div"),
      facts: h("div"),
      sources: h("div"),
    };
    this.bar = new TimeBar(app, route, (range) => void this.chart.look(range));
    this.chart = new GpuChart(app, this.node, this.gpu, this.bar, (key, reason) => this.#say(key, reason));
    this.unknown = new Part("div");
    this.detail = new Detail(app.words);
    this.columns = h("div", { class: "columns" });
    root.append(this.#layout());
    this.update(new Set(["nodes", "alerts", "rules", "tick"]));
    void this.chart.load();
    this.stopWatching = watchNode(app.store, this.node);
  }

  #layout() {
    const { words } = this.app;
    const { figures, note, alerts, now, processes, probes } = this.parts;
    return h(
      "div",
      { class: "detail-page" },
      crumbs(
        [
          [words.t("nav.fleet"), link("fleet")],
          [this.node, link("node", [this.node])],
        ],
        words.t("name.gpu", { gpu: this.gpu }),
      ),
      this.unknown.element,
      figures,
      this.#fillColumns(
        h(
          "div",
          { class: "wide" },
          h(
            "section",
            {},
            h(
              "div",
              { class: "toolbar" },
              h("h2", {}, words.t("gpu.memory")),
              this.bar.element,
            ),
            note,
            this.chart.element,
          ),
          ...this.detail.around(
            section(words.t("parts.title"), now),
            section(words.t("gpu.processes"), processes),
            section(words.t("probe.title"), probes),
          ),
        ),
        h(
          "div",
          { class: "narrow" },
          section(words.t("nav.alerts"), alerts),
          section(words.t("gpu.facts"), this.parts.facts),
          section(words.t("sources.title"), this.parts.sources),
        ),
      ),
    );
  }

  /** @param {...HTMLElement} parts */
  #fillColumns(...parts) {
    fill(this.columns, ...parts);
    return this.columns;
  }

  #view() {
    const node = this.app.store.nodes.get(this.node);
    return { node, card: node?.gpus.find((gpu) => gpu.facts.gpu === this.gpu) };
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { node, card } = this.#view();
    this.columns.hidden = this.parts.figures.hidden = node === undefined || card === undefined;
    this.unknown.element.hidden = !this.columns.hidden;
    if (node === undefined || card === undefined) return this.#drawUnknown(node);
    this.#drawFigures(node, card);
    if (topics.has("alerts")) this.#drawAlerts();
    if (topics.has("nodes")) this.#drawNode(node, card);
    this.chart.take(topics, node, card);
  }

  /** @param {NodeView | undefined} node */
  #drawUnknown(node) {
    const { words, store } = this.app;
    const { phase } = store.connection;
    this.unknown.draw([phase === "connecting", node === undefined], () => {
      if (phase === "connecting") return [nothing(words.t("state.connecting"))];
      /** @type {[string, string][]} */
      const ways = [[words.t("nav.fleet"), link("fleet")]];
      if (node !== undefined) ways.unshift([this.node, link("node", [this.node])]);
      const next = words.t(node === undefined ? "node.unknown_next" : "gpu.unknown_next");
      return [absent(words.t("gpu.unknown", { node: this.node, gpu: this.gpu }), next, ways)];
    });
  }

  close() {
    this.stopWatching();
    this.chart.close();
  }

  /** @param {string} key @param {string} reason */
  #say(key, reason) {
    setText(this.parts.note, key === "" ? "" : this.app.words.t(key, { reason }));
  }

  /** @param {string} part @param {unknown} state */
  #unchanged(part, state) {
    const key = JSON.stringify(state);
    if (this.drawn.get(part) === key) return true;
    this.drawn.set(part, key);
    return false;
  }

  /** @param {NodeView} node @param {GpuView} card */
  #drawFigures(node, card) {
    const { words, store } = this.app;
    const data = gpuData(card, nodeData(node, store.now()));
    const shown = data === "ok" ? currentFigures(words, card, node.isDetailed) : [];
    const state = data === "ok" ? "" : words.t(data === "lost" ? "gpu.lost" : "gpu.no_data");
    const detail = data === "ok" ? "" : stateText(words, node, store.now());
    if (this.#unchanged("figures", [shown, state, detail])) return;
    const figures = shown.map(([name, value, beside]) =>
      h(
        "div",
        { class: beside === "" ? "figure" : "figure large" },
        h("span", {}, name),
        h("div", {}, h("b", {}, value), beside),
      ),
    );
    if (data !== "ok")
      figures.push(h("div", { class: `figure state-${data}` }, h("b", {}, state), h("span", {}, detail)));
    patch(this.parts.figures, ...figures);
  }

  #drawAlerts() {
    const { words, store } = this.app;
    const here = [...store.alerts.values()].filter(
      (alert) => alert.labels.node === this.node && (alert.labels.gpu ?? this.gpu) === this.gpu,
    );
    patch(
      this.parts.alerts,
      alertLines(words, here),
      h("p", { class: "onward" }, h("a", { href: link("alerts", [], { node: this.node }) }, words.t("alerts.of_node"))),
    );
  }

  /** @param {NodeView} node @param {GpuView} card */
  #drawNode(node, card) {
    const { words } = this.app;
    const errors = card.sample?.ecc_uncorrected_total ?? null;
    if (!this.#unchanged("facts", [card.facts, card.run, errors])) patch(this.parts.facts, this.#facts(card, errors));
    if (!this.#unchanged("sources", node.info.facts.sources))
      patch(this.parts.sources, sourceList(words, node.info.facts.sources));
    this.detail.draw(node.isDetailed);
    if (!node.isDetailed) return;
    const processes = card.sample?.processes ?? null;
    const at = node.info.sample?.at ?? null;
    if (!this.#unchanged("processes", [processes, at])) patch(this.parts.processes, ...gpuProcesses(words, processes, at));
    const probes = (node.info.sample?.torch ?? []).filter((probe) => probe.gpu === this.gpu);
    if (!this.#unchanged("probes", probes)) patch(this.parts.probes, probeTable(words, probes));
    const sample = node.info.together ?? node.info.sample;
    if (!this.#unchanged("now", sample)) patch(this.parts.now, ...memoryNow(words, card, sample));
  }

  /** @param {GpuView} card @param {number | null} errors of its memory */
  #facts(card, errors) {
    const { words } = this.app;
    const fixed = card.facts;
    const told = (/** @type {string | null} */ text) => (fixed.uuid === null ? UNKNOWN : text); // what is yet to come keeps its place
    return facts([
      [words.t("nodes.run"), card.run === null ? null : runLinks([card.run])],
      [words.t("gpu.model"), fixed.name],
      [words.t("gpu.total"), gib(words, fixed.total_bytes)],
      [words.t("gpu.driver_reserved"), fixed.reserved_bytes === 0 ? null : gib(words, fixed.reserved_bytes)],
      [words.t("gpu.usable"), gib(words, card.usableBytes)],
      [words.t("gpu.driver"), told(fixed.driver_version)],
      [
        words.t("gpu.power_limit"),
        told(fixed.power_limit_watts === null ? null : `${words.integer.format(fixed.power_limit_watts)} W`),
      ],
      [words.t("gpu.pci"), told(fixed.pci_bus_id)],
      ["UUID", told(fixed.uuid)],
      [words.t("gpu.ecc"), errors === null ? UNKNOWN : words.integer.format(errors)],
    ]);
  }

}

/**
 * Name, value and what stands small beside it.
 * @param {import("../i18n.js").Words} words @param {GpuView} card @param {boolean} isDetailed what is not yet told keeps its place
 * @returns {[string, string, string][]}
 */
function currentFigures(words, card, isDetailed) {
  const { sample } = card;
  /** @type {[string, string, string][]} */
  const figures = [
    [words.t("gpu.used"), percent(words, gpuRatio(card)), gibOf(words, card.usedBytes, card.usableBytes)],
    [words.t("gpu.free"), gib(words, card.usableBytes - (card.usedBytes ?? 0)), ""],
    [words.t("gpu.utilization"), wholePercent(words, card.utilizationRatio), ""],
  ];
  const unknown = isDetailed ? null : UNKNOWN;
  const watts = sample?.power_watts == null ? unknown : `${words.integer.format(sample.power_watts)} W`;
  const celsius = sample?.temperature_celsius == null ? unknown : `${words.integer.format(sample.temperature_celsius)} °C`;
  if (watts !== null) figures.push([words.t("gpu.power"), watts, ""]);
  if (celsius !== null) figures.push([words.t("gpu.temperature"), celsius, ""]);
  return figures;
}
