// Draws charts with plotly; nothing else does. What plotly is told is made by chart-lines.js and chart-layout.js.
// For charts over time that a person may zoom: Chart.zoomed, Chart.stretch; for stacks: Line.solid, pattern, thin, told.

import { BandLayer } from "./bands.js";
import { LabelLayer } from "./chart-labels.js";
import { frameOf, heightOf, layout, topsOf } from "./chart-layout.js";
import { traces } from "./chart-lines.js";
import { fromStamp } from "./ink.js";
import { loadPlotly } from "./plotly.js";

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {(number | null)[]} y
 * @property {number[]} [x] where it differs from the row's
 * @property {(number | null)[]} [low] with `high`: a band behind the line
 * @property {(number | null)[]} [high]
 * @property {string} colour name of a colour of the style sheet
 * @property {"solid" | "dot" | "dash"} [dash]
 * @property {boolean} [points] marks at the points, for few of them
 * @property {boolean} [right] against the axis on the right
 * @property {string} [right_title]
 * @property {number} [solid] how much of its colour the band has, instead of a faint one
 * @property {boolean} [thin] no line along its y: the band tells
 * @property {string} [pattern] of the band or the bar, as plotly names it; "" is none
 * @property {(number | null)[]} [told] what pointing at it says, where that is not y: the height of a layer of a stack
 * @property {boolean} [stack] a bar, upon those of the lines before it that are bars too
 * @property {(string | null)[]} [about] what belongs to each value, for whoever tells it (plotly does not)
 * @property {boolean} [peak] of several values the highest counts where there is room for one only
 */

/**
 * @typedef {object} Row one plot of a stack that shares its x
 * @property {string} title
 * @property {string} unit
 * @property {Line[]} lines
 * @property {{ y: number, label: string, colour: string }[]} [limits]
 * @property {string} [rightUnit]
 */

/**
 * @typedef {object} Chart
 * @property {"time" | "step"} axis
 * @property {number[]} x Unix seconds or steps
 * @property {string} xTitle
 * @property {[number, number]} [range]
 * @property {Row[]} rows
 * @property {number} rowHeight px
 * @property {{ x: number, label: string, glyph: string, colour: string, top?: boolean }[]} [flags] alerts, across all rows; `top` names a line at its upper end
 * @property {import("./bands.js").Band[]} [bands] with `range`: stretches of time that have a name, oldest first
 * @property {(from: number, to: number) => void} [zoomed] a person dragged across a stretch of x; whoever draws shows it
 * @property {string} [stretch] with `zoomed`: names what `range` shows, and where it changes, `range` is in force again
 * @property {{ right: number, axis: boolean }} [bare] the page itself draws titles, legend and cursor: plotly only the
 *   lines, `right` px from the edge, and the axis below where there is one
 * @property {{ x: number, text: string }[]} [ticks] what stands below, in place of plotly's own choice
 */

const REDRAW_MS = 500;

/** A chart in an element. draw() may be called as often as readings come; it is drawn at most twice a second. */
export class ChartView {
  /** @param {HTMLElement} element @param {(error: Error) => void} failed plotly could not be loaded @param {HTMLElement} [frame] busy until all there is has been drawn */
  constructor(element, failed, frame) {
    this.element = element;
    this.failed = failed;
    this.frame = frame;
    this.isLoading = false; // of `next`: more of it is on its way
    void loadPlotly().catch(() => undefined); // while what is to be drawn is on its way; draw() says what went wrong
    /** @type {Chart | null} */
    this.next = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
    this.drawnAt = -Infinity;
    this.closed = false;
    this.listens = false;
    this.bands = new BandLayer();
    this.labels = new LabelLayer();
    this.held = false; // a button is down in it: to draw now would end the drag
    element.addEventListener("pointerdown", () => {
      this.held = true;
      addEventListener("pointerup", () => this.#letGo(), { once: true });
      addEventListener("pointercancel", () => this.#letGo(), { once: true });
    });
  }

  #letGo() {
    this.held = false;
    if (this.next !== null && !this.closed) this.draw(this.next, this.isLoading);
  }

  /** @param {Chart} chart @param {boolean} [isLoading] more of it is on its way */
  draw(chart, isLoading = false) {
    this.next = chart;
    this.isLoading = isLoading;
    if (isLoading) this.frame?.setAttribute("aria-busy", "true");
    this.element.style.minHeight = `${heightOf(chart).whole}px`; // nothing below it moves when it is there
    this.timer ??= setTimeout(() => this.#draw(), Math.max(0, this.drawnAt + REDRAW_MS - performance.now()));
  }

  async #draw() {
    try {
      const plotly = await loadPlotly();
      const { next: chart, isLoading } = this;
      if (this.closed || chart === null) return;
      if (this.held) return void (this.timer = null); // letting go draws it
      if (document.hidden)
        return void document.addEventListener("visibilitychange", () => this.#draw(), { once: true });
      this.drawnAt = performance.now();
      this.timer = null;
      const settings = { displayModeBar: false, responsive: true, doubleClick: chart.zoomed ? false : "reset+autosize" };
      const drawn = plotly.react(this.element, traces(chart), layout(chart), settings);
      this.#drawAround(chart); // at once: none is seen to move before the other
      await drawn;
      if (!this.listens && chart.zoomed) this.#listen();
      this.frame?.setAttribute("aria-busy", String(isLoading));
    } catch (error) {
      this.timer = null;
      this.frame?.setAttribute("aria-busy", "false");
      this.failed(/** @type {Error} */ (error));
    }
  }

  /** What the page draws itself, behind plotly's part and over it. @param {Chart} chart */
  #drawAround(chart) {
    const frame = frameOf(chart);
    if (this.labels.element.parentElement !== this.element) this.element.append(this.bands.element, this.labels.element);
    this.bands.draw(chart.bands ?? [], chart.range ?? [0, 1], frame);
    this.labels.draw(chart, frame, topsOf(chart));
  }

  #listen() {
    this.listens = true;
    const plot = /** @type {any} */ (this.element);
    /** @param {Record<string, unknown>} change @returns {[number, number] | null} */
    const endsIn = (change) => {
      const ends = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (ends.some((end) => end === undefined)) return null;
      const [from, to] = ends.map((end) => (this.next?.axis === "time" ? fromStamp(String(end)) : Number(end)));
      return [from, to];
    };
    plot.on("plotly_relayouting", (/** @type {Record<string, unknown>} */ change) => {
      const ends = endsIn(change);
      if (ends !== null) this.bands.place(ends);
    });
    plot.on("plotly_relayout", (/** @type {Record<string, unknown>} */ change) => {
      const ends = endsIn(change);
      if (ends === null) return;
      this.bands.place(ends);
      this.next?.zoomed?.(...ends);
    });
  }

  close() {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    void loadPlotly().then((plotly) => plotly.purge(this.element)).catch(() => undefined);
  }
}
