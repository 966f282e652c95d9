// The rows of a run's timeline: which lines each has, in which unit, and what is drawn beside them. Pure but for words.

import { GIB, gibNumber } from "./format.js";
import { levelOfRule } from "./judge.js";
import { linesOf } from "./run-forecast.js";
import { highest } from "./run-steps.js";
import { phaseName } from "./parts.js";
import { PHASES, lookOf } from "./phases.js";

/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {import("./charts.js").Row} Row */
/** @typedef {import("./charts.js").Line} Line */
/** @typedef {import("./run-steps.js").Columns} Columns */
/** @typedef {import("./run-steps.js").Column} Column */
/** @typedef {import("./run-forecast.js").Fan} Fan */
/** @typedef {{ key: string, row: Row, note: string }} TimelineRow */

/**
 * @typedef {object} Known what the rows are made of
 * @property {Columns} columns
 * @property {{ name: string, columns: Columns } | null} other the run that it is compared with, on the same steps
 * @property {{ fan: Fan, last: number } | null} forecast and the step from which on
 * @property {number[]} cards bytes that a GPU of the run can use: each size once
 * @property {number[]} hosts bytes of a node's memory: each size once
 * @property {import("./run-containers.js").Containers} containers that its nodes work in, on the same steps
 * @property {number[]} limits bytes of those: each size once
 * @property {Record<string, string>} notes beside a row, by its key
 */

/** @param {Words} words @param {Known} known @returns {TimelineRow[]} those that there is a number for, or that something is to be said of */
export function timelineRows(words, known) {
  const rows = [
    phasesRow(words, known),
    peaksRow(words, known),
    rolloutRow(words, known),
    torchRow(words, known),
    reshardRow(words, known),
    hostRow(words, known),
  ];
  return rows
    .map(({ key, row }) => ({ key, row: told(row), note: known.notes[key] ?? "" }))
    .filter(({ row, note }) => row.lines.length > 0 || note !== "");
}

/** Without the lines that have no number at all. @param {Row} row @returns {Row} */
function told(row) {
  const lines = row.lines.filter((line) => line.y.some((value) => value !== null));
  return { ...row, lines, rightUnit: lines.some((line) => line.right) ? row.rightUnit : undefined };
}

/** @param {Column} column */
const inGib = (column) => column.map((bytes) => (bytes === null ? null : bytes / GIB));

/**
 * The same line of the run that it is compared with.
 * @param {Words} words @param {Known} known @param {string} name @param {(columns: Columns) => Column} of @param {Partial<Line>} look
 * @returns {Line[]}
 */
function ofOther(words, { other }, name, of, look) {
  if (other === null) return [];
  return [
    { name: words.t("run.of_other", { run: other.name, name }), y: of(other.columns), colour: "text", dash: "dash", ...look },
  ];
}

/** Phases in the order in which they run. @param {Iterable<string>} phases */
function inOrder(phases) {
  const order = Object.keys(PHASES);
  const place = (/** @type {string} */ phase) => (order.includes(phase) ? order.indexOf(phase) : order.length);
  return [...phases].sort((a, b) => place(a) - place(b));
}

/** @param {Words} words @param {Known} known @returns {{ key: string, row: Row }} */
function phasesRow(words, known) {
  const { phases, seconds } = known.columns;
  const bars = inOrder(phases.keys()).map((phase) => ({
    name: phaseName(words, phase),
    y: phases.get(phase) ?? [],
    stack: true,
    ...lookOf(phase),
  }));
  const name = words.t("run.step_time");
  const whole = { name, y: seconds, colour: "text", points: true };
  const lines = [...bars, whole, ...ofOther(words, known, name, (of) => of.seconds, {})];
  const title = words.t(bars.length > 0 ? "run.phases" : "run.step_time");
  return { key: "phases", row: { title, unit: "s", lines } };
}

/** Lines of one colour are told apart by their dashes. @type {Record<string, Line["dash"]>} */
const DASHES = { ".": "dot", "|": "dash", x: "dash", "+": "dot" };

/** @param {Words} words @param {Known} known @returns {{ key: string, row: Row }} */
function peaksRow(words, known) {
  const { peaks, step } = known.columns;
  /** @type {Line[]} */
  const lines = inOrder(peaks.keys()).map((phase) => {
    const { colour, pattern } = lookOf(phase);
    const { bytes = [], gpu = [] } = peaks.get(phase) ?? {};
    const name = phase === "step" ? words.t("run.whole_step") : phaseName(words, phase);
    return { name, y: inGib(bytes), about: gpu, colour, dash: DASHES[pattern] ?? "solid", points: true, peak: true };
  });
  const top = (/** @type {Columns} */ of) => inGib(highest([...of.peaks.values()].map(({ bytes }) => bytes)));
  lines.push(...ofOther(words, known, words.t("run.peak"), top, { peak: true }));
  if (known.forecast !== null) lines.push(fanLine(words, known.forecast.fan, step, known.forecast.last));
  return { key: "peaks", row: { title: words.t("run.peaks"), unit: "GiB", lines, limits: capacities(words, known) } };
}

