// What the server says of its rules, checked (docs/reference/api.md, "Changing rules"; the types are backend/oomwatch/ruleedit/rows.py,
// scorecard.py and tryout/result.py).

import { anything, flag, list, maybe, number, oneOf, or, record, severity, struct, text } from "./wire.js";

const timing = { for_seconds: number, keep_firing_for_seconds: number, keep_firing_steps: or(number, 0) };
const conditions = list(record(anything));
const override = struct({ node: text, run: text, enabled: flag, when: conditions, ...timing });
/** @typedef {ReturnType<typeof override>} OverrideRow */

const ruleRow = struct({
  alert: text,
  severity,
  enabled: flag,
  scope: text,
  watches: text,
  when: conditions,
  ...timing,
  overrides: list(override),
  firing: maybe(number),
});
/** @typedef {ReturnType<typeof ruleRow>} RuleRow */

const seen = struct({
  labels: record(text),
  state: oneOf("active", "inactive", "unknown", "off"),
  condition: number,
  value: maybe(number),
  limit: maybe(number),
  unit: maybe(text),
});
/** @typedef {ReturnType<typeof seen>} Seen one subject of a rule, as of now */

/** An answer of GET /api/v1/rules/NAME/now. */
export const readRuleNow = struct({ at: number, active: number, inactive: number, unknown: number, off: number, subjects: list(seen) });
/** @typedef {ReturnType<typeof readRuleNow>} RuleNow */

const score = struct({
  alert: text,
  severity,
  predicts: maybe(text),
  happened: number,
  avoided: number,
  false: number,
  open: number,
  failures: number,
  in_time: number,
  lead_seconds_median: maybe(number),
  lead_steps_median: maybe(number),
});
/** @typedef {ReturnType<typeof score>} Score */

const file = struct({
  path: text,
  digest: text,
  text,
  secrets: number,
  editable: flag,
  why_not: maybe(text),
  problem: maybe(text),
});
/** @typedef {ReturnType<typeof file>} RuleFile */

const mistake = struct({ line: number, column: number, message: text });
/** @typedef {ReturnType<typeof mistake>} Mistake */

const told = struct({
  count: or(number, 0),
  subjects: list(text),
  subjects_count: or(number, 0),
  happened: or(number, 0),
  false: or(number, 0),
  avoided: or(number, 0),
});
const tried = struct({
  alert: text,
  severity,
  change: maybe(oneOf("same", "changed", "new", "gone")),
  enabled: flag,
  tried: told,
  in_force: maybe(told),
  new: maybe(number),
  gone: maybe(number),
});
/** @typedef {ReturnType<typeof tried>} RuleTried */

const tryout = struct({
  tried: struct({ start_at: number, end_at: number, complete: flag, nodes: number, gpus: number, took_seconds: number }),
  rules: list(tried),
  same: list(text),
  left_out: list(text),
  defects: list(text),
  count: or(number, 0),
  in_force_count: maybe(number),
  note: maybe(text),
});
/** @typedef {ReturnType<typeof tryout>} Tryout */

export const readRuleRows = list(ruleRow);
export const readScores = (/** @type {unknown} */ value) => struct({ rules: list(score) })(value).rules;
export const readRuleFile = file;
export const readTryout = tryout;
export const readTaken = struct({ digest: text, changed: flag, rules: number });

/** The mistakes in an answer that refuses a file; none where it refuses for another reason. @param {unknown} value @returns {Mistake[]} */
export const readMistakes = (value) =>
  typeof value === "object" && value !== null ? struct({ mistakes: list(mistake) })(value).mistakes : [];
