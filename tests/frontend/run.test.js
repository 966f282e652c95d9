// A run's timeline: which steps count, what is usual, how long runs are thinned, where a forecast leads, and in what two runs differ.

import assert from "node:assert/strict";
import { test } from "node:test";

import { niceStep } from "../../frontend/oomwatch_frontend/js/elements/step-timeline.js";
import { allowedIncrease, usualTimes } from "../../frontend/oomwatch_frontend/js/run-baseline.js";
import { besideOne, differences } from "../../frontend/oomwatch_frontend/js/run-differences.js";
import { readBatches } from "../../frontend/oomwatch_frontend/js/planwire.js";
import { flagsOf, stepAt } from "../../frontend/oomwatch_frontend/js/run-flags.js";
import { fanOf, linesOf, stepsAhead } from "../../frontend/oomwatch_frontend/js/run-forecast.js";
import { timelineRows } from "../../frontend/oomwatch_frontend/js/run-rows.js";
import { containersOf } from "../../frontend/oomwatch_frontend/js/run-containers.js";
import { columnsOf, highest, union, withOlder } from "../../frontend/oomwatch_frontend/js/run-steps.js";
import { groupsOf, middles, thinned } from "../../frontend/oomwatch_frontend/js/run-thin.js";
import { heights } from "../../frontend/oomwatch_frontend/js/stacks.js";
import { readPeaks } from "../../frontend/oomwatch_frontend/js/wire.js";
import { chinese, english, golden } from "./reading.js";

const GIB = 2 ** 30;
const step = golden("run").run.steps[0].step;
/** @type {typeof step} */
const blank = /** @type {any} */ ({ ...Object.fromEntries(Object.keys(step).map((name) => [name, null])), step: 0, phase_seconds: {}, validation_only: false });

/** @param {number} number @param {Partial<typeof step>} [more] @param {number} [at] */
const point = (number, more = {}, at = number * 10) => ({ at, step: { ...blank, step: number, validation_only: false, ...more } });

/** @param {number} number @param {number} seconds @param {number} [at] */
const took = (number, seconds, at) => point(number, { rollout_seconds: seconds }, at);

const PEAKS = readPeaks({
  step: [1, 2, 3],
  known_from_step: 2,
  gpus: [
    { node: "n1", gpu: "0", usable_bytes: 80 * GIB },
    { node: "n2", gpu: "7", usable_bytes: 80 * GIB },
  ],
  phases: { rollout: { peak_bytes: [null, 60 * GIB, 61 * GIB], gpu: [null, 0, 1] } },
  reshard_cycles: [null, 1, 2],
});

// ---------------------------------------------------------------- what is usual

test("a rollout is held against the median of the steps before it, warm-up apart", () => {
  const points = [100, 90, 80, 30, 32, 31, 40].map((seconds, index) => took(index + 1, seconds));
  const usual = usualTimes(points, 2);
  assert.equal(usual.get(points[3]), undefined, "nothing usual is known yet");
  assert.deepEqual(usual.get(points[4]), { usual: 30, limit: 90 });
  assert.deepEqual(usual.get(points[6]), { usual: 31, limit: 93 });
});

test("a step that jumped is not usual, until its level has lasted for twenty steps", () => {
  const calm = Array.from({ length: 10 }, (_, index) => took(index + 4, 30));
  const slow = Array.from({ length: 21 }, (_, index) => took(index + 14, 100));
  const points = [...calm, ...slow];
  const usual = usualTimes(points, 2);
  assert.equal(usual.get(points[29])?.usual, 30, "the twentieth slow step");
  assert.equal(usual.get(points[30])?.usual, 100);
});

test("a restart begins anew, and its first step says nothing", () => {
  const points = [took(10, 30), took(11, 30), took(10, 99), took(11, 50), took(12, 50)];
  const usual = usualTimes(points, 2);
  assert.equal(usual.get(points[2]), undefined);
  assert.equal(usual.get(points[3]), undefined, "the step after a resume compiles again");
  assert.equal(usual.get(points[4])?.usual, 50);
});

test("ten thousand steps are judged in no time, by the last five hundred", () => {
  const points = Array.from({ length: 10_000 }, (_, index) => took(index + 1, index < 9000 ? 30 : 40));
  const before = performance.now();
  const usual = usualTimes(points, 2);
  assert.ok(performance.now() - before < 500);
  assert.equal(usual.get(points[9999])?.usual, 40);
});

