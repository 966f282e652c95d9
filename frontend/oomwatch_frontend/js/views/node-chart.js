// A node over time: host memory against what limits it (the container's limit or the machine, whichever is nearer),
// shared memory, swap, the disk that Ray spills to, and how long tasks waited for memory.

import { ChartView } from "../charts.js";
import { Part, h, setText } from "../dom.js";
import { ChartTable } from "../elements/chart-table.js";
import { forecastOf } from "../forecast.js";
import { GIB, gib, percent } from "../format.js";
import { HOST_KINDS, heldByKind } from "../host-kinds.js";
import { hostUse, levelOfRule, memoryLimits } from "../judge.js";
import { gapText, roomFor } from "../missing.js";
import { swatchOf } from "../parts.js";
import { Recorder } from "../recorder.js";
import { endsOf, spanOf } from "../timerange.js";
import { forecastLine, inGib } from "./gpu-lines.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../wire.js").HostSample} HostSample */
/** @typedef {import("../timerange.js").Range} Range */
/** @typedef {import("../judge.js").HostUse} HostUse */

const MACHINE = "host_memory_used_bytes";
const CONTAINER = "host_cgroup_used_bytes";
/** What ticks leave out: the figure's name, and its field of a reading. @type {[string, keyof HostSample][]} */
const SLOW = [
  ["host_shm_used_bytes", "shm_used_bytes"],
  ["host_swap_used_bytes", "swap_used_bytes"],
  ["host_disk_used_bytes", "disk_used_bytes"],
  ["host_memory_pressure_some_ratio", "memory_pressure_some_ratio"],
];
/** What the largest processes of each kind hold. @typedef {import("../host-kinds.js").HostKind} HostKind */
const KINDS = /** @type {HostKind[]} */ (Object.keys(HOST_KINDS));
const seriesOf = (/** @type {HostKind} */ kind) => `host_${kind}_bytes`;
const AHEAD = 0.5; // of the span: so far into the future a forecast is followed
const MARGINS_PX = 140; // of the plot, left and right

export class HostChart {
  /** @param {App} app @param {string} node @param {import("../elements/time-bar.js").TimeBar} bar @param {(key: string, reason: string) => void} say */
  constructor(app, node, bar, say) {
    this.app = app;
    this.node = node;
    this.bar = bar;
    /** @type {{ key: string, at: number }} */
    this.foretold = { key: "", at: 0 };
    this.plot = h("div", { class: "plot" });
    this.frame = h(
      "div",
      {
        class: "chart-frame",
        tabindex: 0,
        role: "group",
        "aria-label": app.words.t("chart.keys"),
        keydown: (event) => bar.key(event),
      },
      this.plot,
    );
    this.missing = h("p", { class: "hint", role: "status" });
    this.names = new Part("div");
    this.table = new ChartTable(app.words);
    this.element = h("div", {}, this.names.element, this.frame, this.missing, this.table.element);
    this.chart = new ChartView(this.plot, (error) => say("chart.failed", error.message), this.frame);
    const labels = { node };
    this.recorder = new Recorder([MACHINE, CONTAINER, ...SLOW.map(([name]) => name), ...KINDS.map(seriesOf)], labels, bar.range, {
      now: () => app.store.now(),
      pace: () => app.store.nodes.get(node)?.info.interval_seconds ?? 1,
      pixels: () => Math.max(200, (this.plot.clientWidth || 800) - MARGINS_PX),
      changed: () => this.#redraw(),
      say: (problem) => say(problem === null ? "" : "chart.no_history", problem ?? ""),
    });
    this.resize = new ResizeObserver(() => this.recorder.resized());
  }

  load() {
    this.resize.observe(this.plot);
    return this.look(this.bar.range);
  }

  /** @param {Range} range */
  look(range) {
    const loaded = this.recorder.look(range);
    this.#redraw();
    return loaded;
  }

  close() {
    this.resize.disconnect();
    this.recorder.close();
    this.chart.close();
  }

  /** @param {NodeView} view @param {boolean} ticked whether a reading of this node has just come */
  take(view, ticked) {
    if (ticked) {
      this.recorder.take(MACHINE, view.heardAt, view.hostUsedBytes);
      if (view.cgroupUsedBytes !== null) this.recorder.take(CONTAINER, view.heardAt, view.cgroupUsedBytes);
    }
    const { sample } = view.info;
    if (sample?.host) for (const [name, field] of SLOW) this.#takeSlow(name, sample.at, sample.host[field]);
    if (sample?.host?.processes) {
      const held = heldByKind(sample.host.processes);
      for (const kind of KINDS) this.recorder.take(seriesOf(kind), sample.at, held[kind]);
    }
    this.#draw(view);
  }

