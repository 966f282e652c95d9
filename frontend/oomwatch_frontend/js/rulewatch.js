// What a rule watches now: on which subjects it fires or is about to, and what it last saw of those nearest to its limit. Pure.

import { byUrgency, gpuData, gpuRatio, hostUse, nodeData } from "./judge.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {{ alert: string, severity: string }} RuleName */
/** @typedef {{ labels: Record<string, string>, value: number, unit: string }} Reading */

const SHOWN = 5;

/** The open alerts of a rule, whatever they were lowered to; the worst first. @param {Iterable<Alert>} alerts @param {RuleName} rule */
export function openOf(alerts, rule) {
  const own = [...alerts].filter(
    (one) => one.state !== "resolved" && one.alert === rule.alert && (one.lowered_from ?? one.severity) === rule.severity,
  );
  return own.sort(byUrgency);
}

/** Metrics that the page has at hand, for every subject that is heard. @type {Record<string, (store: Store) => Reading[]>} */
const METRICS = { gpu_used_ratio: gpuRatios, host_memory_ratio: hostRatios, rollout_seconds: (store) => seconds(store, "rollout_seconds"), step_seconds: (store) => seconds(store, "step_seconds") };

/**
 * The last values of what a rule judges, those nearest to its limit first; null: the server alone has them.
 * @param {Store} store @param {import("./rulewire.js").RuleRow} rule @returns {Reading[] | null}
 */
export function lastValues(store, { when }) {
  const condition = when.find(({ metric }) => typeof metric === "string" && Object.hasOwn(METRICS, metric));
  if (condition === undefined) return null;
  const readings = METRICS[String(condition.metric)](store);
  const upwards = typeof condition.below !== "number";
  return readings.sort((a, b) => (upwards ? b.value - a.value : a.value - b.value)).slice(0, SHOWN);
}

/** @param {Store} store @returns {Reading[]} */
function gpuRatios(store) {
  return heard(store).flatMap((view) =>
    view.gpus.flatMap((gpu) => {
      const value = gpuData(gpu, "ok") === "ok" ? gpuRatio(gpu) : null;
      const labels = { node: gpu.node, gpu: gpu.facts.gpu };
      return value === null ? [] : [{ labels, value, unit: "ratio" }];
    }),
  );
}

/** @param {Store} store @returns {Reading[]} */
function hostRatios(store) {
  return heard(store).flatMap((view) => {
    const use = hostUse(view);
    return use === null ? [] : [{ labels: { node: view.info.node }, value: use.ratio, unit: "ratio" }];
  });
}

/** Of each run's last step. @param {Store} store @param {"rollout_seconds" | "step_seconds"} part @returns {Reading[]} */
function seconds(store, part) {
  return [...store.runs.values()].flatMap((run) => {
    const value = run.steps.at(-1)?.step[part] ?? null;
    return value === null ? [] : [{ labels: { run: run.run }, value, unit: "seconds" }];
  });
}

/** @param {Store} store */
const heard = (store) => [...store.nodes.values()].filter((view) => nodeData(view, store.now()) === "ok");
