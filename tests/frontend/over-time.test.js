// What the pages of a GPU and a node show over time: which stretch, what is missing, where the memory is, what is foretold.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { fanOf, forecastOf } from "../../frontend/oomwatch_frontend/js/forecast.js";
import { fromStamp, localStamp } from "../../frontend/oomwatch_frontend/js/ink.js";
import { emptySeries, extend, gapsOf, heldAt, isSteady, stepFor, summaries } from "../../frontend/oomwatch_frontend/js/history.js";
import { PARTS, heldNow, partsNow, stackOver } from "../../frontend/oomwatch_frontend/js/memory-parts.js";
import { Recorder } from "../../frontend/oomwatch_frontend/js/recorder.js";
import { between, endsOf, holding, panned, readRange, writeRange, zoomed } from "../../frontend/oomwatch_frontend/js/timerange.js";
import { pathOf } from "../../frontend/oomwatch_frontend/js/views/sparks.js";
import { catalogue, golden } from "./reading.js";

const NOW = 1_000_000;

/** @param {[number, number | null][]} points @returns {import("../../frontend/oomwatch_frontend/js/history.js").Series} */
function series(points) {
  const [at, mean] = [points.map(([at]) => at), points.map(([, value]) => value)];
  return { ...emptySeries(), at, min: mean, mean, max: mean };
}

/** @param {object} fields @returns {any} */
const gpuProcess = (fields) => ({ pid: 1, used_bytes: null, name: null, run: null, rank: null, role: null, ...fields });

/** @param {object} fields @returns {any} */
const probe = (fields) => ({ pid: 1, gpu: "0", role: "actor", reserved_bytes: null, allocated_bytes: null, ...fields });

test("an address says which stretch is shown, and what makes no sense gives the usual", () => {
  assert.deepEqual(readRange({ span: "3600" }), { live: true, span: 3600 });
  assert.deepEqual(readRange({ from: "100", to: "400" }), { live: false, from: 100, to: 400 });
  const usual = { live: true, span: 600 };
  for (const query of [{}, { span: "x" }, { span: "-5" }, { span: "" }, { from: "400", to: "100" }, { from: "", to: "50" }, { from: "0", to: "1e13" }])
    assert.deepEqual(readRange(/** @type {any} */ (query)), usual, JSON.stringify(query));
});

test("a stretch that was written into an address is read back", () => {
  for (const range of /** @type {any[]} */ ([{ live: true, span: 86_400 }, { live: false, from: 5, to: 500 }]))
    assert.deepEqual(readRange(writeRange(range)), range);
});

test("zooming keeps what goes on going on, and what stands still about its middle", () => {
  assert.deepEqual(zoomed({ live: true, span: 600 }, 0.5, NOW), { live: true, span: 300 });
  assert.deepEqual(zoomed({ live: false, from: 1000, to: 2000 }, 0.5, NOW), { live: false, from: 1250, to: 1750 });
  assert.deepEqual(zoomed({ live: true, span: 10 }, 0.5, NOW), { live: true, span: 10 });
});

test("what is moved up to now goes on with it, and the past stands still", () => {
  assert.deepEqual(panned({ live: true, span: 400 }, -0.25, NOW), { live: false, from: NOW - 500, to: NOW - 100 });
  assert.deepEqual(panned({ live: false, from: NOW - 450, to: NOW - 50 }, 0.25, NOW), { live: true, span: 400 });
});

test("a stretch that was dragged over ends now at the latest and has some width", () => {
  assert.deepEqual(between(NOW - 100, NOW + 500, NOW), { live: false, from: NOW - 100, to: NOW });
  const [from, to] = endsOf(between(500.2, 500.4, NOW), NOW);
  assert.ok(to - from >= 10 && from <= 500 && to >= 500);
});

test("there are never more points than pixels", () => {
  for (const [span, pixels] of [[600, 1300], [604_800, 900], [3600, 250], [86_400, 1]])
    assert.ok(span / stepFor(span, pixels) <= Math.max(pixels, span), `${span} over ${pixels}`);
  assert.equal(stepFor(604_800, 900), 672);
});

test("a stamp of plotly means the moment that it was written for", () => {
  for (const at of [1_795_993_880, 1_795_993_880.25]) assert.equal(fromStamp(localStamp(at)), at);
  assert.equal(fromStamp(localStamp(1_795_996_800).slice(0, 16)), 1_795_996_800);
});

