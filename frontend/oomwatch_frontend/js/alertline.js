// Alerts on wall time: which bars a timeline shows, in which rows of which groups. Those of one run (or node), rule and
// severity that touch one another are one bar, as they are one card in the list. Pure.

import { APART_SECONDS } from "./groups.js";
import { LEVELS, levelOfRule } from "./judge.js";

/** @typedef {import("./alertwire.js").Span} Span */
/** @typedef {import("./wire.js").Alert} Alert */
/** @typedef {import("./judge.js").Level} Level */
/** @typedef {"run" | "node"} By */

/**
 * @typedef {object} Bar
 * @property {string} key
 * @property {Span[]} spans one at least, the worst first
 * @property {Level} level of its rule, whether it is over or not
 * @property {number} from when the first began to wait
 * @property {number | null} firedAt when the first fired; null: all of them wait
 * @property {number | null} to when the last ended; null: one is open
 * @property {boolean} muted all of them
 * @property {boolean} acknowledged all of them
 * @property {boolean} happened what one of them warned of came true
 */

/** @typedef {{ key: string, alert: string, severity: string, level: Level, bars: Bar[] }} Row of one rule */
/** @typedef {{ key: string, by: By, name: string, rows: Row[], count: number, open: number }} Lane all of one run or node */

/** A live alert as the timeline knows it. @param {Alert} alert @param {string} summary @returns {Span} */
export function spanOf(alert, summary) {
  const { id, severity, state, labels, started_at, fired_at, ended_at, value, limit, unit, simulated } = alert;
  return {
    ...{ id, alert: alert.alert, severity, state, labels, started_at, fired_at, ended_at, value, limit, unit, simulated, summary },
    muted: alert.muted.length > 0,
    acknowledged_by: alert.acknowledged?.by ?? null,
    outcome: alert.outcome?.verdict ?? null,
  };
}

/**
 * What the server was asked for and what is live, which is newer. An open one that is live no more was withdrawn.
 * @param {Span[]} asked @param {Map<string, Span>} live @param {[number, number]} ends @returns {Span[]}
 */
export function together(asked, live, ends) {
  const all = new Map(asked.filter(({ id, state }) => state === "resolved" || live.has(id)).map((span) => [span.id, span]));
  for (const [id, span] of live) all.set(id, span);
  return [...all.values()].filter((span) => span.started_at <= ends[1] && (span.ended_at ?? Infinity) >= ends[0]);
}

/**
 * @param {Span[]} spans @param {By} by @param {number} apartSeconds bars that begin closer to one another are one: a
 *   finger could not tell them apart
 * @returns {Lane[]} what is open and worst first, then what was last
 */
export function lanesOf(spans, by, apartSeconds) {
  /** @type {Map<string, Span[]>} */
  const lanes = new Map();
  for (const span of spans) {
    const key = placeOf(span, by).join(" ");
    lanes.set(key, [...(lanes.get(key) ?? []), span]);
  }
  return [...lanes].map(([key, own]) => laneOf(key, own, by, apartSeconds)).sort(byNeed);
}

/** By what name a span is listed: a node's own alerts belong to no run. @param {Span} span @param {By} by @returns {[By, string]} */
function placeOf({ labels: { run, node } }, by) {
  const [first, second] = by === "run" ? [run, node] : [node, run];
  const other = by === "run" ? "node" : "run";
  return first !== undefined ? [by, first] : [other, second ?? ""];
}

/** @param {string} key @param {Span[]} spans @param {By} by @param {number} apart @returns {Lane} */
function laneOf(key, spans, by, apart) {
  const [kind, name] = placeOf(spans[0], by);
  /** @type {Map<string, Span[]>} */
  const rules = new Map();
  for (const span of spans) {
    const rule = `${span.alert}/${span.severity}`;
    rules.set(rule, [...(rules.get(rule) ?? []), span]);
  }
  const rows = [...rules].map(([rule, own]) => rowOf(`${key} ${rule}`, own, apart)).sort(byLevel);
  return { key, by: kind, name, rows, count: spans.length, open: spans.filter(isOpen).length };
}

/** @param {string} key @param {Span[]} spans @param {number} apart @returns {Row} */
function rowOf(key, spans, apart) {
  const [{ alert, severity }] = spans;
  return { key, alert, severity, level: levelOfRule({ severity }), bars: barsOf(spans, apart) };
}

/** @param {Span[]} spans of one row @param {number} apart @returns {Bar[]} in the order of time */
function barsOf(spans, apart) {
  /** @type {Span[][]} */
  const pieces = [];
  let [from, to] = [0, 0];
  for (const span of [...spans].sort((a, b) => a.started_at - b.started_at)) {
    const piece = pieces[pieces.length - 1];
    if (piece !== undefined && span.started_at <= Math.max(to + APART_SECONDS, from + apart)) piece.push(span);
    else {
      pieces.push([span]);
      from = span.started_at;
      to = from;
    }
    to = Math.max(to, span.ended_at ?? Infinity);
  }
  return pieces.map(barOf);
}

/** @param {Span[]} spans in the order of their begin @returns {Bar} */
function barOf(spans) {
  const fired = spans.flatMap(({ fired_at }) => fired_at ?? []);
  const open = spans.some(isOpen);
  return {
    key: spans[0].id,
    spans: [...spans].sort(byState),
    level: levelOfRule(spans[0]),
    from: spans[0].started_at,
    firedAt: fired.length === 0 ? null : Math.min(...fired),
    to: open ? null : Math.max(...spans.map(({ ended_at, started_at }) => ended_at ?? started_at)),
    muted: spans.every(({ muted }) => muted),
    acknowledged: spans.every(({ acknowledged_by }) => acknowledged_by !== null),
    happened: spans.some(({ outcome }) => outcome === "happened"),
  };
}

/** @param {Span} span */
const isOpen = ({ state }) => state !== "resolved";

const STATES = ["firing", "pending", "resolved"];

/** What fires first; of what is over, what came true. @param {Span} a @param {Span} b */
const byState = (a, b) =>
  STATES.indexOf(a.state) - STATES.indexOf(b.state) || Number(b.outcome === "happened") - Number(a.outcome === "happened") || a.started_at - b.started_at;

/** @param {Row} a @param {Row} b */
const byLevel = (a, b) => LEVELS.indexOf(b.level) - LEVELS.indexOf(a.level) || a.bars[0].from - b.bars[0].from;

/** @param {Lane} lane the worst level that is open in it */
const gravity = ({ rows }) =>
  Math.max(-1, ...rows.filter(({ bars }) => bars.some(({ to }) => to === null)).map(({ level }) => LEVELS.indexOf(level)));

/** @param {Lane} lane */
const lastOf = ({ rows }) => Math.max(...rows.flatMap(({ bars }) => bars.map(({ to, from }) => to ?? from)));

/** @param {Lane} a @param {Lane} b */
const byNeed = (a, b) => gravity(b) - gravity(a) || lastOf(b) - lastOf(a);
