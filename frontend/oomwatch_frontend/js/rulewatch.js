// On which subjects a rule fires or is about to. Pure.

import { byUrgency } from "./judge.js";

/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {{ alert: string, severity: string }} RuleName */

/** The open alerts of a rule, whatever they were lowered to; the worst first. @param {Iterable<Alert>} alerts @param {RuleName} rule */
export function openOf(alerts, rule) {
  const own = [...alerts].filter(
    (one) => one.state !== "resolved" && one.alert === rule.alert && (one.lowered_from ?? one.severity) === rule.severity,
  );
  return own.sort(byUrgency);
}
