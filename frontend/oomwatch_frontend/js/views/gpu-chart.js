// One GPU over time: where its memory is, the limits of the rules, what is foretold, and the phases of its run.

import { ChartView } from "../charts.js";
import { Part, h, setText } from "../dom.js";
import { ChartTable } from "../elements/chart-table.js";
import { forecastOf } from "../forecast.js";
import { clockTime, gib, gibNumber, percent } from "../format.js";
import { fetchPhases } from "../history.js";
import { levelOf, levelOfRule, memoryLimits } from "../judge.js";
import { GLYPHS } from "../marks.js";
import { heldNow } from "../memory-parts.js";
import { gapText, roomFor } from "../missing.js";
import { phaseLegend, phaseName } from "../parts.js";
import { lookOf, mergePhases, phasesBetween } from "../phases.js";
import { Recorder } from "../recorder.js";
import { endsOf, spanOf } from "../timerange.js";
import { forecastLine, inGib, lineName, memoryLines } from "./gpu-lines.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../store.js").GpuView} GpuView */
/** @typedef {import("../store.js").Topic} Topic */
/** @typedef {import("../timerange.js").Range} Range */
/** @typedef {import("../wire.js").PhaseSpan} PhaseSpan */

const USED = "gpu_used_bytes";
const RESERVED = "torch_reserved_bytes";
const ALLOCATED = "torch_allocated_bytes";
/** Whose the memory is. @type {Record<keyof import("../memory-parts.js").Told, string>} */
const TOLD = {
  reserved: RESERVED,
  allocated: ALLOCATED,
  engineReserved: "torch_engine_reserved_bytes",
  engineAllocated: "torch_engine_allocated_bytes",
  trainer: "gpu_trainer_bytes",
  probed: "gpu_probed_trainer_bytes",
  engine: "gpu_engine_bytes",
  other: "gpu_other_bytes",
};
const PROBE_SECONDS = 15; // the page is told of a probe's allocated bytes every five
const LIST_SECONDS = 45; // processes are listed every ten seconds, and in the history they stand in points of twenty
const MOST_BANDS = 400; // more would be narrower than a pixel or two
const AHEAD = 0.5; // of the span: so far into the future a forecast is followed
const MARGINS_PX = 140; // of the plot, left and right

export class GpuChart {
  /** @param {App} app @param {string} node @param {string} gpu @param {import("../elements/time-bar.js").TimeBar} bar @param {(key: string, reason: string) => void} say */
  constructor(app, node, gpu, bar, say) {
    this.app = app;
    this.node = node;
    this.gpu = gpu;
    this.bar = bar;
    /** Phases from before the page knew the run, and of which run. @type {{ run: string | null, spans: PhaseSpan[] }} */
    this.told = { run: null, spans: [] };
    /** @type {{ key: string, at: number }} */
    this.foretold = { key: "", at: 0 };
    this.abort = new AbortController();
    this.plot = h("div", { class: "plot" });
    this.frame = h("div", {
      class: "chart-frame",
      tabindex: 0,
      role: "group",
      "aria-label": app.words.t("chart.keys"),
      keydown: (event) => bar.key(event),
    });
    this.legend = h("div", { class: "phase-legend" });
    this.names = new Part("ul", { class: "legend lines" });
    this.missing = h("p", { class: "hint", role: "status" });
    this.table = new ChartTable(app.words);
    this.frame.append(this.plot);
    this.element = h("div", {}, this.names.element, this.frame, this.legend, this.missing, this.table.element);
    this.chart = new ChartView(this.plot, (error) => say("chart.failed", error.message), this.frame);
    this.recorder = new Recorder([USED, ...Object.values(TOLD)], { node, gpu }, bar.range, {
      now: () => app.store.now(),
      pace: () => app.store.nodes.get(node)?.info.interval_seconds ?? 1,
      pixels: () => Math.max(200, (this.plot.clientWidth || 800) - MARGINS_PX),
      changed: () => this.draw(),
      say: (problem) => say(problem === null ? "" : "chart.no_history", problem ?? ""),
    });
    this.resize = new ResizeObserver(() => this.recorder.resized());
  }

  /** What was measured before: once the element is on the page. */
  load() {
    this.resize.observe(this.plot);
    return this.look(this.bar.range);
  }

  /** @param {Range} range */
  look(range) {
    const loaded = this.recorder.look(range);
    void this.#loadPhases(this.told.run);
    this.draw();
    return loaded;
  }

  close() {
    this.abort.abort();
    this.resize.disconnect();
    this.recorder.close();
    this.chart.close();
  }

