// Which GPUs stand together on the map, and in which order: by node, by run, or by risk. Pure.

import { bySoonest } from "./foreseen.js";
import { gpuData, gpuRatio, nodeData, worse } from "./judge.js";
import { inOrder } from "./naming.js";
import { gpuKey } from "./store.js";

/** @typedef {import("./store.js").NodeView} NodeView */
/** @typedef {import("./judge.js").AlertIndex} AlertIndex */
/** @typedef {import("./foreseen.js").Forecasts} Forecasts */
/** @typedef {{ node: string, gpus: number[] }} Part a node on the map, or those of its GPUs that stand together */
/** @typedef {{ key: string, parts: Part[] }} Group key: a run's name, "" for no run; a risk; "" for all */
/** @typedef {"node" | "run" | "risk"} Grouping */

export const GROUPINGS = /** @type {const} */ (["node", "run", "risk"]);
/** From the worst to the least. */
export const RISKS = /** @type {const} */ (["critical", "warning", "watch", "lost", "stale", "ok"]);
/** @typedef {typeof RISKS[number]} Risk */

const STEP = 0.05; // what differs by less stands by name: a map that moves every second is not read

/** @param {string | null | undefined} text @returns {Grouping | null} */
export const readGrouping = (text) => GROUPINGS.find((name) => name === text) ?? null;

/** All of each node together, in the given order. @param {NodeView[]} views @returns {Group[]} */
export function byNode(views) {
  return [{ key: "", parts: views.map((view) => ({ node: view.info.node, gpus: view.gpus.map((_, index) => index) })) }];
}

/** A node that works on two runs is shown in both, with its GPUs of each; what is in no run comes last. @param {NodeView[]} views @returns {Group[]} */
export function byRun(views) {
  const groups = split(views, (_, gpu) => gpu.run ?? "");
  const runs = inOrder([...groups.keys()].filter((key) => key !== ""));
  return [...runs, ""].flatMap((key) => {
    const parts = groups.get(key);
    return parts === undefined ? [] : { key, parts };
  });
}

/**
 * The worst first. What an alert says of a node's host is true of all its GPUs. Within a group the next to run out come
 * first, then the fullest.
 * @param {NodeView[]} views @param {AlertIndex} alerts @param {Forecasts} forecasts @param {number} now server's clock @returns {Group[]}
 */
export function byRisk(views, alerts, forecasts, now) {
  const groups = split(views, (view, gpu) => riskOf(view, gpu, alerts, now));
  const known = new Map(views.map((view) => [view.info.node, view]));
  return RISKS.flatMap((risk) => {
    const parts = groups.get(risk);
    if (parts === undefined) return [];
    const ranked = parts.map((part) => ({ part, ...urgency(part, known, forecasts) }));
    ranked.sort(byUrgency);
    return { key: risk, parts: ranked.map(({ part }) => part) };
  });
}

/** @param {NodeView} view @param {import("./store.js").GpuView} gpu @param {AlertIndex} alerts @param {number} now @returns {Risk} */
function riskOf(view, gpu, alerts, now) {
  const { node } = view.info;
  const level = worse(alerts.gpus.get(gpuKey(node, gpu.facts.gpu)) ?? "ok", alerts.nodes.get(node) ?? "ok");
  return level === "ok" ? gpuData(gpu, nodeData(view, now)) : level;
}

/** @typedef {{ soonest: import("./foreseen.js").Foreseen | null, fullness: number }} Urgency */

/** @param {Part} part @param {Map<string, NodeView>} known @param {Forecasts} forecasts @returns {Urgency} */
function urgency({ node, gpus }, known, forecasts) {
  const cards = known.get(node)?.gpus ?? [];
  const keys = [node, ...gpus.map((index) => gpuKey(node, cards[index].facts.gpu))];
  const [soonest = null] = keys.flatMap((key) => forecasts.things.get(key) ?? []).sort(bySoonest);
  const fullest = Math.max(0, ...gpus.map((index) => gpuRatio(cards[index]) ?? 0));
  return { soonest, fullness: Math.floor(fullest / STEP) };
}

/** @param {Urgency} a @param {Urgency} b */
function byUrgency(a, b) {
  if (a.soonest !== null && b.soonest !== null) return bySoonest(a.soonest, b.soonest);
  return Number(b.soonest !== null) - Number(a.soonest !== null) || b.fullness - a.fullness;
}

/** @param {NodeView[]} views @param {(view: NodeView, gpu: import("./store.js").GpuView) => string} keyOf @returns {Map<string, Part[]>} */
function split(views, keyOf) {
  /** @type {Map<string, Part[]>} */
  const groups = new Map();
  for (const view of views) {
    /** @type {Map<string, number[]>} */
    const own = new Map();
    view.gpus.forEach((gpu, index) => {
      const key = keyOf(view, gpu);
      const gpus = own.get(key);
      if (gpus === undefined) own.set(key, [index]);
      else gpus.push(index);
    });
    for (const [key, gpus] of own) {
      const parts = groups.get(key);
      if (parts === undefined) groups.set(key, [{ node: view.info.node, gpus }]);
      else parts.push({ node: view.info.node, gpus });
    }
  }
  return groups;
}