test("the rule in force says how much longer is too long", () => {
  const rule = (/** @type {Record<string, unknown>} */ condition) => ({
    ...{ alert: "slow", severity: /** @type {const} */ ("warning"), scope: "run", for_seconds: 0, keep_firing_for_seconds: 0, texts: {} },
    when: [condition],
  });
  const jump = { kind: "jump", metric: "rollout_seconds", increase: 2 };
  assert.equal(allowedIncrease([rule({ kind: "threshold" }), rule(jump)]), 2);
  assert.equal(allowedIncrease([rule({ ...jump, metric: "step_seconds" })]), null);
});

// ---------------------------------------------------------------- columns and rows

test("columns are of the last attempt, with peaks by step, and with gaps where nothing was told", () => {
  const told = [point(1), took(2, 30), point(2, { rollout_seconds: 31, step_seconds: 60, reshard_seconds: 6 }, 25), took(3, 32)];
  const columns = columnsOf(told, PEAKS, 2);
  assert.deepEqual(columns.step, [1, 2, 3]);
  assert.deepEqual(columns.rollout, [null, 31, 32]);
  assert.deepEqual(columns.share, [null, 0.1, null]);
  assert.deepEqual(columns.cycles, [null, 1, 2]);
  assert.deepEqual(columns.peaks.get("rollout"), { bytes: [null, 60 * GIB, 61 * GIB], gpu: [null, "n1:0", "n2:7"] });
});

test("two runs are laid out on the steps of both", () => {
  const x = union([1, 2, 3], [2, 4]);
  assert.deepEqual(x, [1, 2, 3, 4]);
  assert.deepEqual(columnsOf([took(2, 30), took(4, 40)], null, null, x).rollout, [null, 30, null, 40]);
});

test("steps from the database come before those that the page was told", () => {
  const [a, b, c] = [took(1, 1, 10), took(2, 1, 20), took(3, 1, 30)];
  assert.deepEqual(withOlder([a, b], [b, c]), [a, b, c]);
  assert.deepEqual(withOlder([a], []), [a]);
});

/** @param {Partial<import("../../frontend/oomwatch_frontend/js/run-rows.js").Known>} [more] */
const known = (more = {}) => ({
  columns: columnsOf([point(1), took(2, 30), took(3, 31)], PEAKS, 2),
  other: null,
  forecast: null,
  cards: [80 * GIB],
  hosts: [],
  containers: { bytes: [], node: [] },
  limits: [],
  notes: {},
  ...more,
});

test("only the rows that there is a number for are drawn, in either language", () => {
  assert.deepEqual(
    timelineRows(english, known()).map(({ key, row }) => [key, row.lines.map(({ name }) => name)]),
    [
      ["peaks", ["rollout"]],
      ["rollout", ["Rollout time"]],
    ],
  );
  assert.equal(timelineRows(chinese, known())[1].row.title, "rollout 用时");
});

test("a row of which something is to be said keeps its place before there is a number for it", () => {
  const columns = columnsOf([took(1, 30)], null, null);
  const rows = timelineRows(english, known({ columns, notes: { peaks: "asked for" } }));
  assert.deepEqual(
    rows.map(({ key, note, row }) => [key, note, row.lines.length]),
    [
      ["peaks", "asked for", 0],
      ["rollout", "", 1],
    ],
  );
});

test("another run is drawn beside it, dashed and named", () => {
  const columns = columnsOf([took(2, 50)], null, null, [1, 2, 3]);
  const rows = timelineRows(english, known({ other: { name: "b", columns } }));
  const line = rows[1].row.lines.find(({ name }) => name.includes("of b"));
  assert.deepEqual([line?.name, line?.y, line?.dash], ["Rollout time of b", [null, 50, null], "dash"]);
});

test("bars stand on one another", () => {
  const line = (/** @type {(number | null)[]} */ y) => ({ name: "", y, colour: "", stack: true });
  assert.deepEqual(heights([line([1, 2, null]), line([3, null, null])], 3), [4, 2, 0]);
  assert.deepEqual(highest([[1, null, null], [0, 2, null]]), [1, 2, null]);
});

// ---------------------------------------------------------------- long runs

test("a long run is thinned to what is in view, and keeps its least and its most", () => {
  const x = Array.from({ length: 10_000 }, (_, index) => index + 1);
  const y = x.map((value) => (value === 7777 ? 99 : value % 2));
  const groups = groupsOf(x, [0.5, 10_000.5], 240);
  assert.ok(groups.length <= 240);
  const { lines } = thinned({ title: "", unit: "", lines: [{ name: "", y, colour: "" }] }, groups);
  assert.equal(Math.max(...(lines[0].high ?? []).map(Number)), 99);
  assert.equal(Math.min(...(lines[0].low ?? []).map(Number)), 0);
  assert.equal(middles(x, groups).length, lines[0].y.length);
});

