// Rows of charts that share their steps: one cursor through all, by pointer or by keys, its numbers beside the names of
// the lines; alerts above; and all of it as a table.

import { LEFT_PX } from "../chart-layout.js";
import { ChartView } from "../charts.js";
import { Part, fill, h, setText } from "../dom.js";
import { UNKNOWN, beside, clockTime, moment } from "../format.js";
import { swatchOf } from "../parts.js";
import { groupsOf, middles, thinned } from "../run-thin.js";
import { stepTable } from "./step-table.js";
import { FlagLane } from "./flag-lane.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../charts.js").Line} Line */
/** @typedef {import("../charts.js").Row} Row */
/** @typedef {import("../run-rows.js").TimelineRow} TimelineRow */
/** @typedef {import("../run-thin.js").Group} Group */
/** @typedef {import("../run-look.js").Look} Look */

/**
 * @typedef {object} Timeline
 * @property {number[]} x steps, ascending
 * @property {(number | null)[]} at when each ended, Unix seconds
 * @property {number} last place of the last step that was done
 * @property {number} foretold the last step of which something is foretold
 * @property {TimelineRow[]} rows
 * @property {import("./flag-lane.js").Flagged[]} flags
 */

const RIGHT_PX = 52; // room for a second axis, in every row so that all steps stand below one another
const ROW_PX = 128;
const AXIS_PX = 44; // below the last row
const GROUPS_MOST = 160; // some five pixels each
const TICK_PX = 84;
const WINDOWS = [null, 200, 50]; // steps; null: all
const RESERVED_STEPS = 50; // fewer need no choice

/** @typedef {{ element: HTMLElement, head: Part, note: HTMLElement, plot: HTMLElement, chart: ChartView, values: HTMLElement[], row: Row }} DrawnRow */

