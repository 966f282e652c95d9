// What happened before: earlier alerts of the same rule on the same run (or node), and what became of them. Asked of the
// server once for each alert that somebody unfolds.

import { ApiError, ask } from "../api.js";
import { readSpans } from "../alertwire.js";
import { fill, h, since } from "../dom.js";
import { duration, moment } from "../format.js";
import { levelOfRule } from "../judge.js";
import { markIcon } from "../marks.js";
import { placeName } from "../parts.js";
import { link } from "../router.js";
import { WireError } from "../wire.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Alert} Alert */
/** @typedef {import("../alertwire.js").Span} Span */

const SHOWN = 5;
const ASKED = 200;

export class AlertBefore {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "";
    this.list = h("div", { "aria-live": "polite" });
    this.element = h("div", { class: "before" }, h("h3", {}, app.words.t("before.title")), this.list);
  }

  /** @param {Alert} alert */
  draw(alert) {
    if (alert.id === this.id) return;
    this.id = alert.id;
    fill(this.list, h("p", { class: "muted" }, this.app.words.t("before.asking")));
    void this.#ask(alert);
  }

  /** @param {Alert} alert an answer to an older question is dropped */
  async #ask(alert) {
    const { words } = this.app;
    const { node, run } = alert.labels;
    /** @type {Record<string, string>} */
    const place = run !== undefined ? { run } : node !== undefined ? { node } : {};
    const search = new URLSearchParams({ from: "0", to: String(alert.started_at), alert: alert.alert, limit: String(ASKED), lang: words.language, ...place });
    try {
      const { alerts } = readSpans(await ask("GET", `alerts/timeline?${search}`));
      if (alert.id === this.id) fill(this.list, ...this.#told(alert, alerts));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (alert.id === this.id) fill(this.list, h("p", { class: "muted" }, words.t("before.failed", { reason: error.message })));
    }
  }

  /** @param {Alert} alert @param {Span[]} spans @returns {import("../dom.js").Child[]} */
  #told(alert, spans) {
    const { words } = this.app;
    const { gpu, node, run } = alert.labels;
    const before = spans.filter((span) => span.started_at < alert.started_at && span.state === "resolved" && span.fired_at !== null);
    if (before.length === 0) return [h("p", { class: "muted" }, words.t(run === undefined ? "before.none_node" : "before.none_run"))];
    const here = before.filter(({ labels }) => labels.node === node && labels.gpu === gpu).length;
    const count = words.count("before.count", before.length);
    const sentence = gpu === undefined ? count : words.t(here === 0 ? "before.elsewhere" : "before.here", { count, here });
    const all = link("alerts", [], { show: "timeline", alert: alert.alert, run: run ?? "", node: run === undefined ? (node ?? "") : "", span: "604800" });
    const items = before.slice(0, SHOWN).map((span) => this.#item(span));
    return [
      h("p", {}, sentence, " ", h("a", { href: all }, words.t("before.all"))),
      h("ul", { class: "told-list" }, ...items),
    ];
  }

  /** @param {Span} span */
  #item(span) {
    const { words } = this.app;
    const { id, severity, labels, started_at, ended_at, outcome } = span;
    const [ago, rest = ""] = words.t("before.line", { where: placeName(words, labels), lasted: duration(words, (ended_at ?? started_at) - started_at) }).split("{age}");
    const verdict = outcome === null ? null : h("b", {}, ` · ${`outcome.${outcome}` in words.catalogue ? words.t(`outcome.${outcome}`) : outcome}`);
    return h(
      "li",
      {},
      markIcon(levelOfRule(span), words.t(`severity.${severity}`)),
      h("span", {}, h("a", { href: link("alerts", [], { id }), title: moment(words, started_at) }, ago, since(started_at), rest), verdict),
    );
  }
}
