// One GPU: how full it is, how it came to be, who holds the memory, and what its node's sensors say.

import { ChartView } from "../charts.js";
import { fill, h, setText } from "../dom.js";
import { GIB, duration, gib, gibNumber, gibOf, percent, wholePercent } from "../format.js";
import { emptySeries, extend, fetchHistory } from "../history.js";
import { gpuData, gpuRatio, memoryLimits, nodeData } from "../judge.js";
import { aged, alertLines, crumbs, facts, nothing, row, section, sensors, table } from "../parts.js";
import { link } from "../router.js";
import { stateText } from "./nodes-table.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../store.js").GpuView} GpuView */
/** @typedef {import("../history.js").Series} Series */

const SPANS = [300, 900, 3600, 21_600, 86_400]; // seconds
const FIRST_SPAN = 900;

/** @type {import("../main.js").MakeView} */
export const gpuView = (root, app, route) => new Gpu(root, app, route);

class Gpu {
  /** @param {HTMLElement} root @param {App} app @param {import("../router.js").Route} route */
  constructor(root, app, route) {
    this.app = app;
    [this.node = "", this.gpu = ""] = route.args;
    this.span = SPANS.find((span) => String(span) === route.query.span) ?? FIRST_SPAN;
    this.used = emptySeries();
    this.torch = emptySeries();
    this.abort = new AbortController();
    this.drawn = new Map();
    this.parts = {
      figures: h("div", { class: "figures" }),
      note: h("p", { class: "note", role: "status" }),
      alerts: h("div"),
      processes: h("div"),
      facts: h("div"),
      sensors: h("div"),
      plot: h("div", { class: "plot" }),
    };
    this.chart = new ChartView(this.parts.plot, (error) => this.#say("chart.failed", error.message));
    root.append(this.#layout());
    this.update(new Set(["nodes", "alerts", "rules", "tick"]));
    void this.#load();
  }

  #layout() {
    const { words } = this.app;
    const { figures, note, alerts, processes, plot } = this.parts;
    const spans = SPANS.map((span) =>
      h(
        "a",
        {
          href: link("gpu", [this.node, this.gpu], { span: String(span) }),
          "aria-current": span === this.span ? "true" : null,
        },
        duration(words, span),
      ),
    );
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
      figures,
      h(
        "div",
        { class: "columns" },
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
              h("div", { class: "choice", role: "group", "aria-label": words.t("chart.span") }, ...spans),
            ),
            note,
            plot,
          ),
          section(words.t("gpu.processes"), processes),
        ),
        h(
          "div",
          { class: "narrow" },
          section(words.t("nav.alerts"), alerts),
          section(words.t("gpu.facts"), this.parts.facts),
          section(words.t("sensors.title"), this.parts.sensors),
        ),
      ),
    );
  }

  #view() {
    const node = this.app.store.nodes.get(this.node);
    return { node, card: node?.gpus.find((gpu) => gpu.facts.gpu === this.gpu) };
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { node, card } = this.#view();
    if (node === undefined || card === undefined) {
      fill(
        this.parts.figures,
        nothing(
          this.app.words.t(this.app.store.connection.phase === "connecting" ? "state.connecting" : "gpu.unknown", {
            node: this.node,
            gpu: this.gpu,
          }),
        ),
      );
      return;
    }
    this.#drawFigures(node, card);
    if (topics.has("alerts")) this.#drawAlerts();
    if (topics.has("nodes")) this.#drawNode(node, card);
    if (topics.has("tick") && this.app.store.ticked.includes(this.node))
      extend(this.used, node.heardAt, card.usedBytes, this.span);
    if (topics.has("torch")) this.#takeTorch();
    if (["tick", "rules", "nodes", "torch"].some((topic) => topics.has(/** @type {any} */ (topic))))
      this.#drawChart(card);
  }

  close() {
    this.abort.abort();
    this.chart.close();
  }

  async #load() {
    const to = this.app.store.connection.phase === "connecting" ? Date.now() / 1000 : this.app.store.now();
    const query = { node: this.node, gpu: this.gpu, from: to - this.span, to };
    const [used, torch] = await Promise.allSettled([
      fetchHistory({ series: "gpu_used_bytes", ...query }, this.abort.signal),
      fetchHistory({ series: "torch_reserved_bytes", ...query }, this.abort.signal),
    ]);
    if (this.abort.signal.aborted) return;
    if (used.status === "fulfilled") this.used = joined(used.value, this.used);
    else this.#say("chart.no_history", used.reason.message);
    if (torch.status === "fulfilled") this.torch = joined(torch.value, this.torch); // without it the chart shows one line less
    const { card } = this.#view();
    if (card !== undefined) this.#drawChart(card);
  }

  /** @param {string} key @param {string} reason */
  #say(key, reason) {
    setText(this.parts.note, this.app.words.t(key, { reason }));
  }

  #takeTorch() {
    const { torch } = this.app.store;
    if (torch === null || torch.node !== this.node || torch.memory.gpu !== this.gpu) return;
    if (torch.memory.reserved_bytes !== null) extend(this.torch, torch.at, torch.memory.reserved_bytes, this.span);
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
    const shown = data === "ok" ? currentFigures(words, card) : [];
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
    fill(this.parts.figures, ...figures);
  }

  #drawAlerts() {
    const { words, store } = this.app;
    const here = [...store.alerts.values()].filter(
      (alert) => alert.labels.node === this.node && (alert.labels.gpu ?? this.gpu) === this.gpu,
    );
    fill(
      this.parts.alerts,
      alertLines(words, here),
      h("p", {}, h("a", { href: link("alerts", [], { node: this.node }) }, words.t("alerts.of_node"))),
    );
  }

  /** @param {NodeView} node @param {GpuView} card */
  #drawNode(node, card) {
    const { words } = this.app;
    if (!this.#unchanged("facts", card.facts)) fill(this.parts.facts, this.#facts(card));
    if (!this.#unchanged("sensors", node.info.facts.sources))
      fill(this.parts.sensors, sensors(words, node.info.facts.sources));
    const processes = card.sample?.processes ?? null;
    const at = node.info.sample?.at ?? null;
    if (!this.#unchanged("processes", [processes, at])) fill(this.parts.processes, ...this.#processes(processes, at));
  }

  /** @param {GpuView} card */
  #facts(card) {
    const { words } = this.app;
    const fixed = card.facts;
    return facts([
      [words.t("gpu.model"), fixed.name],
      [words.t("gpu.total"), gib(words, fixed.total_bytes)],
      [words.t("gpu.driver_reserved"), fixed.reserved_bytes === 0 ? null : gib(words, fixed.reserved_bytes)],
      [words.t("gpu.usable"), gib(words, card.usableBytes)],
      [words.t("gpu.driver"), fixed.driver_version],
      [
        words.t("gpu.power_limit"),
        fixed.power_limit_watts === null ? null : `${words.integer.format(fixed.power_limit_watts)} W`,
      ],
      [words.t("gpu.pci"), fixed.pci_bus_id],
      ["UUID", fixed.uuid],
      [
        words.t("gpu.ecc"),
        card.sample?.ecc_uncorrected_total == null ? null : words.integer.format(card.sample.ecc_uncorrected_total),
      ],
    ]);
  }

  /** @param {import("../wire.js").GpuProcess[] | null} processes @param {number | null} at */
  #processes(processes, at) {
    const { words } = this.app;
    if (processes === null) return [nothing(words.t("processes.unknown"))];
    if (processes.length === 0) return [nothing(words.t("processes.none"))];
    const heads = ["pid", "name", "run", "memory"].map((name) => words.t(`processes.${name}`));
    const sorted = [...processes].sort((a, b) => (b.used_bytes ?? 0) - (a.used_bytes ?? 0));
    const rows = sorted.map((process) => {
      const run = process.run === null ? "" : h("a", { href: link("run", [process.run]) }, process.run);
      return row([String(process.pid), process.name ?? "–", run, gib(words, process.used_bytes)], [0, 3]);
    });
    const read = at === null ? null : h("p", {}, aged(words, "processes.read", at));
    return [table(heads, [0, 3], h("tbody", {}, ...rows)), read].filter((part) => part !== null);
  }

  /** @param {GpuView} card */
  #drawChart(card) {
    const { words, store } = this.app;
    const now = store.now();
    const usable = card.usableBytes / GIB;
    const inGib = (/** @type {(number | null)[]} */ column) =>
      column.map((bytes) => (bytes === null ? null : bytes / GIB));
    const limits = memoryLimits(store).map(({ ratio, severity }) => ({
      y: ratio * usable,
      label: words.t("chart.limit", { percent: percent(words, ratio), severity: words.t(`severity.${severity}`) }),
      colour: severity === "info" ? "watch" : severity,
    }));
    const title = words.t("gpu.used");
    const lines = [
      {
        name: title,
        y: inGib(this.used.mean),
        low: inGib(this.used.min),
        high: inGib(this.used.max),
        colour: "accent",
      },
    ];
    if (this.torch.at.length > 0) {
      lines.push(
        /** @type {any} */ ({
          name: words.t("torch.reserved"),
          x: this.torch.at,
          y: inGib(this.torch.mean),
          colour: "second",
          dash: "dot",
          points: true,
        }),
      );
    }
    this.chart.draw({
      axis: "time",
      x: this.used.at,
      xTitle: "",
      range: [now - this.span, now],
      rowHeight: 300,
      rows: [
        {
          title: "GiB",
          unit: "GiB",
          lines,
          limits: [
            ...limits,
            {
              y: usable,
              label: words.t("chart.usable", { amount: gibNumber(words, card.usableBytes) }),
              colour: "muted",
            },
          ],
        },
      ],
    });
  }
}