test("times without a reading are gaps, at the ends too", () => {
  const told = series([[100, 1], [110, 1], [120, null], [150, 1], [160, 1]]);
  assert.deepEqual(gapsOf(told, [90, 165], 15), [[110, 150]]);
  assert.deepEqual(gapsOf(told, [50, 200], 15), [[50, 100], [110, 150], [160, 200]]);
  assert.deepEqual(gapsOf(series([]), [0, 100], 15), [[0, 100]]);
});

test("what was said last holds for a while and then is not known", () => {
  assert.deepEqual(heldAt(series([[10, 1], [20, 2]]), [5, 10, 19, 20, 30, 36], 15), [null, 1, 1, 2, 2, null]);
});

test("a probe's readings are steady, and log lines are not", () => {
  assert.ok(isSteady(series([[0, 1], [5, 1], [10, 1], [90, 1]]), 15));
  assert.ok(!isSteady(series([[0, 1], [40, 1], [80, 1]]), 15));
  assert.ok(!isSteady(series([[0, 1]]), 15));
});

test("the table of a chart has the extremes of each stretch, and says where nothing was read", () => {
  const told = emptySeries();
  for (const [at, value] of [[0, 4], [4, 8], [25, 5]]) extend(told, at, value, 100, 1);
  const rows = summaries([told], [0, 30], 3);
  assert.deepEqual(rows.map(({ at }) => at), [20, 10, 0]);
  assert.deepEqual(rows.map(({ cells: [cell] }) => cell && [cell.min, cell.mean, cell.max]), [[5, 5, 5], null, [4, 6, 8]]);
});

test("the parts of a device make up the whole, each told by whoever knows it", () => {
  const processes = [
    gpuProcess({ pid: 1, used_bytes: 40, run: "r", role: "actor" }),
    gpuProcess({ pid: 2, used_bytes: 20, run: "r", role: "rollout" }),
    gpuProcess({ pid: 3, used_bytes: 5 }),
    gpuProcess({ pid: 4, used_bytes: 7, run: "r", role: "ref" }),
  ];
  const { whole, earlier, parts } = partsNow(80, processes, [probe({ pid: 1, reserved_bytes: 30, allocated_bytes: 24 })]);
  const expected = { allocated: 24, unused: 6, context: 10, training: 7, engine: 20, others: 5, rest: 8 };
  assert.deepEqual(Object.fromEntries(parts.map(({ name, bytes }) => [name, bytes])), expected);
  assert.deepEqual([whole, earlier], [80, false]);
});

test("torch is believed up to what its process holds: a sleeping engine's pool stays counted", () => {
  const processes = [gpuProcess({ pid: 1, used_bytes: 10, role: "actor" })];
  const { parts } = partsNow(12, processes, [probe({ reserved_bytes: 50, allocated_bytes: 45 })]);
  assert.deepEqual(parts, [{ name: "allocated", bytes: 10 }, { name: "rest", bytes: 2 }]);
});

test("without a process table torch is told and the rest is called so", () => {
  const { parts } = partsNow(70, null, [probe({ reserved_bytes: 30, allocated_bytes: 20 })]);
  assert.deepEqual(parts.map(({ name, bytes }) => [name, bytes]), [["allocated", 20], ["unused", 10], ["rest", 40]]);
  assert.deepEqual(partsNow(70, null, []).parts, [{ name: "rest", bytes: 70 }]);
});

test("processes that held more than the device does now were read before it, and that is said", () => {
  const { whole, earlier } = partsNow(10, [gpuProcess({ used_bytes: 15, run: "r" })], []);
  assert.deepEqual([whole, earlier], [15, true]);
});

test("an engine with the probe in it is an engine, and not the trainer's torch", () => {
  const { parts } = partsNow(30, [gpuProcess({ pid: 9, used_bytes: 30, role: "rollout" })], [probe({ pid: 9, role: "rollout", reserved_bytes: 20 })]);
  assert.deepEqual(parts, [{ name: "engine", bytes: 30 }]);
});

test("no two parts look the same, and each has a name and a reason", () => {
  const looks = Object.values(PARTS).map(({ colour, pattern }) => `${colour} ${pattern}`);
  assert.equal(new Set(looks).size, looks.length);
  for (const part of Object.keys(PARTS)) for (const key of [`parts.${part}`, `parts.${part}_why`]) assert.ok(catalogue[key], key);
});

/** @param {Record<string, [number, number | null][]>} told @returns {any} */
function toldOf(told) {
  const names = ["reserved", "allocated", "engineReserved", "engineAllocated", "trainer", "probed", "engine", "other"];
  return Object.fromEntries(names.map((name) => [name, series(told[name] ?? [])]));
}