/** @param {Words} words @param {Fan} fan @param {number[]} step @param {number} last @returns {Line} */
function fanLine(words, fan, step, last) {
  const { y, low, high } = linesOf(fan, step, last);
  const name = words.t("run.forecast", { phase: fan.phase === null ? words.t("run.whole_step") : phaseName(words, fan.phase) });
  const colour = levelOfRule(fan.alert);
  return { name, y: inGib(y), low: inGib(low), high: inGib(high), colour, dash: "dash", about: step.map(() => fan.place) };
}

/** @param {Words} words @param {Known} known */
const capacities = (words, { cards }) =>
  cards.map((bytes) => ({
    y: bytes / GIB,
    label: words.t("chart.usable", { amount: gibNumber(words, bytes) }),
    colour: "muted",
  }));

/** @param {Words} words @param {Known} known @returns {{ key: string, row: Row }} */
function rolloutRow(words, known) {
  const { rollout, usual, limit, length } = known.columns;
  const [name, response] = [words.t("run.rollout"), words.t("run.response")];
  const right = { right: true, dash: /** @type {const} */ ("dot"), colour: "second" };
  /** @type {Line[]} */
  const lines = [
    { name: words.t("run.usual"), y: usual, low: usual, high: limit, colour: "muted", dash: "dash" },
    { name, y: rollout, colour: "accent", points: true },
    { name: response, y: length, ...right },
    ...ofOther(words, known, name, (of) => of.rollout, {}),
    ...ofOther(words, known, response, (of) => of.length, { ...right, colour: "text" }),
  ];
  return { key: "rollout", row: { title: name, unit: "s", lines, rightUnit: words.t("unit.tokens") } };
}

/** @param {Words} words @param {Known} known @returns {{ key: string, row: Row }} */
function torchRow(words, known) {
  const [reserved, allocated] = [words.t("torch.reserved_peak"), words.t("torch.allocated_peak")];
  const { columns } = known;
  /** @type {Line[]} */
  const lines = [
    { name: reserved, y: inGib(columns.reserved), colour: "accent", points: true, peak: true },
    { name: allocated, y: inGib(columns.allocated), colour: "second", dash: "dot", points: true, peak: true },
    ...ofOther(words, known, reserved, (of) => inGib(of.reserved), { peak: true }),
  ];
  return { key: "torch", row: { title: words.t("torch.title"), unit: "GiB", lines, limits: capacities(words, known) } };
}

/** @param {Words} words @param {Known} known @returns {{ key: string, row: Row }} */
function reshardRow(words, known) {
  const { reshard, share, cycles } = known.columns;
  const name = words.t("run.reshard");
  const percent = (/** @type {Column} */ column) => column.map((part) => (part === null ? null : part * 100));
  // A step that took time to switch had a cycle: none counted means that no marker tells them.
  const about = cycles.map((count) => (count === null || count === 0 ? null : words.count("run.cycles", count)));
  const right = { right: true, dash: /** @type {const} */ ("dot"), colour: "second" };
  /** @type {Line[]} */
  const lines = [
    { name, y: reshard, colour: "accent", points: true, about },
    { name: words.t("run.reshard_share"), y: percent(share), ...right },
    ...ofOther(words, known, name, (of) => of.reshard, {}),
  ];
  return { key: "reshard", row: { title: name, unit: "s", lines, rightUnit: "%" } };
}

const NEAR_RATIO = 0.5; // of a host's memory

/** @param {Words} words @param {Known} known @returns {{ key: string, row: Row }} */
function hostRow(words, known) {
  const name = words.t("host.memory");
  const { bytes, node } = known.containers;
  const isContained = bytes.some((amount) => amount !== null);
  const limitOf = (/** @type {number} */ size, /** @type {string} */ key) => ({
    y: size / GIB,
    label: words.t(key, { amount: gibNumber(words, size) }),
    colour: "muted",
  });
  const isNear = (/** @type {number} */ size) => known.columns.host.some((used) => used !== null && used > NEAR_RATIO * size);
  const wholes = isContained && known.limits.length > 0 ? known.hosts.filter(isNear) : known.hosts; // the container's counts, while the host has room
  const limits = wholes.map((size) => limitOf(size, "host.whole_line"));
  if (isContained) limits.push(...known.limits.map((size) => limitOf(size, "host.limit_line")));
  /** @type {Line[]} */
  const lines = [
    { name, y: inGib(known.columns.host), colour: "accent", points: true },
    { name: words.t("host.container"), y: inGib(bytes), about: node, colour: "second", dash: "dash", points: true, peak: true },
    ...ofOther(words, known, name, (of) => inGib(of.host), {}),
  ];
  return { key: "host", row: { title: name, unit: "GiB", lines, limits } };
}
