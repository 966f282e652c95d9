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
