// What a rule sees now: how many subjects it judges, what it last read of those nearest to its limit, and why it cannot tell
// of others. Asked of the server while somebody looks.

import { ApiError, ask } from "../api.js";
import { Part, h } from "../dom.js";
import { UNKNOWN, quantity } from "../format.js";
import { nothing, places, row, table } from "../parts.js";
import { firesOn, openOf } from "../rulewatch.js";
import { readRuleNow } from "../rulewire.js";
import { WireError } from "../wire.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../rulewire.js").RuleRow} Rule */
/** @typedef {import("../rulewire.js").RuleNow} RuleNow */

const PACE_SECONDS = 5; // a table that moves faster cannot be read
const NUMERIC = [2, 3];
const HEADS = /** @type {const} */ (["alerts.where", "rules.state", "alerts.value", "alerts.limit"]);

export class RuleSeen {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.part = new Part("div", { class: "rule-seen" });
    this.element = this.part.element;
    this.askedAt = -Infinity;
    this.part.draw("asking", () => [nothing(app.words.t("rules.seen_asking"))]);
  }

  /** Asks again where the last answer is old. @param {Rule} rule */
  draw(rule) {
    const now = this.app.store.now();
    if (now - this.askedAt < PACE_SECONDS) return;
    this.askedAt = now;
    void this.#ask(rule);
  }

  /** @param {Rule} rule */
  async #ask(rule) {
    const { words } = this.app;
    try {
      const answer = readRuleNow(await ask("GET", `rules/${encodeURIComponent(rule.alert)}/now?severity=${rule.severity}`));
      const { at: _at, ...told } = answer;
      this.part.draw([told, rule.when], () => this.#told(rule, answer));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      this.part.draw(error.message, () => [nothing(words.t("rules.seen_failed", { reason: error.message }))]);
    }
  }

  /** @param {Rule} rule @param {RuleNow} now */
  #told(rule, now) {
    const { words, store } = this.app;
    const counts = /** @type {const} */ (["active", "inactive", "unknown", "off"]).filter((state) => now[state] > 0);
    const sentence = counts.map((state) => words.t(`rules.seen_${state}`, { n: now[state] })).join(" · ");
    const more = now.active + now.inactive + now.unknown + now.off - now.subjects.length;
    const open = openOf(store.alerts.values(), rule);
    const rows = now.subjects.map(({ labels, state, value, limit, unit }) =>
      row([places(words, labels), words.t(state !== "active" && firesOn(open, labels) ? "rules.is_held" : `rules.is_${state}`), quantity(words, value, unit), limit === null ? UNKNOWN : quantity(words, limit, unit)], NUMERIC),
    );
    return [
      h("h3", {}, words.t("rules.last_values")),
      counts.length === 0 ? nothing(words.t("rules.no_values")) : h("p", {}, sentence),
      rows.length === 0 ? null : table(words, HEADS.map((key) => words.t(key)), NUMERIC, h("tbody", {}, ...rows)),
      more > 0 ? h("p", { class: "muted" }, words.t("rules.seen_more", { n: more })) : null,
      now.unknown === 0 ? null : h("p", { class: "muted" }, words.t("rules.unknown_because"), " ", this.#needs(rule)),
    ];
  }

  /** What its conditions need to be judged. @param {Rule} rule */
  #needs({ when }) {
    const { words } = this.app;
    const sentences = when.map(({ kind, metric }) => {
      const key = `rules.needs_${typeof metric === "string" ? metric : kind}`;
      return key in words.catalogue ? words.t(key) : String(metric ?? kind);
    });
    return [...new Set(sentences)].join(" ");
  }
}