/** Each layer's heights. @param {import("../../frontend/oomwatch_frontend/js/memory-parts.js").Layer[]} layers */
const heightsOf = (layers) =>
  Object.fromEntries(layers.map(({ name, low, high }) => [name, high.map((top, at) => (top === null ? null : top - (low[at] ?? 0)))]));

test("over time torch's layers stand below all that is in use, and are not drawn where nobody told", () => {
  const used = series([[0, 50], [10, 60], [20, null], [30, 40]]);
  const layers = stackOver(used, toldOf({ reserved: [[0, 30], [30, 45]], allocated: [[0, 20], [30, 44]] }), 5, 45);
  assert.deepEqual(heightsOf(layers), { allocated: [20, null, null, 40], unused: [10, null, null, 0], rest: [20, 60, null, 0] });
  assert.deepEqual(layers.map(({ high }) => high.at(-1)), [40, 40, 40]);
});

test("over time what processes hold stands on what torch tells of them, and only what nobody told is the rest", () => {
  const used = series([[0, 80], [20, 80], [40, 60], [100, 70]]);
  const told = toldOf({
    reserved: [[0, 30], [20, 30], [40, 30]],
    allocated: [[0, 24], [20, 24], [40, 24]],
    trainer: [[0, 50], [20, 50], [40, 50]],
    probed: [[0, 40], [20, 40], [40, 40]],
    engine: [[0, 20], [20, 20], [40, 0]],
    other: [[0, 5], [20, 5], [40, 5]],
  });
  assert.deepEqual(heightsOf(stackOver(used, told, 5, 45)), {
    allocated: [24, 24, 24, null],
    unused: [6, 6, 6, null],
    context: [10, 10, 10, null],
    training: [10, 10, 10, null],
    engine: [20, 20, 0, null],
    others: [5, 5, 5, null],
    rest: [5, 5, 5, 70],
  });
});

test("over time an engine with a probe is told from the trainer, and a trainer without one is training", () => {
  const used = series([[0, 80]]);
  const both = toldOf({ reserved: [[0, 50]], allocated: [[0, 48]], engineReserved: [[0, 20]], engineAllocated: [[0, 18]], trainer: [[0, 35]], probed: [[0, 35]], engine: [[0, 25]], other: [[0, 0]] });
  assert.deepEqual(heightsOf(stackOver(used, both, 5, 45)), { allocated: [30], context: [5], engine: [25], rest: [20] });
  const none = toldOf({ trainer: [[0, 35]], probed: [[0, 0]], engine: [[0, 25]], other: [[0, 0]] });
  assert.deepEqual(heightsOf(stackOver(used, none, 5, 45)), { training: [35], engine: [25], rest: [20] });
});

test("where nobody told whose the memory is there is no stack, and what was read before the rest fits in what is used", () => {
  assert.deepEqual(stackOver(series([[0, 80]]), toldOf({}), 5, 45), []);
  const woken = toldOf({ engine: [[0, 56]], trainer: [[0, 6]], probed: [[0, 0]] }); // it has gone to sleep since
  assert.deepEqual(heightsOf(stackOver(series([[0, 62], [9, 20]]), woken, 5, 45)), { training: [6, 6], engine: [56, 14] });
});

/** @type {{ case: string, used_bytes: number, processes: object[] | null, probes: object[], held: Record<string, number | null>, parts: Record<string, number> }[]} */
const cases = JSON.parse(readFileSync(new URL("../core/memory_parts.json", import.meta.url), "utf8"));

for (const one of cases) {
  test(`memory is split as the history keeps it: ${one.case}`, () => {
    const processes = one.processes?.map(gpuProcess) ?? null;
    const probes = one.probes.map(probe);
    const { engine_reserved: _reserved, engine_allocated: _allocated, ...held } = one.held;
    assert.deepEqual(heldNow(processes, probes), held);
    const { parts } = partsNow(one.used_bytes, processes, probes);
    assert.deepEqual(Object.fromEntries(parts.map(({ name, bytes }) => [name, bytes])), one.parts);
  });
}

/** @param {object} fields @returns {any} */
const forecastAlert = (fields) => ({ ...golden("alert").alert, state: "firing", stale: false, severity: "warning", ...fields });

