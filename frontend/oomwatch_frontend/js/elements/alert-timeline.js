// Alerts on wall time: a row for each rule, under its run or node. By keyboard it is one stop: arrows go from bar to bar,
// Enter leads to the alert, + and - zoom. What is pointed at is told above, where nothing moves for it.

import { Part, fill, h, keyed } from "../dom.js";
import { lanesOf } from "../alertline.js";
import { markIcon } from "../marks.js";
import { link } from "../router.js";
import { tickText, ticks, zoneName } from "../timeticks.js";
import { AlertBar, barLines } from "./alert-bar.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../alertline.js").Lane} Lane */
/** @typedef {import("../alertline.js").Row} Row */

const TICK_PX = 88;
const LABEL_PX = 80; // that the longest of them takes, and the margins of the axis
const BAR_PX = 26; // what begins closer than this to another is one bar with it
const NARROW_PX = 640; // names stand above their row

/** @typedef {{ ends: [number, number], now: number, live: boolean, by: import("../alertline.js").By, query: import("../alertfilter.js").Filter }} Look */

export class AlertTimeline {
  /** @param {App} app @param {{ key: (event: KeyboardEvent) => void, dragged: (from: number, to: number) => void }} bar */
  constructor(app, bar) {
    this.app = app;
    this.bar = bar;
    const { words } = app;
    this.readout = h("div", { class: "alertline-told" });
    this.axis = new Part("div", { class: "alertline-axis", "aria-hidden": "true" });
    this.lanes = h("div", { class: "alertline-lanes" });
    this.picked = h("i", { class: "alertline-picked", hidden: true });
    this.now = h("i", { class: "alertline-now", title: words.t("alertline.now") });
    const over = h("div", { class: "alertline-over", "aria-hidden": "true" }, this.now, this.picked);
    this.body = h(
      "div",
      {
        class: "alertline-body",
        role: "group",
        "aria-label": words.t("alertline.what"),
        keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        focusin: (/** @type {FocusEvent} */ event) => this.#focused(event),
        pointerover: (/** @type {PointerEvent} */ event) => this.#tell(this.#barAt(event.target)),
        pointerdown: (/** @type {PointerEvent} */ event) => this.#drag(event),
      },
      this.axis.element,
      over,
      this.lanes,
    );
    this.element = h("div", { class: "alertline" }, this.readout, this.body);
    /** @type {WeakMap<Element, AlertBar>} */
    this.bars = new WeakMap();
    /** @type {WeakMap<Element, LaneView>} */
    this.views = new WeakMap();
    this.#tell(null);
    this.observer = new ResizeObserver(() => this.look !== undefined && this.draw(this.spans ?? [], this.look));
    this.observer.observe(this.body);
  }

  close() {
    this.observer.disconnect();
  }

  /** @param {import("../alertwire.js").Span[]} spans @param {Look} look */
  draw(spans, look) {
    this.spans = spans;
    this.look = look;
    const { ends, now } = look;
    const width = this.#width();
    const lanes = lanesOf(spans, look.by, ((ends[1] - ends[0]) * BAR_PX) / width);
    const marks = ticks(ends, Math.max(2, Math.floor(width / TICK_PX)));
    this.axis.draw([marks.map(({ at }) => at), ends, zoneName(), width], () => this.#marks(marks, ends, width));
    this.body.classList.toggle("narrow", this.body.clientWidth < NARROW_PX);
    this.now.hidden = now < ends[0] || now > ends[1];
    this.now.style.left = `${((now - ends[0]) / (ends[1] - ends[0])) * 100}%`;
    keyed(this.lanes, lanes, ({ key }) => key, () => this.#laneView(), (element, lane) => this.views.get(element)?.draw(lane, look));
    this.#keepOneStop();
  }

  /** Of the track, without the names beside it. */
  #width() {
    const names = this.body.clientWidth < NARROW_PX ? 0 : parseFloat(getComputedStyle(this.body).getPropertyValue("--names"));
    return Math.max(120, this.body.clientWidth - names);
  }

  /** @param {{ at: number, step: number }[]} marks @param {[number, number]} ends @param {number} width px */
  #marks(marks, ends, width) {
    return marks.map((mark) => {
      const share = (mark.at - ends[0]) / (ends[1] - ends[0]);
      const fits = (1 - share) * width > LABEL_PX; // at the edge the mark stands alone
      const element = h("span", {}, fits ? tickText(this.app.words, mark) : "");
      element.style.left = `${share * 100}%`;
      return element;
    });
  }