export class StepTimeline {
  /** @param {Words} words @param {(error: Error) => void} failed @param {Look} look what is in view at first @param {(look: Look) => void} looked it was changed */
  constructor(words, failed, look, looked) {
    this.words = words;
    this.failed = failed;
    this.looked = looked;
    /** @type {Timeline | null} */
    this.shown = null;
    /** @type {[number, number] | null} what someone has chosen by dragging */
    this.zoom = look.zoom;
    /** @type {number | null} the last so many steps */
    this.window = look.window;
    /** @type {number | null} the step that is pointed at; null: the last one */
    this.pointed = null;
    /** @type {Group[]} */
    this.groups = [];
    /** @type {number[]} */
    this.x = [];
    /** @type {Map<string, DrawnRow>} */
    this.rows = new Map();
    this.isTable = look.isTable;
    this.windows = new Part("div", { class: "choice", role: "group", "aria-label": words.t("run.window") });
    this.asTable = h("button", { type: "button", "aria-pressed": "false", click: () => this.#toggleTable() }, words.t("run.as_table"));
    this.readout = h("div", {
      class: "step-readout", tabindex: 0, role: "slider", "aria-label": words.t("run.cursor"),
      keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.readout.hidden = true; // there is no step to choose yet
    this.lane = new FlagLane(words);
    this.line = h("div", { class: "step-line" });
    this.stack = h("div", { class: "step-rows" });
    this.charts = h(
      "div",
      {
        class: "step-charts",
        pointermove: (/** @type {PointerEvent} */ event) => this.#point(event),
        pointerleave: () => this.#pointAt(null),
        dblclick: () => this.#look(null),
      },
      this.lane.element,
      this.stack,
      this.line,
    );
    this.table = h("div", { hidden: true });
    this.element = h(
      "div",
      { class: "step-timeline" },
      h("div", { class: "toolbar step-bar" }, this.readout, this.windows.element, this.asTable),
      this.charts,
      this.table,
    );
    this.#showTable();
    this.observer = new ResizeObserver(() => this.#place());
    this.observer.observe(this.charts);
  }

  /** @param {Timeline} timeline */
  draw(timeline) {
    this.shown = timeline;
    this.readout.hidden = timeline.x.length === 0;
    this.#drawWindows();
    const range = this.#range();
    this.groups = groupsOf(timeline.x, range, GROUPS_MOST);
    this.x = middles(timeline.x, this.groups);
    this.#keepRows(timeline.rows);
    const last = timeline.rows.length - 1;
    timeline.rows.forEach((one, index) => this.#drawRow(one, range, index === last));
    if (this.isTable) this.#drawTable();
    this.#place();
  }

  close() {
    this.observer.disconnect();
    for (const { chart } of this.rows.values()) chart.close();
  }

  // -------------------------------------------------------------- what is in view

  /** @returns {[number, number]} */
  #range() {
    const { x } = /** @type {Timeline} */ (this.shown);
    if (this.zoom !== null && this.zoom[0] < x[x.length - 1] && this.zoom[1] > x[0]) return this.zoom;
    const from = this.window === null ? 0 : Math.max(0, x.length - this.window);
    return [x[from] - 0.5, x[x.length - 1] + 0.5];
  }

  /** @param {[number, number] | null} zoom @param {number | null} [window] */
  #look(zoom, window = null) {
    this.zoom = zoom;
    this.window = window;
    this.#tellLook();
    if (this.shown !== null) this.draw(this.shown);
  }

  #tellLook() {
    const { zoom, window, isTable } = this;
    this.looked({ zoom, window, isTable });
  }

  #drawWindows() {
    const { words } = this;
    const count = this.shown?.x.length ?? 0;
    const few = count <= RESERVED_STEPS && this.zoom === null;
    this.windows.element.hidden = few;
    this.windows.draw([few, this.zoom === null, this.window], () =>
      WINDOWS.map((steps) =>
        h(
          "button",
          {
            type: "button",
            "data-focus": String(steps),
            "aria-pressed": String(this.zoom === null && this.window === steps),
            click: () => this.#look(null, steps),
          },
          steps === null ? words.t("run.window_all") : words.t("run.window_last", { n: steps }),
        ),
      ),
    );
  }

  // -------------------------------------------------------------- rows

  /** @param {TimelineRow[]} rows */
  #keepRows(rows) {
    const keys = rows.map(({ key }) => key);
    if (keys.join() === [...this.rows.keys()].join()) return;
    const kept = new Map(keys.map((key) => [key, this.rows.get(key) ?? this.#makeRow(key)]));
    for (const [key, { chart }] of this.rows) if (!kept.has(key)) chart.close();
    this.rows = kept;
    fill(this.stack, ...[...kept.values()].map(({ element }) => element));
  }

  /** @param {string} key @returns {DrawnRow} */
  #makeRow(key) {
    const head = new Part("div", { class: "step-head" });
    const note = h("p", { class: "note", hidden: true });
    const plot = h("div", { class: "plot", "aria-hidden": "true" });
    const chart = new ChartView(plot, this.failed);
    const element = h("div", { class: "step-row", "data-row": key }, head.element, note, plot);
    return { element, head, note, plot, chart, values: [], row: { title: "", unit: "", lines: [] } };
  }

  /** @param {TimelineRow} one @param {[number, number]} range @param {boolean} isLast */
  #drawRow({ key, row, note }, range, isLast) {
    const drawn = /** @type {DrawnRow} */ (this.rows.get(key));
    drawn.row = thinned(row, this.groups);
    setText(drawn.note, note);
    if (note !== "") drawn.note.hidden = false; // and from then on it has its line: what is below does not move
    drawn.head.draw([row.title, row.unit, row.rightUnit, row.lines.map(({ name, colour }) => [name, colour])], () => {
      drawn.values = row.lines.map(() => h("b"));
      const names = row.lines.map((line, index) => h("li", {}, swatchOf(line), line.name, drawn.values[index]));
      return [h("h2", {}, titleOf(this.words, row)), h("ul", { class: "legend" }, ...names)];
    });
    drawn.chart.draw({
      axis: "step",
      x: this.x,
      range,
      xTitle: "",
      rowHeight: ROW_PX,
      rows: [drawn.row],
      bare: { right: RIGHT_PX, axis: isLast },
      zoomed: (from, to) => this.#look([from, to]),
      stretch: String(range),
      ticks: this.#ticks(range),
    });
  }

  /** Steps, with the time below. @param {[number, number]} range */
  #ticks(range) {
    const { x, at } = /** @type {Timeline} */ (this.shown);
    const room = Math.max(2, Math.floor((this.charts.clientWidth - LEFT_PX - RIGHT_PX) / TICK_PX));
    const every = niceStep((range[1] - range[0]) / room);
    return x.flatMap((step, index) => {
      if (step % every !== 0 || step < range[0] || step > range[1]) return [];
      const time = at[index];
      return [{ x: step, text: `${this.words.integer.format(step)}${time === null ? "" : `<br>${clockTime(this.words, time)}`}` }];
    });
  }

  // -------------------------------------------------------------- cursor

  /** @param {PointerEvent} event */
  #point(event) {
    const { left } = this.charts.getBoundingClientRect();
    const [low, high] = this.shown === null ? [0, 1] : this.#range();
    const share = (event.clientX - left - LEFT_PX) / this.#width();
    this.#pointAt(share < -0.05 || share > 1.05 ? null : low + share * (high - low));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") return this.#look(null);
    const by = /** @type {Record<string, number>} */ (moves)[event.key];
    if (by === undefined || this.x.length === 0) return;
    event.preventDefault();
    const place = Math.min(this.x.length - 1, Math.max(0, this.#place_of(this.pointed) + by));
    this.#pointAt(this.x[place]);
  }

  /** @param {number | null} step */
  #pointAt(step) {
    this.pointed = step;
    this.#tell();
  }

  /** The group nearest to a step; without one the last that was done. @param {number | null} step */
  #place_of(step) {
    if (step === null) {
      const last = this.shown?.last ?? 0;
      return Math.max(0, this.groups.findIndex(({ from, to }) => from <= last && last < to));
    }
    let nearest = 0;
    this.x.forEach((value, index) => {
      if (Math.abs(value - step) < Math.abs(this.x[nearest] - step)) nearest = index;
    });
    return nearest;
  }