test("of a peak the highest is kept, and the GPU that had it", () => {
  const lines = [{ name: "", y: [1, 5, 2, 3], about: ["a", "b", "c", "d"], colour: "", peak: true }];
  const row = thinned({ title: "", unit: "", lines }, [{ from: 0, to: 2 }, { from: 2, to: 4 }]);
  assert.deepEqual(row.lines[0].y, [5, 3]);
  assert.deepEqual(row.lines[0].about, ["b", "d"]);
});

test("looked at closely every step is there, and one beyond either edge", () => {
  const x = Array.from({ length: 1000 }, (_, index) => index + 1);
  const groups = groupsOf(x, [100, 120], 240);
  assert.deepEqual([x[groups[0].from], x[groups[groups.length - 1].from], groups.length], [99, 121, 23]);
  assert.deepEqual(groupsOf(x, [2000, 3000], 240), []);
});

test("the axis is marked at round steps", () => {
  assert.deepEqual([0.3, 1, 1.2, 3, 7, 60, 250].map(niceStep), [1, 1, 2, 5, 10, 100, 500]);
});

// ---------------------------------------------------------------- forecasts and flags

const ALERT = golden("alert").alert;
/** @param {Record<string, string | number>} facts @param {Partial<typeof ALERT>} [more] */
const foretelling = (facts, more = {}) => ({
  ...ALERT,
  state: /** @type {const} */ ("firing"),
  stale: false,
  labels: { node: "n1", gpu: "0", run: "r" },
  facts: { level_bytes: 60, usable_bytes: 80, ...facts },
  ...more,
});

test("a forecast is drawn from the last step to the card's end, with its fan", () => {
  const fan = fanOf([foretelling({ eta_steps: 10, eta_seconds: 100, eta_low_seconds: 50, eta_high_seconds: 200, phase: "ref" })]);
  assert.ok(fan);
  assert.deepEqual([fan.place, fan.phase, fan.low, fan.high], ["n1:0", "ref", 5, 20]);
  assert.deepEqual(stepsAhead(fan, 7).length, 20);
  const { y, low, high } = linesOf(fan, [6, 7, 12, 17, 27, 28], 7);
  assert.deepEqual(y, [null, 60, 70, 80, 80, null]);
  assert.deepEqual(low, [null, 60, 65, 70, 80, null]);
  assert.deepEqual(high, [null, 60, 80, 80, 80, null]);
});

test("a forecast without an upper end stays open below", () => {
  const fan = fanOf([foretelling({ eta_steps: 10, eta_seconds: 100, eta_low_seconds: 50 })]);
  assert.ok(fan);
  assert.deepEqual(linesOf(fan, [0, 10], 0).low, [60, 60]);
  assert.equal(stepsAhead(fan, 0).length, 15);
});

test("what has ended, is stale or tells of no steps foretells nothing", () => {
  const facts = { eta_steps: 10, eta_seconds: 100 };
  assert.equal(fanOf([foretelling(facts, { state: "resolved" }), foretelling(facts, { stale: true })]), null);
  assert.equal(fanOf([foretelling({ eta_seconds: 100 })]), null);
  assert.equal(fanOf([foretelling({ eta_steps: 10 }), foretelling({ eta_steps: 3 })])?.steps, 3);
});

test("an alert stands at the step that ran, and before a run's first step at its beginning", () => {
  const points = [point(1, { step_seconds: 10 }), point(2), point(3)];
  assert.deepEqual([-50, 5, 15, 30, 31].map((at) => stepAt(at, points)), [0.5, 1, 2, 3, 3.5]);
  assert.equal(stepAt(0, [point(400, { step_seconds: 10 })]), null, "earlier steps are not shown");
  assert.equal(stepAt(0, []), null);
});

test("alerts of one step are one flag, the worst of them; an end and an out of memory are flags of their own", () => {
  const points = [point(1), point(2), point(3)];
  const alert = { severity: "warning", state: "firing", started_at: 11, fired_at: 12, ended_at: null, facts: {} };
  const flags = flagsOf(
    [
      { ...alert, id: "a" },
      { ...alert, id: "b", severity: "critical", state: "resolved", ended_at: 28 },
      { ...alert, id: "c", facts: { event: "device_oom" }, fired_at: 29 },
      { ...alert, id: "d", state: "pending" },
    ],
    points,
  );
  assert.deepEqual(
    flags.map(({ x, kind, level, id, count }) => [x, kind, level, id, count]),
    [
      [2, "fired", "critical", "b", 2],
      [3, "ended", "ok", "b", 1],
      [3, "oom", "warning", "c", 1],
    ],
  );
});

