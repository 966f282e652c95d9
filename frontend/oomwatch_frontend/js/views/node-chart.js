// A node's host memory over time, against what limits it: the container's limit or the machine, whichever is nearer.

import { ChartView } from "../charts.js";
import { h } from "../dom.js";
import { GIB } from "../format.js";
import { emptySeries, extend, fetchHistory, joined } from "../history.js";
import { hostUse } from "../judge.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */

const SPAN = 3600; // seconds

export class HostChart {
  /** @param {App} app @param {string} node @param {(key: string, reason: string) => void} say */
  constructor(app, node, say) {
    this.app = app;
    this.node = node;
    this.say = say;
    /** The machine's figures (false) and the container's (true), each once it was needed. @type {Map<boolean, import("../history.js").Series>} */
    this.used = new Map();
    this.abort = new AbortController();
    this.element = h("div", { class: "plot" });
    this.chart = new ChartView(this.element, (error) => say("chart.failed", error.message));
  }

  close() {
    this.abort.abort();
    this.chart.close();
  }

  /** @param {NodeView} view @param {boolean} ticked whether a reading of this node has just come */
  take(view, ticked) {
    const use = hostUse(view);
    this.element.hidden = use === null && this.used.size === 0;
    if (use === null) return;
    if (!this.used.has(use.contained)) void this.#load(use.contained);
    if (ticked) this.#extend(view);
    this.#draw(use);
  }

  /** Both go on, whichever is drawn: they may change places at any time. @param {NodeView} view */
  #extend(view) {
    for (const [contained, series] of this.used)
      extend(series, view.heardAt, contained ? view.cgroupUsedBytes : view.hostUsedBytes, SPAN);
  }

  /** @param {boolean} contained */
  async #load(contained) {
    this.used.set(contained, emptySeries());
    const series = contained ? "host_cgroup_used_bytes" : "host_memory_used_bytes";
    const to = this.app.store.now();
    try {
      const before = await fetchHistory({ series, node: this.node, from: to - SPAN, to }, this.abort.signal);
      this.used.set(contained, joined(before, this.used.get(contained) ?? emptySeries()));
    } catch (error) {
      if (!this.abort.signal.aborted) this.say("chart.no_history", /** @type {Error} */ (error).message);
    }
  }

  /** @param {import("../judge.js").HostUse} use */
  #draw({ whole, contained }) {
    const { words, store } = this.app;
    const now = store.now();
    const inGib = (/** @type {(number | null)[]} */ column) =>
      column.map((bytes) => (bytes === null ? null : bytes / GIB));
    const { at, mean, min, max } = this.used.get(contained) ?? emptySeries();
    const name = words.t("host.memory");
    const label = words.t(contained ? "host.limit_line" : "host.whole_line", { amount: words.integer.format(whole / GIB) });
    const lines = [{ name, y: inGib(mean), low: inGib(min), high: inGib(max), colour: "accent" }];
    this.chart.draw({
      axis: "time",
      x: at,
      xTitle: "",
      range: [now - SPAN, now],
      rowHeight: 180,
      rows: [{ title: "GiB", unit: "GiB", lines, limits: [{ y: whole / GIB, label, colour: "muted" }] }],
    });
  }
}
