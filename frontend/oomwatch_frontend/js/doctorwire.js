// What the server says of a configuration, checked (docs/reference/doctor.md; the types are backend/oomwatch/doctor/result.py and
// web/doctorrows.py).

import { anything, flag, list, maybe, number, oneOf, record, struct, text } from "./wire.js";

const verdict = oneOf("refused", "will_not_fit", "tight", "fits", "unknown");
/** @typedef {ReturnType<typeof verdict>} Verdict */
const phaseVerdict = oneOf("fits", "tight", "will_not_fit");
const severity = oneOf("error", "warning", "info");
const origin = struct({ kind: oneOf("default", "file", "override", "printed"), place: text });

export const problem = struct({
  severity,
  key: text,
  message: text,
  suggestion: maybe(text),
  remedy: maybe(text),
  check: maybe(text),
  verl_says: maybe(text),
  valid: list(number),
  place: maybe(text),
});
/** @typedef {ReturnType<typeof problem>} DoctorProblem */

const shadowed = struct({ key: text, value: anything, place: text, winner: anything, winner_place: text, message: text });
/** @typedef {ReturnType<typeof shadowed>} Shadowed */

const part = struct({ name: text, label: text, bytes: number, formula: text, source: text });
/** @typedef {ReturnType<typeof part>} MemoryPart */

const sizes = { low_bytes: number, expected_bytes: number, high_bytes: number };
const memory = struct({
  phase: text,
  label: text,
  ...sizes,
  capacity_bytes: number,
  margin_bytes: number,
  verdict: phaseVerdict,
  moment: text,
  trouble: maybe(text),
  parts: list(part),
});
/** @typedef {ReturnType<typeof memory>} PhaseMemory */

const host = struct({ ...sizes, capacity_bytes: maybe(number), verdict: maybe(phaseVerdict), parts: list(part) });
/** @typedef {ReturnType<typeof host>} HostMemory */

const outcome = struct({ verdict, peak_phase: maybe(text), expected_bytes: maybe(number), margin_ratio: maybe(number) });
const advice = struct({
  remedy: text,
  key: text,
  value_from: anything,
  value_to: anything,
  override: text,
  text,
  effect: text,
  price: text,
  price_level: number,
  enough: flag,
  outcome,
});
/** @typedef {ReturnType<typeof advice>} Advice */

const plan = struct({ override: text, diff: text, outcome, enough: flag });
/** @typedef {ReturnType<typeof plan>} Plan */

const largest = struct({ key: text, value: anything, at_most: anything, now: anything, override: maybe(text) });
/** @typedef {ReturnType<typeof largest>} Largest */

export const line = struct({ name: text, phase: maybe(text), label: text, formula: text, value: maybe(number), assumed: list(text), missing: list(text) });
/** @typedef {ReturnType<typeof line>} WorkingLine */

const unknown = struct({ key: text, nearest: maybe(text), place: text, message: text });
/** @typedef {ReturnType<typeof unknown>} UnknownKey */

const setting = struct({
  key: text,
  value: anything,
  origin,
  written: maybe(text),
  shadows: list(struct({ value: anything, origin })),
});
/** @typedef {ReturnType<typeof setting>} Setting */

const model = struct({ name: text, parameters: number, verified: flag });
const card = struct({ name: text, usable_bytes: number, source: text, verified: flag });

/** An answer of POST /api/v1/doctor. */
export const readReport = struct({
  verdict,
  headline: text,
  derived: record(anything),
  problems: list(problem),
  shadowed: list(shadowed),
  memory: list(memory),
  advice: list(advice),
  plan: maybe(plan),
  kind: text,
  version: struct({ value: text, how: oneOf("told", "keys", "assumed") }),
  strategy: text,
  model: maybe(model),
  critic_model: maybe(model),
  card: maybe(card),
  missing: list(struct({ what: oneOf("card", "model", "phases"), message: text })),
  assumed: list(text),
  working: list(line),
  unknown: list(unknown),
  settings: list(setting),
  peak_phase: maybe(text),
  largest: list(largest),
  host: maybe(host),
});
/** @typedef {ReturnType<typeof readReport>} Report */

const mistake = struct({ message: text, remedy: text, name: maybe(text), line: maybe(number), field: maybe(text) });
/** @typedef {ReturnType<typeof mistake>} DoctorMistake */

/** The mistakes in an answer that refuses a question; none where it is refused for another reason. @param {unknown} value @returns {DoctorMistake[]} */
export const readDoctorMistakes = (value) =>
  typeof value === "object" && value !== null ? struct({ mistakes: list(mistake) })(value).mistakes : [];

export const readModels = list(struct({ name: text, parameters: number }));
export const readCards = list(struct({ name: text, usable_bytes: number }));
export const readVersions = list(text);
export const readTemplates = list(struct({ name: text, title: text, card: text, claim: text }));
/** @typedef {ReturnType<typeof readTemplates>[number]} Template */
export const readTemplateText = struct({ name: text, card: text, version: text, text });
