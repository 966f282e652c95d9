// One GPU over time: memory in use, what torch has reserved of it, the limits of the rules, and the phases of its run.

import { ChartView } from "../charts.js";
import { h } from "../dom.js";
import { GIB, gibNumber, percent } from "../format.js";
import { emptySeries, extend, fetchHistory, fetchPhases, joined, stepFor, withGaps } from "../history.js";
import { memoryLimits } from "../judge.js";
import { lookOf, mergePhases, phasesBetween } from "../phases.js";
import { phaseLegend, phaseName } from "../parts.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../store.js").GpuView} GpuView */
/** @typedef {import("../store.js").Topic} Topic */
/** @typedef {import("../wire.js").PhaseSpan} PhaseSpan */

const PROBE_SILENT = 60; // seconds after which the server, too, takes log lines again
const MOST_BANDS = 400; // more would be narrower than a pixel or two

export class GpuChart {
  /** @param {App} app @param {string} node @param {string} gpu @param {number} span seconds @param {(key: string, reason: string) => void} say */
  constructor(app, node, gpu, span, say) {
    this.app = app;
    this.node = node;
    this.gpu = gpu;
    this.span = span;
    this.say = say;
    this.used = emptySeries();
    this.torch = emptySeries();
    /** Phases from before the page knew the run, and of which run. @type {{ run: string | null, spans: PhaseSpan[] }} */
    this.told = { run: null, spans: [] };
    this.abort = new AbortController();
    this.plot = h("div", { class: "plot" });
    this.legend = h("div");
    this.element = h("div", {}, this.plot, this.legend);
    this.chart = new ChartView(this.plot, (error) => say("chart.failed", error.message));
  }

  close() {
    this.abort.abort();
    this.chart.close();
  }

  /** What was measured before. */
  async load() {
    const to = this.app.store.connection.phase === "connecting" ? Date.now() / 1000 : this.app.store.now();
    const query = { node: this.node, gpu: this.gpu, from: to - this.span, to };
    const [used, torch] = await Promise.allSettled([
      fetchHistory({ series: "gpu_used_bytes", ...query }, this.abort.signal),
      fetchHistory({ series: "torch_reserved_bytes", ...query }, this.abort.signal),
    ]);
    if (this.abort.signal.aborted) return;
    if (used.status === "fulfilled") this.used = joined(used.value, this.used);
    else this.say("chart.no_history", used.reason.message);
    if (torch.status === "fulfilled") this.torch = joined(torch.value, this.torch); // without it the chart shows one line less
    this.draw();
  }

  /** Takes in what came. @param {Set<Topic>} topics @param {NodeView} node @param {GpuView} card */
  take(topics, node, card) {
    if (topics.has("tick") && this.app.store.ticked.includes(this.node)) {
      extend(this.used, node.heardAt, card.usedBytes, this.span);
      if (card.torchReservedBytes !== null) extend(this.torch, node.heardAt, card.torchReservedBytes, this.span);
    }
    if (topics.has("torch") && card.torchReservedBytes === null) this.#takeLogged();
    if (card.run !== this.told.run) void this.#loadPhases(card.run);
    if (["tick", "rules", "nodes", "torch", "runs"].some((topic) => topics.has(/** @type {Topic} */ (topic)))) this.draw();
  }

  /** A log line of torch's allocator: where no probe tells. */
  #takeLogged() {
    const { torch } = this.app.store;
    if (torch === null || torch.node !== this.node || torch.memory.gpu !== this.gpu) return;
    if (torch.memory.reserved_bytes !== null) extend(this.torch, torch.at, torch.memory.reserved_bytes, this.span);
  }

  /** @param {string | null} run */
  async #loadPhases(run) {
    this.told = { run, spans: [] };
    if (run === null) return;
    const now = this.app.store.now();
    try {
      const spans = await fetchPhases(run, now - this.span, now, this.abort.signal);
      if (this.told.run === run) this.told = { run, spans };
      this.draw();
    } catch {
      // what the page itself was told is shown all the same
    }
  }

  /** Phases within the chart, cut at its ends. @param {number} from @param {number} to */
  #phases(from, to) {
    const run = this.told.run === null ? undefined : this.app.store.runs.get(this.told.run);
    return phasesBetween(mergePhases(this.told.spans, run?.phases ?? []), from, to);
  }

  draw() {
    const { words, store } = this.app;
    const card = store.nodes.get(this.node)?.gpus.find((gpu) => gpu.facts.gpu === this.gpu);
    if (card === undefined || this.abort.signal.aborted) return;
    const now = store.now();
    const spans = this.#phases(now - this.span, now);
    const drawn = spans.length <= MOST_BANDS ? spans : [];
    this.chart.draw({
      axis: "time",
      x: this.used.at,
      xTitle: "",
      range: [now - this.span, now],
      rowHeight: 300,
      rows: [{ title: "GiB", unit: "GiB", lines: this.#lines(card.torchReservedBytes !== null), limits: this.#limits(card) }],
      bands: drawn.length === 0 ? undefined : drawn.map((span) => band(words, span)),
    });
    const key = spans.length > MOST_BANDS ? "many" : [...new Set(drawn.map((span) => span.phase))].join();
    if (this.legend.dataset.shown === key) return;
    this.legend.dataset.shown = key;
    this.legend.replaceChildren(
      key === "many" ? h("p", { class: "muted" }, words.t("phases.many")) : phaseLegend(words, drawn),
    );
  }

  /** @param {boolean} probed */
  #lines(probed) {
    const { words } = this.app;
    const inGib = (/** @type {(number | null)[]} */ column) =>
      column.map((bytes) => (bytes === null ? null : bytes / GIB));
    const { used, torch } = this;
    /** @type {import("../charts.js").Line[]} */
    const lines = [
      { name: words.t("gpu.used"), y: inGib(used.mean), low: inGib(used.min), high: inGib(used.max), colour: "accent" },
    ];
    if (torch.at.length > 0) {
      // A probe tells every second: its silence is a gap. Log lines come when they come.
      const { at, mean } = probed ? withGaps(torch, Math.max(PROBE_SILENT, 3 * stepFor(this.span))) : torch;
      lines.push({ name: words.t("torch.reserved"), x: at, y: inGib(mean), colour: "second", dash: "dot", points: true });
    }
    return lines;
  }

  /** @param {GpuView} card */
  #limits(card) {
    const { words, store } = this.app;
    const usable = card.usableBytes / GIB;
    const limits = memoryLimits(store).map(({ ratio, severity }) => ({
      y: ratio * usable,
      label: words.t("chart.limit", { percent: percent(words, ratio), severity: words.t(`severity.${severity}`) }),
      colour: severity === "info" ? "watch" : severity,
    }));
    const label = words.t("chart.usable", { amount: gibNumber(words, card.usableBytes) });
    return [...limits, { y: usable, label, colour: "muted" }];
  }
}

/** @param {import("../i18n.js").Words} words @param {PhaseSpan & { end_at: number }} span @returns {import("../bands.js").Band} */
function band(words, span) {
  const label = phaseName(words, span.phase);
  const step = span.step === null ? "" : ` (${words.t("phases.step", { step: span.step })})`;
  const known = words.t(span.known_by === "mark" ? "phases.by_mark" : "phases.by_step_line");
  return { from: span.start_at, to: span.end_at, label, about: `${label}${step}: ${known}`, ...lookOf(span.phase) };
}