// ---------------------------------------------------------------- batches, and two runs

/** @param {string} name @param {number | null} value @param {string | null} [phase] @param {object} [more] @returns {any} */
const line = (name, value, phase = null, more = {}) => ({ name, phase, label: name, formula: "60 × 12", value, assumed: [], missing: [], ...more });

test("the server's batches are read, with what is assumed, missing, and what verl says", () => {
  const [key, says] = ["data.train_batch_size", "real_train_batch_size (61) must be divisible"];
  const problem = { severity: "error", key, message: "It cannot be dealt evenly", verl_says: says, valid: [60] };
  const working = [line("gpus", 8, null, { assumed: ["trainer.nnodes"] }), line("micro_batches", null, "ref", { missing: [key] })];
  const found = readBatches({ run: "r", release: "0.9.1", working, problems: [problem] });
  assert.deepEqual([found.why, found.release, found.release_told], [null, "0.9.1", false]);
  assert.deepEqual(found.working, working);
  assert.deepEqual([found.problems[0].verl_says, found.problems[0].valid], [says, [60]]);
  assert.equal(readBatches({ run: "r", why: "config" }).why, "config");
  assert.throws(() => readBatches({ run: "r", why: "weather" }));
});

test("each number stands beside the other run's of the same phase, and what it alone has comes last", () => {
  const others = [line("gpus", 16), line("micro_batches", 4, "ref"), line("micro_batches", 9, "values", { assumed: ["a"], missing: ["b"] })];
  const found = besideOne([line("gpus", 8), line("micro_batches", null, "ref"), line("rollout_replicas", 2)], others);
  assert.deepEqual(
    found.map(({ line: { name, phase }, own, other }) => [phase, name, own, other]),
    [
      [null, "gpus", 8, 16],
      ["ref", "micro_batches", null, 4],
      [null, "rollout_replicas", 2, null],
      ["values", "micro_batches", null, 9],
    ],
  );
  const { formula, assumed, missing } = found[3].line;
  assert.deepEqual([formula, assumed, missing], ["", [], []]); // they are the other's
});

test("two runs differ in what has another value, or is told of one alone", () => {
  assert.deepEqual(differences({ a: 1, b: 2, c: true }, { a: 1, b: 3, d: "x" }), [
    { key: "b", a: 2, b: 3 },
    { key: "c", a: true, b: null },
    { key: "d", a: null, b: "x" },
  ]);
});

/** @param {[number, number | null][]} points @returns {any} */
const curve = (points) => ({ at: points.map(([at]) => at), max: points.map(([, bytes]) => bytes) });

test("of each step the container counts that was fullest, and none where nothing was read", () => {
  const told = [took(1, 1, 110), took(2, 1, 120), took(3, 1, 130), took(4, 1, 500)].map((one) => ({ ...one, step: { ...one.step, step_seconds: 10 } }));
  const curves = new Map([
    ["a", curve([[100, 5], [112, 7], [125, null]])],
    ["b", curve([[100, 6], [112, 3], [121, 4], [139, 99]])],
  ]);
  const found = containersOf(told, [0, 1, 2, 3, 4], curves);
  assert.deepEqual(found.bytes, [null, 6, 7, 7, 99]);
  assert.deepEqual(found.node, [null, "b", "a", "a", "b"]);
});

test("the container's memory stands beside the host's, with the limit of its own, and the host's where that is near", () => {
  const columns = columnsOf([point(1), took(2, 30)], null, 2);
  const containers = { bytes: [40 * GIB, 50 * GIB], node: ["a", "b"] };
  const rows = timelineRows(english, known({ columns, containers, hosts: [100 * GIB], limits: [60 * GIB] }));
  const { row } = rows.find(({ key }) => key === "host") ?? assert.fail("no row of the host");
  const line = row.lines.find(({ name }) => name === "The container");
  assert.deepEqual([line?.y, line?.about], [[40, 50], ["a", "b"]]);
  assert.deepEqual(row.limits?.map(({ label }) => label), ["limit 60.0 GiB"]);
  const fuller = { ...columns, host: [90 * GIB, 91 * GIB] };
  const near = timelineRows(english, known({ columns: fuller, containers, hosts: [100 * GIB], limits: [60 * GIB] })).find(({ key }) => key === "host");
  assert.deepEqual(near?.row.limits?.map(({ label }) => label), ["total 100.0 GiB", "limit 60.0 GiB"]);
  const without = timelineRows(english, known({ columns, hosts: [100 * GIB], limits: [60 * GIB] })).find(({ key }) => key === "host");
  assert.ok(without === undefined || without.row.limits?.length === 1);
});
