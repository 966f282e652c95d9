// One rule: what it watches, where it fires or is about to, what it last saw, its overrides and how good it was.

import { Part, h } from "../dom.js";
import { UNKNOWN, duration, quantity } from "../format.js";
import { levelOf } from "../judge.js";
import { markIcon } from "../marks.js";
import { aged, facts, nothing, placeName, row, table } from "../parts.js";
import { link } from "../router.js";
import { watched } from "../rule-words.js";
import { openOf } from "../rulewatch.js";
import { toldValue } from "./alert-figures.js";
import { RuleSeen } from "./rule-seen.js";
import { RuleSwitch } from "./rule-switch.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../rulewire.js").RuleRow} Rule */
/** @typedef {import("../rulewire.js").Score} Score */
/** @typedef {import("../wire.js").Alert} Alert */

export class RuleRow {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.head = new Part("summary");
    this.now = new Part("div");
    this.body = new Part("div");
    this.seen = new RuleSeen(app);
    this.switch = new RuleSwitch(app);
    const now = h("div", { class: "rule-now" }, this.now.element, this.seen.element);
    const inner = h("div", { class: "rule-body" }, now, h("div", {}, this.body.element, this.switch.element));
    this.element = h("details", { class: "rule" }, this.head.element, inner);
    this.element.addEventListener("toggle", () => this.#drawBody());
    /** @type {Rule | null} */
    this.rule = null;
    /** @type {Score | null} */
    this.score = null;
  }

  /** @param {Rule} rule @param {Score | null} score @param {boolean | null} editable null: not known yet */
  draw(rule, score, editable) {
    this.editable = editable;
    const { words, store } = this.app;
    this.rule = rule;
    this.score = score;
    const open = openOf(store.alerts.values(), rule);
    const firing = open.filter((alert) => alert.state === "firing").length;
    this.element.classList.toggle("rule-off", !rule.enabled);
    this.head.draw([rule, firing, open.length, open[0]?.severity], () => [
      open.length > 0 ? markIcon(levelOf(open[0])) : h("span", { class: "mark" }),
      h("b", {}, rule.alert),
      h("span", { class: "muted" }, words.t(`severity.${rule.severity}`)),
      h("span", { class: "rule-when" }, watched(words, rule.when)),
      standing(words, rule, firing, open.length - firing),
    ]);
    this.#drawBody();
  }

  #drawBody() {
    if (!this.element.open || this.rule === null) return;
    const { words, store } = this.app;
    const { rule, score } = this;
    const open = openOf(store.alerts.values(), rule);
    this.seen.draw(rule);
    this.switch.draw(rule, this.editable ?? null);
    this.now.draw([open], () => [
      h("h3", {}, words.t("rules.now")),
      open.length === 0 ? nothing(words.t("rules.quiet")) : subjects(words, open),
    ]);
    this.body.draw([rule, score], () => [
      h("h3", {}, words.t("rules.how")),
      facts([...timing(words, rule), [words.t("rules.in_file"), h("code", {}, rule.watches)]]),
      rule.overrides.length > 0 ? h("h3", {}, words.t("rules.overrides")) : null,
      rule.overrides.length > 0 ? overrides(words, rule) : null,
      h("h3", {}, words.t("rules.scorecard")),
      score === null ? nothing(words.t("rules.no_score")) : facts(scoreFacts(words, score)),
    ]);
  }
}

/** @param {import("../i18n.js").Words} words @param {Rule} rule @param {number} firing @param {number} pending */
function standing(words, rule, firing, pending) {
  const said = [
    firing > 0 ? words.count("rules.fires", firing) : "",
    pending > 0 ? words.count("rules.pending", pending) : "",
    rule.enabled ? "" : words.t(rule.overrides.some(({ enabled }) => enabled) ? "rules.off_mostly" : "rules.off"),
  ];
  return h("span", { class: "when" }, said.filter((part) => part !== "").join(" · "));
}

/** @param {import("../i18n.js").Words} words @param {Alert[]} open */
function subjects(words, open) {
  const rows = open.map((alert) => {
    const state = words.t(alert.state === "pending" ? "rules.state_pending" : "rules.state_firing");
    const where = h("a", { href: link("alerts", [], { id: alert.id }) }, placeName(words, alert.labels) || alert.alert);
    const value = toldValue(words, alert) ?? UNKNOWN;
    const limit = quantity(words, alert.limit, alert.unit);
    return row([where, state, value, limit, aged(words, "alerts.since", alert.started_at)], [2, 3]);
  });
  const heads = ["alerts.where", "rules.state", "alerts.value", "alerts.limit", "rules.since"].map((key) => words.t(key));
  return table(words, heads, [2, 3], h("tbody", {}, ...rows));
}

/** @param {import("../i18n.js").Words} words @param {Rule | import("../rulewire.js").OverrideRow} rule @returns {[string, import("../dom.js").Child][]} */
function timing(words, rule) {
  const keep = [
    rule.keep_firing_for_seconds > 0 ? duration(words, rule.keep_firing_for_seconds) : "",
    rule.keep_firing_steps > 0 ? words.count("figure.steps", rule.keep_firing_steps) : "",
  ].filter((part) => part !== "");
  return [
    ["scope" in rule ? words.t("rules.scope") : "", "scope" in rule ? words.t(`rules.scope_${rule.scope}`) : null],
    [words.t("rules.for"), rule.for_seconds === 0 ? words.t("rules.at_once") : duration(words, rule.for_seconds)],
    [words.t("rules.keep"), keep.length === 0 ? words.t("rules.at_once") : keep.join(words.t("rules.or"))],
  ];
}

/** @param {import("../i18n.js").Words} words @param {Rule} rule */
function overrides(words, { overrides: all }) {
  const rows = all.map((one) =>
    row(
      [
        h("code", {}, `node ${one.node}, run ${one.run}`),
        words.t(one.enabled ? "rules.on" : "rules.off"),
        watched(words, one.when),
        duration(words, one.for_seconds),
      ],
      [],
    ),
  );
  const heads = ["rules.override_for", "rules.state", "rules.watches", "rules.for"].map((key) => words.t(key));
  return table(words, heads, [], h("tbody", {}, ...rows));
}

/** @param {import("../i18n.js").Words} words @param {Score} score @returns {[string, import("../dom.js").Child][]} */
function scoreFacts(words, score) {
  const lead = score.lead_seconds_median;
  const steps = score.lead_steps_median;
  const timed = lead === null ? null : duration(words, lead);
  const inSteps = steps === null ? null : words.count("figure.steps", Math.round(steps));
  return [
    [words.t("rules.caught"), words.t("rules.caught_of", { n: score.in_time, failures: score.failures })],
    [words.t("rules.lead"), timed === null || inSteps === null ? timed : words.t("text.noted", { text: timed, note: inSteps })],
    [words.t("rules.verdicts"), words.t("rules.verdicts_of", { happened: score.happened, avoided: score.avoided, false: score.false, open: score.open })],
  ];
}