  #laneView() {
    const view = new LaneView(this.app, this.bars);
    this.views.set(view.element, view);
    return view.element;
  }

  // -------------------------------------------------------------- one at a time

  #all() {
    return /** @type {HTMLElement[]} */ ([...this.lanes.querySelectorAll(".alert-bar")]);
  }

  /** Tab leads to one bar: the one that had the focus last, else the first. */
  #keepOneStop() {
    if (this.lanes.querySelector('.alert-bar[tabindex="0"]') === null) this.#all()[0]?.setAttribute("tabindex", "0");
  }

  /** @param {FocusEvent} event */
  #focused(event) {
    const bar = this.#barAt(event.target);
    if (bar === null) return;
    for (const other of this.lanes.querySelectorAll('.alert-bar[tabindex="0"]')) other.setAttribute("tabindex", "-1");
    bar.element.setAttribute("tabindex", "0");
    this.#tell(bar);
  }

  /** @param {EventTarget | null} target */
  #barAt(target) {
    const element = target instanceof Element ? target.closest(".alert-bar") : null;
    return element === null ? null : (this.bars.get(element) ?? null);
  }

  /** @param {AlertBar | null} bar null: nothing is pointed at; what was told last stays */
  #tell(bar) {
    const { words } = this.app;
    if (bar?.bar == null || this.look === undefined) {
      if (this.readout.childElementCount === 0) fill(this.readout, h("p", { class: "muted" }, words.t("alertline.hint")));
      return;
    }
    const [first, ...rest] = barLines(words, bar.bar, this.look.now);
    const level = bar.bar.level;
    fill(this.readout, h("p", {}, markIcon(level), h("b", {}, first)), ...rest.map((line) => h("p", {}, line)));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const at = this.#barAt(event.target);
    const next = at === null ? null : this.#neighbour(at.element, event.key);
    if (next === undefined || next === null) {
      if (["+", "=", "-"].includes(event.key)) this.bar.key(event);
      else if (event.key.startsWith("Arrow") && at !== null) event.preventDefault();
      return;
    }
    event.preventDefault();
    next.focus();
  }

  /** @param {HTMLElement} bar @param {string} key */
  #neighbour(bar, key) {
    const all = this.#all();
    const row = [.../** @type {Element} */ (bar.parentElement).children];
    const place = row.indexOf(bar);
    const moves = { ArrowLeft: row[place - 1], ArrowRight: row[place + 1], Home: row[0], End: row[row.length - 1] };
    if (key in moves) return /** @type {HTMLElement | undefined} */ (/** @type {Record<string, Element>} */ (moves)[key]);
    if (key !== "ArrowUp" && key !== "ArrowDown") return undefined;
    const others = key === "ArrowDown" ? all.slice(all.indexOf(bar)) : all.slice(0, all.indexOf(bar)).reverse();
    const first = others.find((one) => one.parentElement !== bar.parentElement);
    const there = others.filter((one) => first !== undefined && one.parentElement === first.parentElement);
    const left = bar.offsetLeft;
    return there.sort((a, b) => Math.abs(a.offsetLeft - left) - Math.abs(b.offsetLeft - left))[0];
  }

  // -------------------------------------------------------------- a stretch to look at

  /** Dragging across shows what was dragged across. @param {PointerEvent} event */
  #drag(event) {
    if (event.button !== 0 || event.pointerType === "touch" || this.look === undefined) return; // a finger scrolls
    const box = /** @type {HTMLElement} */ (this.picked.parentElement).getBoundingClientRect();
    const shareAt = (/** @type {PointerEvent} */ one) => Math.min(1, Math.max(0, (one.clientX - box.left) / box.width));
    const start = shareAt(event);
    if (event.clientX < box.left) return;
    let end = start;
    const move = (/** @type {PointerEvent} */ moved) => {
      end = shareAt(moved);
      this.picked.hidden = Math.abs(end - start) * box.width < 8;
      this.picked.style.left = `${Math.min(start, end) * 100}%`;
      this.picked.style.width = `${Math.abs(end - start) * 100}%`;
    };
    const up = () => {
      removeEventListener("pointermove", move);
      if (this.picked.hidden || this.look === undefined) return;
      this.picked.hidden = true;
      const [from, to] = this.look.ends;
      this.body.addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
      setTimeout(() => this.bar.dragged(from + Math.min(start, end) * (to - from), from + Math.max(start, end) * (to - from)));
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up, { once: true });
  }
}

/** All of one run or node. */
class LaneView {
  /** @param {App} app @param {WeakMap<Element, AlertBar>} bars */
  constructor(app, bars) {
    this.app = app;
    this.bars = bars;
    this.head = new Part("h2");
    this.rows = h("div");
    this.element = h("section", { class: "alertline-lane" }, this.head.element, this.rows);
    /** @type {WeakMap<Element, HTMLElement>} */
    this.tracks = new WeakMap();
  }

  /** @param {Lane} lane @param {Look} look */
  draw(lane, look) {
    const { words } = this.app;
    this.head.draw([lane.by, lane.name, lane.count, lane.open], () => [
      lane.name === "" ? h("span", {}, words.t("alertline.nowhere")) : h("a", { href: link(lane.by, [lane.name]) }, lane.name),
      h("span", { class: "muted" }, words.count("alertline.count", lane.count), lane.open === 0 ? null : ` · ${words.t("alertline.open", { n: lane.open })}`),
    ]);
    keyed(this.rows, lane.rows, ({ key }) => key, (row) => this.#row(row), (element, row) => this.#draw(element, row, look));
  }

  /** @param {Row} row */
  #row({ alert, severity, level }) {
    const { words } = this.app;
    const track = h("div", { class: "alertline-track" });
    const name = h("div", { class: "alertline-name" }, markIcon(level, words.t(`severity.${severity}`)), h("code", {}, alert));
    const element = h("div", { class: "alertline-row" }, name, track);
    this.tracks.set(element, track);
    return element;
  }

  /** @param {HTMLElement} element @param {Row} row @param {Look} look */
  #draw(element, { bars }, { ends, now, query }) {
    const track = this.tracks.get(element);
    if (track === undefined) return;
    const create = () => {
      const made = new AlertBar(this.app.words);
      this.bars.set(made.element, made);
      return made.element;
    };
    keyed(track, bars, ({ key }) => key, create, (one, bar) => this.bars.get(one)?.draw(bar, ends, now, query));
  }
}
