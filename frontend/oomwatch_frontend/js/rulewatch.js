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

/**
 * Whether an alert about this subject fires. What the condition says of it now is another matter: an alert stays open until
 * it has been quiet for the rule's hold time.
 * @param {readonly Alert[]} open @param {Record<string, string>} labels
 */
export function firesOn(open, labels) {
  /** @param {Record<string, string>} one */
  const place = (one) => ("gpu" in one ? `${one.node} ${one.gpu}` : "node" in one ? one.node : `run ${one.run}`);
  return open.some((one) => one.state === "firing" && place(one.labels) === place(labels));
}
