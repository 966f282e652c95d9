// The GPUs of a node in small: the peaks of each over the time that the page shows.

import { svg } from "../dom.js";
import { percent, stretch } from "../format.js";
import { memoryLimits } from "../judge.js";
import { Recorder } from "../recorder.js";
import { endsOf, spanOf } from "../timerange.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../store.js").NodeView} NodeView */
/** @typedef {import("../timerange.js").Range} Range */

const USED = "gpu_used_bytes";
const WIDTH = 160; // px, as in the style sheet
const HEIGHT = 24;
const MOST_GPUS = 16; // of MIG instances there may be many more: the history would be asked for each

export class Sparks {
  /** @param {App} app @param {string} node @param {Range} range @param {() => void} changed */
  constructor(app, node, range, changed) {
    this.app = app;
    this.node = node;
    this.range = range;
    this.changed = changed;
    /** @type {Map<string, Recorder>} */
    this.recorders = new Map();
  }

  /** @param {Range} range */
  look(range) {
    this.range = range;
    for (const recorder of this.recorders.values()) void recorder.look(range);
  }

  /** @param {NodeView} view @param {boolean} ticked whether a reading of this node has just come */
  take(view, ticked) {
    for (const { facts, usedBytes } of view.gpus.slice(0, MOST_GPUS)) {
      const recorder = this.recorders.get(facts.gpu) ?? this.#begin(view, facts.gpu);
      if (ticked) recorder.take(USED, view.heardAt, usedBytes);
    }
  }

  /** @param {NodeView} view @param {string} gpu */
  #begin(view, gpu) {
    const recorder = new Recorder([USED], { node: this.node, gpu }, this.range, {
      now: () => this.app.store.now(),
      pace: () => view.info.interval_seconds,
      pixels: () => WIDTH,
      changed: this.changed,
      say: () => undefined, // the page's chart says why
    });
    this.recorders.set(gpu, recorder);
    void recorder.load();
    return recorder;
  }

  /** @param {import("../store.js").GpuView} gpu @returns {SVGElement | null} */
  draw({ facts, usableBytes }) {
    const recorder = this.recorders.get(facts.gpu);
    if (recorder === undefined || usableBytes === 0) return null;
    const { words, store } = this.app;
    const [from, to] = endsOf(this.range, store.now());
    const { at, max } = recorder.of(USED);
    const place = (/** @type {number} */ moment) => ((moment - from) / (to - from)) * WIDTH;
    const height = (/** @type {number} */ ratio) => HEIGHT - 1 - Math.min(1, ratio) * (HEIGHT - 2);
    const points = at.map((moment, index) => ({ x: place(moment), ratio: max[index] === null ? null : max[index] / usableBytes }));
    const shown = points.filter(({ x }) => x >= 0 && x <= WIDTH);
    const peak = shown.reduce((most, { ratio }) => Math.max(most, ratio ?? 0), 0);
    const time = stretch(words, spanOf(this.range));
    const label = shown.length === 0 ? words.t("chart.no_data") : words.t("gpu.peak", { percent: percent(words, peak), time });
    const limits = memoryLimits(store).slice(0, 1);
    return svg(
      "svg",
      { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
      ...limits.map(({ ratio }) => svg("line", { x1: 0, x2: WIDTH, y1: height(ratio), y2: height(ratio) })),
      svg("path", { d: pathOf(shown.map(({ x, ratio }) => [x, ratio === null ? null : height(ratio)])) }),
    );
  }

  close() {
    for (const recorder of this.recorders.values()) recorder.close();
  }
}

/** A line with a gap wherever there is no height. @param {[number, number | null][]} points @returns {string} */
export function pathOf(points) {
  let pen = "M";
  const pieces = points.map(([x, y]) => {
    if (y === null) {
      pen = "M";
      return "";
    }
    const piece = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
    return piece;
  });
  return pieces.join("");
}