  /** @param {string} name @param {number} at @param {unknown} value */
  #takeSlow(name, at, value) {
    if (typeof value === "number") this.recorder.take(name, at, value);
  }

  #redraw() {
    const view = this.app.store.nodes.get(this.node);
    if (view !== undefined) this.#draw(view);
  }

  /** @param {NodeView} view */
  #draw(view) {
    const { words, store } = this.app;
    const { range, isLoading } = this.recorder;
    const use = hostUse(view);
    const ends = endsOf(range, store.now());
    const known = [...this.recorder.series.values()].some((series) => series.at.length > 0);
    this.element.hidden = use === null && !known;
    setText(this.missing, isLoading ? "" : gapText(words, this.recorder, ends));
    this.table.draw(() => this.#numbers(ends));
    const chart = this.#chart(view, use, ends);
    this.#name(chart.rows);
    this.chart.draw(chart, isLoading);
  }

  /** The lines by their names, row by row: above the chart they wrap, within it they would lie on its title. @param {import("../charts.js").Row[]} rows */
  #name(rows) {
    const many = rows.filter(({ lines }) => lines.length > 1);
    this.names.draw(many.map(({ title, lines }) => [title, lines.map(({ name, colour, dash }) => [name, colour, dash])]), () =>
      many.map(({ title, lines }) =>
        h("ul", { class: "legend lines" }, h("li", { class: "muted" }, title), ...lines.map((line) => h("li", {}, swatchOf(line), line.name))),
      ),
    );
  }

  /** @param {NodeView} view @param {HostUse | null} use @param {[number, number]} ends @returns {import("../charts.js").Chart} */
  #chart(view, use, [from, to]) {
    const { range } = this.recorder;
    const forecast = range.live ? this.#forecast() : null;
    const latest = forecast === null ? to : this.foretold.at + (forecast.high ?? forecast.eta);
    const memory = this.#memory(use);
    if (forecast !== null) memory.lines.push(forecastLine(this.app.words, forecast, this.foretold.at));
    return {
      axis: "time",
      x: this.recorder.of(use?.contained ? CONTAINER : MACHINE).at,
      xTitle: "",
      range: [from, roomFor(to, latest, AHEAD * spanOf(range))],
      rowHeight: 120,
      rows: [memory, ...this.#kinds(memory.limits ?? []), ...this.#others(view)],
      zoomed: (start, end) => this.bar.dragged(start, end),
      stretch: range.live ? `live ${range.span}` : `${range.from} ${range.to}`,
    };
  }

  #forecast() {
    const { store } = this.app;
    const isHere = (/** @type {import("../wire.js").Alert} */ { labels, alert }) =>
      alert === "host_memory_forecast" && labels.node === this.node;
    const forecast = forecastOf(store.alerts.values(), isHere);
    if (forecast !== null && forecast.key !== this.foretold.key) this.foretold = { key: forecast.key, at: store.now() };
    return forecast;
  }

  /** @param {HostUse | null} use @returns {import("../charts.js").Row} */
  #memory(use) {
    const { words, store } = this.app;
    const row = this.#row(use?.contained ? CONTAINER : MACHINE, words.t("host.memory"));
    if (use === null) return row;
    const whole = use.whole / GIB;
    const amount = words.integer.format(whole);
    /** @type {NonNullable<import("../charts.js").Row["limits"]>} */
    const limits = memoryLimits(store, "host_memory_ratio").map(({ ratio, severity }) => ({
      y: ratio * whole,
      label: words.t("chart.limit", { percent: percent(words, ratio), severity: words.t(`severity.${severity}`) }),
      colour: levelOfRule({ severity }),
    }));
    limits.push({ y: whole, label: words.t(use.contained ? "host.limit_line" : "host.whole_line", { amount }), colour: "muted" });
    const besides = this.#besides(use.contained);
    const named = besides.length === 0 ? {} : { name: words.t(use.contained ? "host.container" : "host.machine") };
    return { ...row, lines: [...row.lines.map((line) => ({ ...line, ...named })), ...besides], limits };
  }

  /** The machine where the container's limit counts, and the container where the machine does. @param {boolean} contained @returns {import("../charts.js").Line[]} */
  #besides(contained) {
    const { at, mean } = this.recorder.of(contained ? MACHINE : CONTAINER);
    if (!mean.some((bytes) => bytes !== null)) return [];
    const name = this.app.words.t(contained ? "host.machine" : "host.container");
    return [{ name, x: at, y: inGib(mean), colour: "second", dash: "dot" }];
  }

  /** What the largest processes hold, by kind, against the limit that counts. @param {NonNullable<import("../charts.js").Row["limits"]>} limits @returns {import("../charts.js").Row[]} */
  #kinds(limits) {
    const { words } = this.app;
    const lines = KINDS.map((kind) => {
      const { at, mean } = this.recorder.of(seriesOf(kind));
      return { name: words.t(`host.kind_${kind}`), x: at, y: inGib(mean), ...HOST_KINDS[kind] };
    });
    const told = lines.filter(({ y }) => y.some((gibibytes) => (gibibytes ?? 0) > 0));
    const title = `${words.t("host.by_kind")} (GiB)`;
    return told.length === 0 ? [] : [{ title, unit: "GiB", lines: told, limits: limits.slice(-1) }];
  }

  /** A row of what is counted in bytes. @param {string} name @param {string} title @param {number | null} [whole] bytes @returns {import("../charts.js").Row} */
  #row(name, title, whole = null) {
    const { words } = this.app;
    const { at, mean, min, max } = this.recorder.of(name);
    const lines = [{ name: title, x: at, y: inGib(mean), low: inGib(min), high: inGib(max), colour: "accent" }];
    const label = words.t("host.whole_line", { amount: words.integer.format((whole ?? 0) / GIB) });
    const limits = whole === null ? [] : [{ y: whole / GIB, label, colour: "muted" }];
    return { title: `${title} (GiB)`, unit: "GiB", lines, limits };
  }

  /** Rows of what there is on this node. @param {NodeView} view @returns {import("../charts.js").Row[]} */
  #others({ info }) {
    const { words } = this.app;
    const host = info.facts.host;
    /** @type {[string, string, number | null][]} */
    const rows = [
      ["host_shm_used_bytes", words.t("host.shm"), host?.shm_total_bytes ?? null],
      ["host_swap_used_bytes", words.t("host.swap"), host?.swap_total_bytes || null],
      ["host_disk_used_bytes", words.t("host.disk", { path: host?.disk_path ?? "" }), host?.disk_total_bytes ?? null],
    ];
    const told = rows.filter(([name]) => this.recorder.of(name).max.some((bytes) => (bytes ?? 0) > 0));
    return [...told.map(([name, title, whole]) => this.#row(name, title, whole)), ...this.#pressure()];
  }

  /** How long tasks waited for memory; nothing where they never did. @returns {import("../charts.js").Row[]} */
  #pressure() {
    const { words } = this.app;
    const { at, mean, min, max } = this.recorder.of("host_memory_pressure_some_ratio");
    if (!max.some((ratio) => (ratio ?? 0) > 0)) return [];
    const shares = [mean, min, max].map((column) => column.map((ratio) => (ratio === null ? null : ratio * 100)));
    const line = { name: words.t("host.pressure"), x: at, y: shares[0], low: shares[1], high: shares[2], colour: "accent" };
    return [{ title: `${words.t("host.pressure")} (%)`, unit: "%", lines: [line] }];
  }

  /** @param {[number, number]} ends */
  #numbers(ends) {
    const { words } = this.app;
    const text = (/** @type {number} */ bytes) => gib(words, bytes);
    const names = /** @type {[string, string][]} */ ([
      [MACHINE, words.t("host.machine")],
      [CONTAINER, words.t("host.container")],
      ["host_shm_used_bytes", words.t("host.shm")],
      ["host_swap_used_bytes", words.t("host.swap")],
      ["host_disk_used_bytes", words.t("host.spill")],
      ...KINDS.map((kind) => [seriesOf(kind), words.t(`host.kind_${kind}`)]),
    ]);
    const columns = names
      .map(([key, name]) => ({ name, series: this.recorder.of(key), text }))
      .filter(({ series }) => series.at.length > 0);
    return { columns, ends, stretch: `${JSON.stringify(this.recorder.range)} ${this.recorder.loadedAt}` };
  }
}
