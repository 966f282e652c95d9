// Alerts as people are told of them: those of one run (or node), rule and severity are one, however many GPUs it is true
// of. Whoever muted or acknowledged some changes where a group stands, never whether it is shown. Pure.

import { LEVELS, levelOf, openAlerts } from "./judge.js";

/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {"open" | "muted" | "ended"} Standing */

/**
 * @typedef {object} Group
 * @property {string} key the same while it stands where it does
 * @property {Alert[]} alerts one at least, the worst first
 * @property {Standing} standing muted: nobody is sent word of any of them
 */

export const APART_SECONDS = 60; // ended ones with more than this between them were two incidents

/** @param {Alert} alert @returns {Standing} */
export function standingOf(alert) {
  if (alert.state === "resolved") return "ended";
  return alert.muted.length > 0 ? "muted" : "open";
}

/** Whether somebody takes care of all of it. @param {Group} group */
export const isAcknowledged = (group) => group.alerts.every((alert) => alert.acknowledged !== null);

/** Those that nobody has taken care of yet: what fires, and was not acknowledged. @param {Group} group @returns {Alert[]} */
export const unacknowledged = (group) =>
  group.alerts.filter((alert) => alert.state === "firing" && alert.acknowledged === null);

/** How far the number is beyond its limit, whichever side is the bad one. @param {Alert} alert */
const excess = ({ value, limit }) => (value === null || limit === null ? 0 : Math.abs(value - limit));

/** The worst of a group first. @param {Alert} a @param {Alert} b */
function byBadness(a, b) {
  const rank = LEVELS.indexOf(levelOf(b)) - LEVELS.indexOf(levelOf(a));
  return rank || excess(b) - excess(a) || a.started_at - b.started_at;
}

/** @param {Alert} alert */
const kindOf = ({ alert, severity, labels: { run, node } }) =>
  JSON.stringify([run ?? null, run === undefined ? (node ?? null) : null, alert, severity]);

/**
 * The open alerts in groups: first what needs somebody, then what somebody takes care of, then what is muted; the worst
 * of each first.
 * @param {Iterable<Alert>} alerts @returns {Group[]}
 */
export function openGroups(alerts) {
  /** @type {Map<string, Group>} */
  const groups = new Map();
  const all = [...alerts];
  const muted = openAlerts(all.filter((alert) => alert.muted.length > 0)); // it takes the place of none that is told
  for (const alert of [...openAlerts(all.filter((alert) => alert.muted.length === 0)), ...muted]) {
    const standing = standingOf(alert);
    const key = `${standing} ${kindOf(alert)}`;
    const group = groups.get(key) ?? { key, alerts: [], standing };
    group.alerts.push(alert);
    groups.set(key, group);
  }
  for (const group of groups.values()) group.alerts.sort(byBadness);
  return [...groups.values()].sort(byNeed);
}

/** @param {Group} a @param {Group} b */
function byNeed(a, b) {
  const [first, second] = [a.alerts[0], b.alerts[0]];
  const rank = LEVELS.indexOf(levelOf(second)) - LEVELS.indexOf(levelOf(first));
  return need(a) - need(b) || rank || first.started_at - second.started_at;
}

/** 0: nobody has seen it yet. @param {Group} group */
const need = (group) => (group.standing === "muted" ? 2 : isAcknowledged(group) ? 1 : 0);

/**
 * The alerts that ended in groups, each of which was one incident; the one that ended last first.
 * @param {Iterable<Alert>} alerts @returns {Group[]}
 */
export function endedGroups(alerts) {
  /** @type {Map<string, Group>} */
  const latest = new Map();
  /** @type {Group[]} */
  const groups = [];
  const ended = [...alerts].filter((alert) => alert.state === "resolved");
  for (const alert of ended.sort((a, b) => a.started_at - b.started_at)) {
    const kind = kindOf(alert);
    const group = latest.get(kind);
    if (group !== undefined && alert.started_at <= endOf(group) + APART_SECONDS) {
      group.alerts.push(alert);
      continue;
    }
    const made = { key: `ended ${alert.id}`, alerts: [alert], standing: /** @type {const} */ ("ended") };
    latest.set(kind, made);
    groups.push(made);
  }
  for (const group of groups) group.alerts.sort(byBadness);
  return groups.sort((a, b) => endOf(b) - endOf(a));
}

/** @param {Group} group when the last of it ended */
export const endOf = (group) => Math.max(...group.alerts.map((alert) => alert.ended_at ?? 0));

/** @param {Group} group when the first of it began */
export const startOf = (group) => Math.min(...group.alerts.map((alert) => alert.started_at));

/** How much a group is true of, in words: "64 GPUs on 8 nodes". @param {Words} words @param {Alert[]} alerts two at least */
export function extent(words, alerts) {
  const nodes = new Set(alerts.flatMap(({ labels }) => labels.node ?? []));
  const gpus = new Set(alerts.flatMap(({ labels: { node, gpu } }) => (gpu === undefined ? [] : [`${node} ${gpu}`])));
  if (gpus.size === alerts.length && nodes.size > 1) {
    return words.t("group.gpus_nodes", { n: gpus.size, nodes: nodes.size });
  }
  if (gpus.size === alerts.length) return words.t("group.gpus", { n: gpus.size, node: [...nodes].join() });
  if (nodes.size === alerts.length) return words.t("group.nodes", { n: nodes.size });
  return words.t("group.times", { n: alerts.length });
}

/** The sentence of a group: its alert's own, or how many it is true of and the worst's. @param {Words} words @param {Group} group */
export function titleOf(words, { alerts }) {
  const { summary } = words.pick(alerts[0].texts);
  return alerts.length === 1 ? summary : words.t("group.worst", { extent: extent(words, alerts), summary });
}
