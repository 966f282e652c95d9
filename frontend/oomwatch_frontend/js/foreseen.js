// What is foreseen: how long until something is full, as the open alerts tell it. Pure.

import { gpuKey } from "./store.js";

/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./wire.js").Run} Run */
/** @typedef {"gpu" | "host" | "disk"} Thing */

/**
 * @typedef {object} Foreseen
 * @property {string} key of the GPU, the node, or the node and the path of the disk
 * @property {Thing} thing
 * @property {number | null} seconds until it is full; null: only the steps are told, and how long one takes is not known
 * @property {number | null} steps
 * @property {Alert} alert which says so
 */

/** @typedef {{ things: Map<string, Foreseen>, soonest: Foreseen[] }} Forecasts the soonest of each thing; all, soonest first */

const STEPS_LOOKED_AT = 5;

/**
 * What an alert foresees. Only what fires is believed. Some rules count steps until something else is reached (a cap on
 * lengths, say): steps alone mean memory only where the alert tells how much of it there is.
 * @param {Alert} alert @param {Map<string, Run>} runs @returns {Foreseen | null}
 */
export function foreseenBy(alert, runs) {
  const { node, gpu, run } = alert.labels;
  if (alert.state !== "firing" || node === undefined) return null;
  const { eta_seconds, eta_steps, usable_bytes, path } = alert.facts;
  const steps = typeof eta_steps === "number" ? eta_steps : null;
  if (typeof eta_seconds !== "number" && (steps === null || typeof usable_bytes !== "number")) return null;
  const stepSeconds = stepSecondsOf(runs.get(run ?? ""));
  const inSteps = steps === null || stepSeconds === null ? null : steps * stepSeconds;
  const seconds = typeof eta_seconds === "number" ? eta_seconds : inSteps;
  if (gpu !== undefined) return { key: gpuKey(node, gpu), thing: "gpu", seconds, steps, alert };
  if (typeof path === "string") return { key: `${node} ${path}`, thing: "disk", seconds, steps, alert };
  return { key: node, thing: "host", seconds, steps, alert };
}

/** The middle one of a run's last steps, seconds. @param {Run | undefined} run */
function stepSecondsOf(run) {
  const last = (run?.steps ?? []).slice(-STEPS_LOOKED_AT).flatMap(({ step }) => step.step_seconds ?? []);
  return last.sort((a, b) => a - b)[Math.floor(last.length / 2)] ?? null;
}

/** @param {Iterable<Alert>} alerts @param {Map<string, Run>} runs @returns {Forecasts} */
export function indexForecasts(alerts, runs) {
  /** @type {Map<string, Foreseen>} */
  const things = new Map();
  for (const alert of alerts) {
    const found = foreseenBy(alert, runs);
    const before = found === null ? undefined : things.get(found.key);
    if (found !== null && (before === undefined || bySoonest(found, before) < 0)) things.set(found.key, found);
  }
  return { things, soonest: [...things.values()].sort(bySoonest) };
}

/** @param {Foreseen} a @param {Foreseen} b */
export function bySoonest(a, b) {
  const [first, second] = [a.seconds ?? Infinity, b.seconds ?? Infinity];
  if (first !== second) return first - second;
  return (a.steps ?? Infinity) - (b.steps ?? Infinity) || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
}

/** Kinds of condition that foresee, by what they foresee it of. @type {Record<"gpu" | "host", string>} */
const FORESEEING = { gpu: "forecast", host: "host_forecast" };

/** Whether a rule looks for growth: only then does its silence say that there is none. @param {import("./wire.js").Rule[]} rules @param {"gpu" | "host"} thing */
export const isForeseen = (rules, thing) =>
  rules.some((rule) => rule.when.some((condition) => condition.kind === FORESEEING[thing]));

const STEPS_TO_JUDGE = 4; // of fewer no forecast is believed (core/forecast.py, STEEP_STEPS)
const SECONDS_TO_JUDGE = 1800; // without steps, six blocks of five minutes (core/blockforecast.py, HISTORY_BLOCKS_MIN)

/**
 * Whether there was enough of it to tell growth from none: before that, silence says nothing.
 * @param {import("./store.js").Store} store @param {string | null} name of a run; null: what no run is known to use
 */
export function isJudged(store, name) {
  const run = store.runs.get(name ?? "");
  if (run !== undefined && run.steps.length > 0) return stepsOfThisLife(run) >= STEPS_TO_JUDGE;
  const since = run?.first_seen_at ?? store.server?.started_at ?? store.now();
  return store.now() - since >= SECONDS_TO_JUDGE;
}

/** How many steps it did since it was started, or started again: then they are counted from a lower number. @param {Run} run */
function stepsOfThisLife({ steps }) {
  const again = steps.findLastIndex(({ step }, index) => index > 0 && step.step < steps[index - 1].step.step);
  return steps.length - Math.max(0, again);
}
