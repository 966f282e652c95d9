// What it costs to wait: when something is full, and what of the work since the last checkpoint is lost then. Pure.

import { bySoonest, foreseenBy } from "./foreseen.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./foreseen.js").Foreseen} Foreseen */

/**
 * @typedef {object} Lost what a run that stops then has done for nothing
 * @property {number} steps
 * @property {number | null} seconds
 * @property {number} every steps between two checkpoints; below 1: none is saved
 */

/**
 * @typedef {object} Cost
 * @property {Foreseen | null} full when, as an alert that fires foretells it
 * @property {Lost | null} lost null: the run's steps or its checkpoints are not known
 * @property {number | null} slowerSeconds how much longer each step takes meanwhile
 */

const SAVE_KEY = "trainer.save_freq";
const STEPS_LOOKED_AT = 5;

/** @param {Store} store @param {Alert} alert an open one @returns {Cost} */
export function costOfWaiting(store, alert) {
  if (isOver(alert)) return { full: null, lost: null, slowerSeconds: null };
  const full = soonestOf(store, alert);
  return { full, lost: full === null ? null : lostAt(store, full), slowerSeconds: slowerBy(alert) };
}

const FATAL = ["device_oom", "host_oom"];

/** What it warns of has come, or it is that itself: nobody waits for it any more. @param {Alert} alert */
export const isOver = ({ facts, outcome }) => FATAL.includes(String(facts.event)) || outcome?.verdict === "happened";

/** What its own alert or another that fires foretells of the same thing; of a run, of any of its things. @param {Store} store @param {Alert} alert */
function soonestOf(store, alert) {
  const own = foreseenBy(alert, store.runs);
  if (own !== null) return own;
  const { node, gpu, run } = alert.labels;
  const concerns = (/** @type {Alert} */ { labels }) =>
    node === undefined ? run !== undefined && labels.run === run : labels.node === node && (gpu === undefined ? labels.gpu === undefined : labels.gpu === gpu);
  const others = [...store.alerts.values()].filter((one) => concerns(one) && !isOver(one)).flatMap((one) => foreseenBy(one, store.runs) ?? []);
  return others.sort(bySoonest)[0] ?? null;
}

/** @param {Store} store @param {Foreseen} full @returns {Lost | null} */
function lostAt(store, { alert, seconds, steps }) {
  const node = store.nodes.get(alert.labels.node ?? "");
  const run = store.runs.get(alert.labels.run ?? node?.info.run ?? "");
  const last = run?.steps.at(-1)?.step.step;
  const every = run?.config[SAVE_KEY];
  if (run === undefined || last === undefined || typeof every !== "number") return null;
  const usual = usualSeconds(run);
  const more = steps ?? (seconds === null || usual === null || usual === 0 ? null : Math.floor(seconds / usual));
  if (more === null) return null;
  const end = last + Math.round(more);
  const lost = every < 1 ? end : end % every;
  return { steps: lost, seconds: usual === null ? null : lost * usual, every };
}

/** @param {import("./wire.js").Run} run */
function usualSeconds(run) {
  const last = run.steps.slice(-STEPS_LOOKED_AT).flatMap(({ step }) => step.step_seconds ?? []);
  return last.sort((a, b) => a - b)[Math.floor(last.length / 2)] ?? null;
}

/** @param {Alert} alert */
function slowerBy({ value, unit, facts }) {
  const usual = facts.baseline_seconds;
  return unit === "seconds" && value !== null && typeof usual === "number" && value > usual ? value - usual : null;
}