/** Name, value and what stands small beside it. @param {import("../i18n.js").Words} words @param {GpuView} card @returns {[string, string, string][]} */
function currentFigures(words, card) {
  const { sample } = card;
  /** @type {[string, string, string][]} */
  const figures = [
    [words.t("gpu.used"), percent(words, gpuRatio(card)), gibOf(words, card.usedBytes, card.usableBytes)],
    [words.t("gpu.free"), gib(words, card.usableBytes - (card.usedBytes ?? 0)), ""],
    [words.t("gpu.utilization"), wholePercent(words, card.utilizationRatio), ""],
  ];
  if (sample?.power_watts != null)
    figures.push([words.t("gpu.power"), `${words.integer.format(sample.power_watts)} W`, ""]);
  if (sample?.temperature_celsius != null)
    figures.push([words.t("gpu.temperature"), `${words.integer.format(sample.temperature_celsius)} °C`, ""]);
  return figures;
}

/** What was measured before, and what came since it was asked for. @param {Series} before @param {Series} live @returns {Series} */
function joined(before, live) {
  const last = before.at[before.at.length - 1] ?? -Infinity;
  const from = live.at.findIndex((at) => at > last);
  if (from === -1) return before;
  const after = (/** @type {"at" | "min" | "max" | "mean"} */ column) => [
    ...before[column],
    ...live[column].slice(from),
  ];
  return {
    ...live,
    at: /** @type {number[]} */ (after("at")),
    min: after("min"),
    max: after("max"),
    mean: after("mean"),
  };
}
