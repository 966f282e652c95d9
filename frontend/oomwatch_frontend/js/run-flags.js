// Alerts on the timeline of a run: at which step each fired and ended. Pure.

import { LEVELS, levelOfRule } from "./judge.js";

/** @typedef {import("./judge.js").Level} Level */
/** @typedef {import("./wire.js").StepPoint} StepPoint */
/** @typedef {"oom" | "fired" | "ended"} FlagKind */

/**
 * @typedef {object} Told what a flag needs of an alert
 * @property {string} id
 * @property {string} severity
 * @property {string} state
 * @property {number} started_at
 * @property {number | null} fired_at
 * @property {number | null} ended_at
 * @property {Record<string, string | number>} facts
 */

/**
 * @typedef {object} Flag all of one kind at one step
 * @property {number} x step, in between where it was between two
 * @property {number} at Unix seconds, of the first
 * @property {FlagKind} kind
 * @property {Level} level
 * @property {string} id of the worst
 * @property {number} count
 */

const FATAL = ["device_oom", "host_oom"];
const WARM_UP_STEPS = 3; // a run that is shown from here on is shown from its beginning

/**
 * @param {Iterable<Told>} alerts @param {StepPoint[]} points in the order of the steps @returns {Flag[]} in the order of the steps
 */
export function flagsOf(alerts, points) {
  /** @type {Map<string, Flag>} */
  const flags = new Map();
  for (const alert of alerts) {
    if (alert.state === "pending") continue;
    const began = alert.fired_at ?? alert.started_at;
    const isFatal = FATAL.includes(String(alert.facts.event));
    put(flags, alert, isFatal ? "oom" : "fired", began, points);
    if (alert.ended_at !== null && !isFatal) put(flags, alert, "ended", alert.ended_at, points);
  }
  return [...flags.values()].sort((a, b) => a.x - b.x);
}

/** @param {Map<string, Flag>} flags @param {Told} alert @param {FlagKind} kind @param {number} at @param {StepPoint[]} points */
function put(flags, alert, kind, at, points) {
  const x = stepAt(at, points);
  if (x === null) return;
  const level = kind === "ended" ? "ok" : levelOfRule(alert);
  const key = `${x} ${kind}`;
  const before = flags.get(key);
  const isWorse = before !== undefined && LEVELS.indexOf(level) > LEVELS.indexOf(before.level);
  if (before === undefined) flags.set(key, { x, at, kind, level, id: alert.id, count: 1 });
  else flags.set(key, { ...before, ...(isWorse ? { level, id: alert.id } : {}), count: before.count + 1 });
}

/**
 * The step that ran then; half a step before the first, and after the last.
 * @param {number} at @param {StepPoint[]} points @returns {number | null} null: before all steps that are shown
 */
export function stepAt(at, points) {
  if (points.length === 0) return null;
  const next = points.find((point) => point.at >= at);
  if (next === undefined) return points[points.length - 1].step.step + 0.5;
  const isFirst = next === points[0] && at < next.at - (next.step.step_seconds ?? 0);
  if (!isFirst) return next.step.step;
  return next.step.step <= WARM_UP_STEPS ? next.step.step - 0.5 : null;
}
