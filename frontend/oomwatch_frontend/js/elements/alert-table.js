// Alerts over time as a table: the numbers of the timeline, for whoever cannot see it, and to copy.

import { Part, h } from "../dom.js";
import { UNKNOWN, age, duration, quantity } from "../format.js";
import { levelOfRule } from "../judge.js";
import { markIcon } from "../marks.js";
import { exactTime, placeName, row, table } from "../parts.js";
import { link } from "../router.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../alertwire.js").Span} Span */

const NUMERIC = [6, 7];

export class AlertTable {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.part = new Part("div", { class: "alert-table" });
    this.element = this.part.element;
  }

  close() {}

  /** @param {Span[]} spans @param {import("./alert-timeline.js").Look} look */
  draw(spans, { now, query }) {
    const { words } = this.app;
    const newest = [...spans].sort((a, b) => b.started_at - a.started_at);
    const heads = ["severity", "rule", "where", "state", "began", "ended", "lasted", "value", "outcome"].map((name) => words.t(`alertline.col_${name}`));
    const minutes = newest.some(({ state }) => state !== "resolved") ? Math.floor(now / 10) : 0;
    this.part.draw([newest, minutes], () => [table(words, heads, NUMERIC, h("tbody", {}, ...newest.map((span) => this.#row(span, now, query))))]);
  }

  /** @param {Span} span @param {number} now @param {import("../alertfilter.js").Filter} query */
  #row(span, now, { show: _show, ...query }) {
    const { words } = this.app;
    const { id, alert, severity, state, labels, started_at, ended_at, value, unit, outcome } = span;
    const mark = h("span", { class: "level" }, markIcon(levelOfRule(span)), words.t(`severity.${severity}`));
    const name = h("a", { href: link("alerts", [], { ...query, id }), title: span.summary }, alert);
    const where = [...new Set([placeName(words, labels), labels.run])].filter((part) => part).join(" · ");
    const standing = state === "resolved" ? "ended" : state === "pending" ? "pending" : span.muted ? "muted" : span.acknowledged_by === null ? "firing" : "acknowledged";
    const verdict = outcome === null ? UNKNOWN : `outcome.${outcome}` in words.catalogue ? words.t(`outcome.${outcome}`) : outcome;
    return row(
      [
        mark,
        name,
        where,
        words.t(`alertline.is_${standing}`),
        exactTime(words, started_at),
        ended_at === null ? UNKNOWN : exactTime(words, ended_at),
        ended_at === null ? age(words, now - started_at) : duration(words, ended_at - started_at),
        quantity(words, value, unit),
        verdict,
      ],
      NUMERIC,
    );
  }
}