  /** Takes in what came. @param {Set<Topic>} topics @param {NodeView} node @param {GpuView} card */
  take(topics, node, card) {
    if (topics.has("tick") && this.app.store.ticked.includes(this.node)) {
      this.recorder.take(USED, node.heardAt, card.usedBytes);
      if (card.torchReservedBytes !== null) this.recorder.take(RESERVED, node.heardAt, card.torchReservedBytes);
    }
    if (topics.has("nodes")) {
      this.#takeProbes(node);
      this.#takeHolders(node);
    }
    if (topics.has("torch") && card.torchReservedBytes === null) this.#takeLogged();
    if (card.run !== this.told.run) void this.#loadPhases(card.run);
    if (["tick", "rules", "nodes", "torch", "runs", "alerts"].some((topic) => topics.has(/** @type {Topic} */ (topic))))
      this.draw();
  }

  /** What ticks leave out. @param {NodeView} node */
  #takeProbes({ info }) {
    const { sample } = info;
    const told = (sample?.torch ?? []).flatMap((one) => (one.gpu === this.gpu ? (one.allocated_bytes ?? []) : []));
    if (sample === null || told.length === 0) return;
    this.recorder.take(ALLOCATED, sample.at, told.reduce((sum, bytes) => sum + bytes, 0));
  }

  /** Whose memory it was when processes were last listed. @param {NodeView} node */
  #takeHolders({ info }) {
    const sample = info.together;
    const processes = sample?.gpus.find((one) => one.gpu === this.gpu)?.processes ?? null;
    if (sample === null || processes === null) return;
    const held = heldNow(processes, sample.torch.filter((probe) => probe.gpu === this.gpu));
    for (const [name, bytes] of Object.entries(held))
      this.recorder.take(TOLD[/** @type {keyof typeof held} */ (name)], sample.at, bytes);
  }

  /** A log line of torch's allocator: where no probe tells. */
  #takeLogged() {
    const { torch } = this.app.store;
    if (torch === null || torch.node !== this.node || torch.memory.gpu !== this.gpu) return;
    if (torch.memory.reserved_bytes !== null) this.recorder.take(RESERVED, torch.at, torch.memory.reserved_bytes);
  }

  /** @param {string | null} run */
  async #loadPhases(run) {
    if (run !== this.told.run) this.told = { run, spans: [] };
    if (run === null) return;
    const { range } = this.recorder;
    const [from, to] = endsOf(range, this.app.store.now());
    try {
      const spans = await fetchPhases(run, from, to, this.abort.signal);
      if (this.told.run === run && this.recorder.range === range) this.told = { run, spans };
      this.draw();
    } catch {
      // what the page itself was told is shown all the same
    }
  }

  /** Phases within the chart, cut at its ends. @param {number} from @param {number} to */
  #phases(from, to) {
    const run = this.told.run === null ? undefined : this.app.store.runs.get(this.told.run);
    const lately = (run?.phases ?? []).filter((span) => span.start_at < to);
    return phasesBetween(mergePhases(this.told.spans, lately), from, to);
  }

  /** What is foretold of this card, and when that was said. */
  #forecast() {
    const { store } = this.app;
    const forecast = forecastOf(store.alerts.values(), ({ labels }) => labels.node === this.node && labels.gpu === this.gpu);
    if (forecast !== null && forecast.key !== this.foretold.key) this.foretold = { key: forecast.key, at: store.now() };
    return forecast;
  }

  draw() {
    const { store } = this.app;
    const card = store.nodes.get(this.node)?.gpus.find((gpu) => gpu.facts.gpu === this.gpu);
    if (card === undefined || this.abort.signal.aborted) return;
    const { range, isLoading } = this.recorder;
    const [from, to] = endsOf(range, store.now());
    const spans = this.#phases(from, to);
    this.chart.draw(this.#chart(card, [from, to], spans), isLoading);
    this.#drawLegend(spans);
    const gaps = isLoading ? "" : gapText(this.app.words, this.recorder, [from, to]);
    setText(this.missing, gaps);
    this.table.draw(() => this.#numbers([from, to]));
  }

  /** @param {GpuView} card @param {[number, number]} ends @param {(PhaseSpan & { end_at: number })[]} spans @returns {import("../charts.js").Chart} */
  #chart(card, [from, to], spans) {
    const { words } = this.app;
    const { range } = this.recorder;
    const used = this.recorder.of(USED);
    const forecast = range.live ? this.#forecast() : null;
    const lines = memoryLines(words, used, this.#told(), this.#patience(PROBE_SECONDS), this.#patience(LIST_SECONDS));
    if (forecast !== null) lines.push(forecastLine(words, forecast, this.foretold.at));
    this.names.draw(lines.map(({ name, colour, pattern, dash }) => [name, colour, pattern, dash]), () => lines.map(lineName));
    const until = forecast === null ? to : roomFor(to, this.foretold.at + (forecast.high ?? forecast.eta), AHEAD * spanOf(range));
    const drawn = spans.length <= MOST_BANDS ? spans : [];
    return {
      axis: "time",
      x: used.at,
      xTitle: "",
      range: [from, until],
      rowHeight: 320,
      rows: [{ title: "GiB", unit: "GiB", lines, limits: this.#limits(card) }],
      bands: drawn.length === 0 ? undefined : drawn.map((span) => band(words, span)),
      flags: [...this.#flags(from, to), ...this.#end(forecast, until)],
      zoomed: (start, end) => this.bar.dragged(start, end),
      stretch: range.live ? `live ${range.span}` : `${range.from} ${range.to}`,
    };
  }

  /** How long a word holds: so long, or between the points of a long time. @param {number} seconds */
  #patience(seconds) {
    return Math.max(seconds, 2 * this.recorder.step);
  }

  /** @returns {import("../memory-parts.js").Told} */
  #told() {
    const told = Object.entries(TOLD).map(([name, series]) => [name, this.recorder.of(series)]);
    return Object.fromEntries(told);
  }

  /** When it will be full, where that is within the chart. @param {import("../forecast.js").Forecast | null} forecast @param {number} until */
  #end(forecast, until) {
    if (forecast === null) return [];
    const { words } = this.app;
    const x = this.foretold.at + forecast.eta;
    const label = words.t("chart.full_at", { time: clockTime(words, x) });
    return x > until ? [] : [{ x, label, glyph: label, top: true, colour: levelOfRule(forecast) }];
  }

  /** Alerts of this card, where they began. @param {number} from @param {number} to */
  #flags(from, to) {
    const { words, store } = this.app;
    const here = [...store.alerts.values()].filter(
      ({ labels, fired_at: at }) => labels.node === this.node && labels.gpu === this.gpu && at !== null && at >= from && at <= to,
    );
    return here.map((alert) => {
      const level = levelOf({ ...alert, state: "firing" });
      const colour = alert.state === "resolved" ? "muted" : level;
      return { x: alert.fired_at ?? 0, label: words.pick(alert.texts).summary, glyph: GLYPHS[level].trim(), colour };
    });
  }

  /** @param {(PhaseSpan & { end_at: number })[]} spans */
  #drawLegend(spans) {
    const { words } = this.app;
    const many = spans.length > MOST_BANDS;
    const key = many ? "many" : [...new Set(spans.map((span) => span.phase))].join();
    if (this.legend.dataset.shown === key) return;
    this.legend.dataset.shown = key;
    this.legend.replaceChildren(many ? h("p", { class: "hint" }, words.t("phases.many")) : phaseLegend(words, spans));
  }

  /** @param {[number, number]} ends */
  #numbers(ends) {
    const { words } = this.app;
    const text = (/** @type {number} */ bytes) => gib(words, bytes);
    const columns = [
      { name: words.t("gpu.used"), series: this.recorder.of(USED), text },
      { name: words.t("torch.reserved"), series: this.recorder.of(RESERVED), text },
      { name: words.t("torch.allocated"), series: this.recorder.of(ALLOCATED), text },
      { name: words.t("parts.trainers"), series: this.recorder.of(TOLD.trainer), text },
      { name: words.t("parts.engine"), series: this.recorder.of(TOLD.engine), text },
      { name: words.t("parts.others"), series: this.recorder.of(TOLD.other), text },
    ].filter(({ series }, index) => index < 3 || series.at.length > 0);
    return { columns, ends, stretch: `${JSON.stringify(this.recorder.range)} ${this.recorder.loadedAt}` };
  }

  /** @param {GpuView} card */
  #limits(card) {
    const { words, store } = this.app;
    const [usable = null] = inGib([card.usableBytes]);
    const limits = memoryLimits(store).map(({ ratio, severity }) => ({
      y: ratio * (usable ?? 0),
      label: words.t("chart.limit", { percent: percent(words, ratio), severity: words.t(`severity.${severity}`) }),
      colour: levelOfRule({ severity }),
    }));
    const label = words.t("chart.usable", { amount: gibNumber(words, card.usableBytes) });
    return [...limits, { y: usable ?? 0, label, colour: "muted" }];
  }
}

/** @param {import("../i18n.js").Words} words @param {PhaseSpan & { end_at: number }} span @returns {import("../bands.js").Band} */
function band(words, span) {
  const label = phaseName(words, span.phase);
  const where = span.step === null ? label : words.t("text.noted", { text: label, note: words.t("phases.step", { step: span.step }) });
  const known = words.t(span.known_by === "mark" ? "phases.by_mark" : "phases.by_step_line");
  return { from: span.start_at, to: span.end_at, label, about: words.t("text.labelled", { label: where, text: known }), ...lookOf(span.phase) };
}
