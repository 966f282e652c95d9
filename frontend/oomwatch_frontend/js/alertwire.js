// What the server says of alerts over time, checked (docs/reference/api.md; the types are backend/oomwatch/web/spans.py,
// windowrows.py and rows.py).

import { anything, flag, list, maybe, number, oneOf, readAlert, record, severity, struct, text } from "./wire.js";

const span = struct({
  id: text,
  alert: text,
  severity,
  state: oneOf("pending", "firing", "resolved"),
  labels: record(text),
  started_at: number,
  fired_at: maybe(number),
  ended_at: maybe(number),
  value: maybe(number),
  limit: maybe(number),
  unit: maybe(text),
  summary: text,
  muted: flag,
  acknowledged_by: maybe(text),
  outcome: maybe(text),
  simulated: flag,
});
/** @typedef {ReturnType<typeof span>} Span when an alert was */

/** An answer of GET /api/v1/alerts/timeline. */
export const readSpans = struct({ alerts: list(span), complete: flag });

const maintenance = struct({
  name: text,
  state: oneOf("active", "upcoming", "ended"),
  match: list(text),
  starts_at: number,
  ends_at: number,
  hides: number,
});
/** @typedef {ReturnType<typeof maintenance>} Maintenance */

const quietHours = struct({
  name: text,
  active: flag,
  match: list(text),
  from: text,
  to: text,
  days: list(text),
  zone: text,
  until: maybe(number),
  next_at: maybe(number),
  hides: number,
});
/** @typedef {ReturnType<typeof quietHours>} QuietHours */

const inhibition = struct({ source: list(text), target: list(text), equal: list(text) });
/** @typedef {ReturnType<typeof inhibition>} Inhibition */

/** An answer of GET /api/v1/muting. */
export const readWindows = struct({ maintenance: list(maintenance), quiet_hours: list(quietHours), inhibit: list(inhibition) });
/** @typedef {ReturnType<typeof readWindows>} Windows */

const story = struct({ alert: record(anything) });

/**
 * The alert in an answer of GET /api/v1/alerts/ID, whose texts are in one language.
 * @param {unknown} value @param {string} language @returns {import("./wire.js").Alert} @throws {import("./wire.js").WireError}
 */
export function readStoryAlert(value, language) {
  const row = story(value).alert;
  const { summary, description, advice } = row;
  return readAlert({ ...row, texts: { [language]: { summary, description, advice } } });
}
