// What a rule watches, in words: a sentence for each kind of condition, every number with its unit
// (docs/reference/rules.md lists kinds, keys and signals).

import { duration, gib, percent, quantity, stretch } from "./format.js";

/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {Record<string, unknown>} Condition as the server has it: every key of the kind, absent ones null */

/** A signal's name ends in its unit. @param {string} metric */
const unitOf = (metric) => /_(ratio|bytes|seconds|celsius)$/.exec(metric)?.[1] ?? "count";

/** Keys whose numbers are no shares. @type {Record<string, (words: Words, value: number) => string>} */
const WRITTEN = {
  within: stretch,
  blocks_within: stretch,
  window: stretch,
  steady: duration,
  within_steps: (words, value) => words.count("figure.steps", value),
  steps: (words, value) => words.count("figure.steps", value),
  steady_steps: (words, value) => words.count("figure.steps", value),
  in_steps: (words, value) => words.integer.format(value),
  of_steps: (words, value) => words.count("figure.steps", value),
  above_per_minute: (words, value) => quantity(words, value, "count"),
};

/** @param {Words} words @param {Condition[]} when */
export const watched = (words, when) => apart(when.map((condition) => inWords(words, condition)).join(words.t("rules.or_else")));

/** Chinese stands apart from Latin letters that follow it, wherever two pieces were put together. @param {string} text */
const apart = (text) => text.replace(/(\p{Script=Han})(?=[\w/])/gu, "$1 ");

/** @param {Words} words @param {Condition} condition */
function inWords(words, condition) {
  const kind = String(condition.kind);
  const key = `rules.when_${kind}${variant(condition)}`;
  const sentence = words.t(key, numbers(words, condition));
  return sentence === key ? kind : sentence + steady(words, condition);
}

/** Of what is counted, and of time, there is more than so much; anything else is above it. */
const MORE_OF = ["count", "seconds"];

/** A threshold is from above or from below; a plan may be exceeded at any height. @param {Condition} condition */
function variant(condition) {
  if (condition.kind === "threshold") return typeof condition.below === "number" ? "_below" : MORE_OF.includes(unitOf(String(condition.metric))) ? "_more" : "_above";
  return condition.kind === "plan" && condition.peak_above === 0 ? "_anywhere" : "";
}

/** @param {Words} words @param {Condition} condition */
function steady(words, condition) {
  if (typeof condition.steady_steps !== "number" || condition.steady_steps === 0) return "";
  return words.t("rules.when_steady", numbers(words, condition));
}

/** @param {Words} words @param {Condition} condition @returns {Record<string, string>} */
function numbers(words, condition) {
  /** @type {Record<string, string>} */
  const said = {};
  for (const [name, value] of Object.entries(condition)) {
    if (typeof value === "number") said[name] = written(words, condition, name, value);
  }
  if (typeof condition.steps === "number") said.in_a_row = words.count("rules.in_a_row", condition.steps);
  if (typeof condition.metric === "string") said.metric = words.t(`rules.signal_${condition.metric}`);
  if (Array.isArray(condition.of)) said.of = condition.of.map((one) => words.t(`rules.of_${one}`)).join(words.t("rules.or"));
  return said;
}

/** @param {Words} words @param {Condition} condition @param {string} name @param {number} value */
function written(words, condition, name, value) {
  if (name in WRITTEN) return WRITTEN[name](words, value);
  const unit = unitOf(String(condition.metric ?? "_ratio"));
  if (unit !== "ratio" && (name === "above" || name === "below")) return quantity(words, value, unit);
  return name === "by" && value > 1 ? gib(words, value) : share(words, value);
}

/** A share, with a decimal where it has one: a climb of half a percent is not one of nothing. @param {Words} words @param {number} value */
function share(words, value) {
  const whole = Math.abs(value * 100 - Math.round(value * 100)) < 1e-9;
  return whole ? percent(words, value) : `${words.digits3.format(value * 100)}\u00a0%`;
}
