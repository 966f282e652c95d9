// Several figures over the stretch of time that is shown: read from the history at the resolution of the screen, and
// carried on with what arrives. Wherever the page missed something, the history is read again.

import { emptySeries, extend, fetchHistory, joined, stepFor } from "./history.js";
import { endsOf, spanOf } from "./timerange.js";

/** @typedef {import("./history.js").Series} Series */
/** @typedef {import("./timerange.js").Range} Range */

const REFILL_SECONDS = 30; // what is shown as it arrives is exact again so often
const LATE_SECONDS = 12; // after a gap: what an agent sends on then is in the history some ten seconds later (--flush-interval)
const PATIENCE_MS = 15_000;

/**
 * @typedef {object} Wishes
 * @property {() => number} now the server's clock, Unix seconds
 * @property {() => number} pace seconds between two readings
 * @property {() => number} pixels how wide the plot is
 * @property {() => void} changed there is something new to draw
 * @property {(problem: string | null) => void} say why the history cannot be read; null: it can
 */

export class Recorder {
  /** @param {string[]} names of the figures, the first being the one that matters @param {Record<string, string>} labels @param {Range} range @param {Wishes} wishes */
  constructor(names, labels, range, wishes) {
    this.labels = labels;
    this.range = range;
    this.wishes = wishes;
    this.step = 1;
    /** @type {Map<string, Series>} */
    this.series = new Map(names.map((name) => [name, emptySeries()]));
    this.isLoading = false;
    this.loadedAt = -Infinity;
    /** When to read it again though nothing seems to be missing. */
    this.again = Infinity;
    this.abort = new AbortController();
  }

  /** @param {string} name @returns {Series} */
  of(name) {
    return this.series.get(name) ?? emptySeries();
  }

  /** Shows another stretch; what is known stays to be seen until the rest is here. @param {Range} range */
  look(range) {
    this.range = range;
    return this.load();
  }

  /** The plot became narrower or wider. */
  resized() {
    if (this.#stepNow() !== this.step) void this.load();
  }

  #stepNow() {
    return stepFor(spanOf(this.range), this.wishes.pixels());
  }

  async load() {
    this.abort.abort();
    const abort = (this.abort = new AbortController());
    const [from, to] = endsOf(this.range, this.wishes.now());
    this.step = this.#stepNow();
    this.isLoading = true;
    this.loadedAt = this.wishes.now();
    const step = Math.max(this.step, 2 * this.wishes.pace()); // all figures in the same points
    const names = [...this.series.keys()];
    const signal = AbortSignal.any([abort.signal, AbortSignal.timeout(PATIENCE_MS)]);
    /** @type {string | null} */
    let problem = null;
    const found = await fetchHistory({ series: names, ...this.labels, from, to }, signal, step).catch((error) => {
      problem = error.message;
      return []; // what is shown stays
    });
    if (abort.signal.aborted) return;
    this.isLoading = false;
    found.forEach((series, index) => this.#keep(names[index], series, to));
    this.wishes.say(problem);
    this.wishes.changed();
  }

  /** @param {string} name @param {Series} read @param {number} to up to when it was asked for */
  #keep(name, read, to) {
    const series = this.range.live ? joined(read, this.of(name)) : read;
    // Its last point may have begun long ago: what came after that is in it, and nothing was missed.
    this.series.set(name, { ...series, newest: Math.max(series.newest, to) });
  }

  /** A reading that has just come. @param {string} name @param {number} at @param {number | null} value */
  take(name, at, value) {
    if (!this.range.live) return;
    const series = this.of(name);
    if (name === this.series.keys().next().value) this.#mindTheGap(series, at);
    extend(series, at, value, this.range.span, this.step);
  }

  /** @param {Series} series @param {number} at */
  #mindTheGap(series, at) {
    const missed = at - series.newest > Math.max(5, 3 * this.wishes.pace());
    if (missed && Number.isFinite(series.newest)) extend(series, series.newest + this.wishes.pace(), null, spanOf(this.range), 1e-3);
    const due = this.wishes.now() >= Math.min(this.again, this.loadedAt + Math.max(REFILL_SECONDS, this.step));
    if (this.isLoading || !(missed || due)) return;
    this.again = missed ? this.wishes.now() + LATE_SECONDS : Infinity;
    void this.load();
  }

  close() {
    this.abort.abort();
  }
}