test("of what is foretold of a thing the gravest is drawn, and what is over or stale is not", () => {
  const facts = { eta_seconds: 600, level_bytes: 70, usable_bytes: 80 };
  const alerts = [
    forecastAlert({ id: "w", facts }),
    forecastAlert({ id: "c", severity: "critical", facts: { ...facts, eta_low_seconds: 300, eta_high_seconds: 900, eta_steps: 4 } }),
    forecastAlert({ id: "over", state: "resolved", severity: "critical", facts: { ...facts, eta_seconds: 1 } }),
    forecastAlert({ id: "stale", stale: true, severity: "critical", facts: { ...facts, eta_seconds: 1 } }),
    forecastAlert({ id: "high", facts: { used_bytes: 5, usable_bytes: 80 } }),
  ];
  const found = forecastOf(alerts, () => true);
  assert.deepEqual([found?.severity, found?.low, found?.eta, found?.high, found?.steps], ["critical", 300, 600, 900, 4]);
  assert.equal(forecastOf(alerts, () => false), null);
  const host = forecastOf([forecastAlert({ facts: { eta_seconds: 60, used_bytes: 80, limit_bytes: 100, until_ratio: 0.95 } })], () => true);
  assert.deepEqual([host?.level, host?.full], [80, 95]);
});

test("a forecast is a line to full, in a fan from the earliest to the latest", () => {
  const forecast = /** @type {any} */ ({ eta: 100, low: 50, high: 200, level: 60, full: 80 });
  const fan = fanOf(forecast, 1000);
  assert.deepEqual(fan, { x: [1000, 1050, 1100, 1200], y: [60, 70, 80, 80], low: [60, 65, 70, 80], high: [60, 80, 80, 80] });
  assert.deepEqual(fanOf({ ...forecast, high: null }, 1000).low, [60, 60, 60]);
  assert.deepEqual(fanOf({ ...forecast, eta: 0, low: 0, high: null }, 1000).y, [80]);
});

test("over a long time, whose last point began minutes ago, the history is not read at each reading", async () => {
  const asked = /** @type {string[]} */ ([]);
  const original = globalThis.fetch;
  const body = { at: [NOW - 200, NOW - 100], min: [1, 1], max: [3, 3], mean: [2, 2] };
  globalThis.fetch = async (url) => {
    asked.push(String(url));
    return new Response(JSON.stringify(body));
  };
  try {
    let now = NOW;
    const wishes = { now: () => now, pace: () => 1, pixels: () => 864, changed: () => undefined, say: () => undefined };
    const recorder = new Recorder(["gpu_used_bytes"], { node: "n", gpu: "0" }, { live: true, span: 86_400 }, wishes);
    await recorder.load();
    for (now = NOW + 1; now < NOW + 20; now += 1) recorder.take("gpu_used_bytes", now, 5);
    assert.equal(asked.length, 1);
    assert.equal(recorder.of("gpu_used_bytes").max.at(-1), 5);
    now = NOW + 60; // forty seconds were missed
    recorder.take("gpu_used_bytes", now, 5);
    assert.equal(asked.length, 2);
    recorder.close();
  } finally {
    globalThis.fetch = original;
  }
});

test("all figures of a chart are asked for in one request", async () => {
  const asked = /** @type {string[]} */ ([]);
  const said = /** @type {(string | null)[]} */ ([]);
  const original = globalThis.fetch;
  const one = (/** @type {number} */ value) => ({ at: [NOW - 2], min: [value], max: [value], mean: [value] });
  let body = /** @type {unknown} */ ([one(1), one(2)]);
  globalThis.fetch = async (url) => {
    asked.push(String(url));
    return new Response(JSON.stringify(body));
  };
  try {
    const wishes = { now: () => NOW, pace: () => 1, pixels: () => 600, changed: () => undefined, say: (/** @type {string | null} */ problem) => said.push(problem) };
    const recorder = new Recorder(["a", "b"], { node: "n" }, { live: true, span: 600 }, wishes);
    await recorder.load();
    assert.deepEqual(asked.map((url) => new URLSearchParams(url.split("?")[1]).getAll("series")), [["a", "b"]]);
    assert.deepEqual([recorder.of("a").mean, recorder.of("b").mean], [[1], [2]]);
    body = [one(7)];
    await recorder.load();
    assert.deepEqual(said, [null, "not as many series as were asked for"]);
    assert.deepEqual(recorder.of("b").mean, [2]); // what is shown stays
  } finally {
    globalThis.fetch = original;
  }
});

test("a small line has a gap where nothing was read", () => {
  assert.equal(pathOf([[0, 1], [1, 2], [2, null], [3, 4]]), "M0.0 1.0L1.0 2.0M3.0 4.0");
});

test("the usual span that holds what there is, is ten minutes at least and a day at most", () => {
  assert.deepEqual([null, 5, 600, 601, 5 * 3600, 30 * 3600].map(holding), [86_400, 600, 600, 3600, 21_600, 86_400]);
});