  #width() {
    return Math.max(1, this.charts.clientWidth - LEFT_PX - RIGHT_PX);
  }

  /** Where a step is, px from the left. @param {number} step */
  #left(step) {
    const [low, high] = this.#range();
    return LEFT_PX + ((step - low) / (high - low)) * this.#width();
  }

  /** Puts what is drawn by hand to where plotly's lines are. */
  #place() {
    if (this.shown === null) return;
    const range = this.#range();
    this.lane.element.style.setProperty("--fall", `${this.stack.clientHeight - AXIS_PX}px`);
    this.lane.draw(this.shown.flags.filter(({ x }) => x >= range[0] && x <= range[1]), (step) => this.#left(step));
    this.#tell();
  }

  /** The numbers of the step that is pointed at. */
  #tell() {
    const { shown, words } = this;
    const place = this.#place_of(this.pointed);
    const group = this.groups[place];
    if (shown === null || group === undefined) return;
    const [from, to] = [shown.x[group.from], shown.x[group.to - 1]];
    const at = shown.at[group.to - 1];
    const name = from === to ? words.t("run.step", { step: from }) : words.t("run.steps", { from, to });
    const when = at === null ? (group.from > shown.last && to <= shown.foretold ? words.t("run.foretold") : "") : clockTime(words, at);
    setText(this.readout, when === "" ? name : `${name} · ${when}`);
    this.readout.title = at === null ? "" : moment(words, at);
    const said = [...this.rows.values()].flatMap(({ row, values }) =>
      row.lines.map((line, index) => {
        const value = line.y[place] ?? null;
        const told = value === null ? UNKNOWN : written(words, row, line, place, value);
        if (values[index] !== undefined) setText(values[index], told);
        return value === null ? "" : `${line.name} ${told}`;
      }),
    );
    this.readout.setAttribute("aria-valuemin", String(shown.x[0]));
    this.readout.setAttribute("aria-valuemax", String(shown.x[shown.x.length - 1]));
    this.readout.setAttribute("aria-valuenow", String(to));
    this.readout.setAttribute("aria-valuetext", [this.readout.textContent, ...said].filter((part) => part !== "").join(this.words.t("text.and")));
    this.line.hidden = this.isTable;
    this.line.style.transform = `translateX(${this.#left(this.x[place])}px)`;
  }

  // -------------------------------------------------------------- as a table

  #toggleTable() {
    this.isTable = !this.isTable;
    this.#tellLook();
    this.#showTable();
  }

  #showTable() {
    this.asTable.setAttribute("aria-pressed", String(this.isTable));
    this.charts.hidden = this.isTable;
    this.table.hidden = !this.isTable;
    if (this.isTable) this.#drawTable();
    else this.table.replaceChildren();
  }

  #drawTable() {
    if (this.shown !== null) fill(this.table, stepTable(this.words, this.shown, this.#range()));
  }
}

/** @param {Words} words @param {Row} row with the unit of each of its axes */
const titleOf = (words, { title, unit, rightUnit: right }) =>
  right === undefined ? words.t("text.noted", { text: title, note: unit }) : words.t("chart.two_units", { title, unit, right });

/** @param {Words} words @param {Row} row @param {Line} line @param {number} place @param {number} value */
function written(words, row, line, place, value) {
  const unit = (line.right ? row.rightUnit : row.unit) ?? "";
  const number = `${beside(words, value, unit)}\u00a0${unit}`;
  const about = line.about?.[place] ?? null;
  return about === null ? number : words.t("text.noted", { text: number, note: about });
}

/** 1, 2 or 5 times a power of ten, at least so much. @param {number} least */
export function niceStep(least) {
  if (least <= 1) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? 10 * power;
}
