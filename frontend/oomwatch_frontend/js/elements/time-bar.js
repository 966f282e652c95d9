// Which stretch of time the charts of a page show: usual spans, closer and further off, earlier and later, or any. It is in
// the address, so that a link shows the same.

import { Part, h } from "../dom.js";
import { duration, moment } from "../format.js";
import { fromStamp, localStamp } from "../ink.js";
import { link, parseRoute } from "../router.js";
import { pushAddress } from "../scrolling.js";
import { SPANS, between, endsOf, panned, readRange, writeRange, zoomed } from "../timerange.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../router.js").Route} Route */
/** @typedef {import("../timerange.js").Range} Range */

const CLOSER = 1 / 2;
const PAN = 1 / 4; // of what is shown
/** Keys of a chart that has the focus. @type {Record<string, (range: Range, now: number) => Range>} */
const KEYS = {
  ArrowLeft: (range, now) => panned(range, -PAN, now),
  ArrowRight: (range, now) => panned(range, PAN, now),
  "+": (range, now) => zoomed(range, CLOSER, now),
  "=": (range, now) => zoomed(range, CLOSER, now),
  "-": (range, now) => zoomed(range, 1 / CLOSER, now),
  End: (range) => backToLive(range),
};

/** @param {Range} range @returns {Range} */
const backToLive = (range) => ({ live: true, span: range.live ? range.span : Math.max(SPANS[0], range.to - range.from) });

export class TimeBar {
  /** @param {App} app @param {Route} route @param {(range: Range) => void} changed */
  constructor(app, route, changed) {
    this.app = app;
    this.route = route;
    this.changed = changed;
    this.range = readRange(route.query);
    this.part = new Part("div", { class: "time-bar", role: "group", "aria-label": app.words.t("chart.span") });
    this.element = this.part.element;
    this.draw();
  }

  /** Shows another stretch, and writes it into the address. @param {Range} range */
  show(range) {
    this.range = range;
    pushAddress(this.#address(range));
    this.draw();
    this.changed(range);
  }

  /** Shows the last so many seconds, which nobody chose: the address does not say so. @param {number} span */
  fit(span) {
    this.range = /** @type {Range} */ ({ live: true, span });
    this.draw();
  }

  /** @param {Range} range */
  #address(range) {
    return link(this.route.view, this.route.args, { ...this.#others(), ...writeRange(range) });
  }

  /** What else the address says. */
  #others() {
    const { from: _from, to: _to, span: _span, ...others } = parseRoute(location.hash).query;
    return others;
  }

  /** Someone dragged across a chart. @param {number} from @param {number} to Unix seconds */
  dragged(from, to) {
    this.show(between(from, to, this.app.store.now()));
  }

  /** A key on a chart. @param {KeyboardEvent} event */
  key(event) {
    const act = KEYS[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.show(act(this.range, this.app.store.now()));
  }

  draw() {
    this.part.draw(this.range, () => [this.#spans(), this.#steps(), this.#own(), ...this.#standing()]);
  }

  #spans() {
    const { words } = this.app;
    const links = SPANS.map((span) => {
      const range = /** @type {Range} */ ({ live: true, span });
      const current = this.range.live && this.range.span === span;
      const follow = (/** @type {MouseEvent} */ event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return; // another tab or window
        event.preventDefault();
        this.show(range);
      };
      const attributes = { href: this.#address(range), "aria-current": current ? "true" : null, click: follow };
      return h("a", { ...attributes, "data-focus": `span-${span}` }, span === 86_400 ? words.t("range.day") : duration(words, span));
    });
    return h("div", { class: "choice" }, ...links);
  }

  #steps() {
    const { words } = this.app;
    const steps = /** @type {[string, string, string][]} */ ([
      ["ArrowLeft", "‹", "range.earlier"],
      ["ArrowRight", "›", "range.later"],
      ["+", "+", "range.closer"],
      ["-", "−", "range.further"],
    ]);
    const buttons = steps.map(([key, sign, name]) => {
      const disabled = key === "ArrowRight" && this.range.live;
      const click = () => this.show(KEYS[key](this.range, this.app.store.now()));
      const label = words.t(name);
      return h("button", { type: "button", "aria-label": label, title: label, disabled, click, "data-focus": key }, sign);
    });
    return h("div", { class: "steps" }, ...buttons);
  }

  /** Any stretch, by its two ends. */
  #own() {
    const { words, store } = this.app;
    const ends = endsOf(this.range, store.now());
    const [from, to] = ends.map((end) => h("input", { type: "datetime-local", step: 1, value: localStamp(end).slice(0, 19).replace(" ", "T") }));
    const problem = h("p", { class: "problem", role: "alert" });
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      const [start, end] = [from, to].map((input) => fromStamp(input.value.replace("T", " ")));
      if (start < end && start < store.now()) this.show(between(start, end, store.now()));
      else problem.textContent = words.t("range.wrong");
    };
    return h(
      "details",
      {},
      h("summary", { "data-focus": "own" }, words.t("range.own")),
      h(
        "form",
        { submit },
        h("label", {}, words.t("range.from"), from),
        h("label", {}, words.t("range.to"), to),
        h("button", { type: "submit" }, words.t("range.show")),
        problem,
      ),
    );
  }

  #standing() {
    if (this.range.live) return [];
    const { words } = this.app;
    const { from, to } = this.range;
    const shown = words.t("range.standing", { from: moment(words, from), to: moment(words, to) });
    const click = () => this.show(backToLive(this.range));
    const back = h("button", { type: "button", class: "primary", click, "data-focus": "live" }, words.t("range.live"));
    return [back, h("span", { class: "standing", role: "status" }, shown)];
  }
}
