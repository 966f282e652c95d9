// Alerts over time: which bars, rows and lanes they make, where the axis is marked, and what it costs to wait.

import assert from "node:assert/strict";
import { test } from "node:test";

import { passes } from "../../frontend/oomwatch_frontend/js/alertfilter.js";
import { lanesOf, spanOf, together } from "../../frontend/oomwatch_frontend/js/alertline.js";
import { readSpans, readStoryAlert } from "../../frontend/oomwatch_frontend/js/alertwire.js";
import { barLines, standingOf } from "../../frontend/oomwatch_frontend/js/elements/alert-bar.js";
import { tickText, ticks } from "../../frontend/oomwatch_frontend/js/timeticks.js";
import { costOfWaiting } from "../../frontend/oomwatch_frontend/js/waiting.js";
import { setZone } from "../../frontend/oomwatch_frontend/js/zone.js";
import { AT, chinese, english, golden, goldenStore } from "./reading.js";

/** @typedef {import("../../frontend/oomwatch_frontend/js/alertwire.js").Span} Span */

setZone("utc");

/** @param {string} id @param {number} from @param {number | null} to @param {Partial<Span>} [changes] @returns {Span} */
const span = (id, from, to, changes = {}) => ({
  id,
  alert: "full",
  severity: "warning",
  state: to === null ? "firing" : "resolved",
  labels: { run: "r", node: "n1", gpu: "0" },
  started_at: from,
  fired_at: from + 5,
  ended_at: to,
  value: 0.9,
  limit: 0.85,
  unit: "ratio",
  summary: `${id} is full`,
  muted: false,
  acknowledged_by: null,
  outcome: null,
  simulated: false,
  ...changes,
});

test("alerts of one rule and run that touch are one bar, and those apart are two", () => {
  const [lane] = lanesOf([span("a", 0, 100), span("b", 90, 200), span("c", 230, 300), span("d", 1000, 1100)], "run", 10);
  assert.equal(lane.name, "r");
  assert.equal(lane.rows.length, 1);
  const bars = lane.rows[0].bars;
  assert.deepEqual(bars.map(({ from, to, spans }) => [from, to, spans.length]), [[0, 300, 3], [1000, 1100, 1]]);
});

test("what begins too near to another to be pressed alone is one bar with it", () => {
  const short = [span("a", 0, 10), span("b", 200, 210), span("c", 600, 610)];
  assert.equal(lanesOf(short, "run", 10)[0].rows[0].bars.length, 3);
  assert.deepEqual(lanesOf(short, "run", 300)[0].rows[0].bars.map(({ spans }) => spans.length), [2, 1]);
});

test("an open alert has no end, and nothing after it stands apart from it", () => {
  const [bar, ...others] = lanesOf([span("a", 0, null), span("b", 5000, 5010)], "run", 1)[0].rows[0].bars;
  assert.equal(others.length, 0);
  assert.equal(bar.to, null);
  assert.equal(bar.spans[0].id, "a");
});

test("severities and rules have rows of their own, the worst first", () => {
  const rows = lanesOf(
    [span("a", 0, 9), span("b", 0, 9, { severity: "critical" }), span("c", 0, 9, { alert: "slow", severity: "info" })],
    "run",
    1,
  )[0].rows;
  assert.deepEqual(rows.map(({ alert, level }) => [alert, level]), [["full", "critical"], ["full", "warning"], ["slow", "watch"]]);
});

test("lanes are runs or nodes, what is open and worst first, and what has no run stands by its node", () => {
  const spans = [
    span("old", 0, 50, { labels: { run: "quiet" } }),
    span("host", 0, 90, { labels: { node: "n7" } }),
    span("bad", 10, null, { severity: "critical", labels: { run: "loud", node: "n1", gpu: "1" } }),
    span("mild", 10, null, { labels: { run: "r", node: "n2", gpu: "1" } }),
  ];
  assert.deepEqual(lanesOf(spans, "run", 1).map(({ by, name, open }) => [by, name, open]), [["run", "loud", 1], ["run", "r", 1], ["node", "n7", 0], ["run", "quiet", 0]]);
  assert.deepEqual(lanesOf(spans, "node", 1).map(({ by, name }) => [by, name]), [["node", "n1"], ["node", "n2"], ["node", "n7"], ["run", "quiet"]]);
});

test("a bar is muted, acknowledged or waiting only where all of it is", () => {
  const standing = (/** @type {Partial<Span>[]} */ ...changes) =>
    standingOf(lanesOf(changes.map((one, index) => span(String(index), 0, null, one)), "run", 1)[0].rows[0].bars[0]);
  assert.equal(standing({ muted: true }, { muted: true }), "muted");
  assert.equal(standing({ muted: true }, {}), "firing");
  assert.equal(standing({ acknowledged_by: "wei" }), "acknowledged");
  assert.equal(standing({ state: "pending", fired_at: null }, { state: "pending", fired_at: null }), "pending");
  assert.equal(standing({ state: "pending", fired_at: null }, {}), "firing");
});

test("what is live is newer than what was asked for, and what was withdrawn is gone", () => {
  const asked = [span("a", 0, null), span("b", 0, 50), span("waits", 0, null, { state: "pending", fired_at: null })];
  const live = new Map([["a", span("a", 0, 80)], ["new", span("new", 90, null)], ["later", span("later", 500, null)]]);
  assert.deepEqual(together(asked, live, [10, 100]).map(({ id, ended_at }) => [id, ended_at]), [["a", 80], ["b", 50], ["new", null]]);
  assert.deepEqual(together(asked, new Map(), [60, 100]), [], "b was over by then");
});

test("filters are the same for a live alert and for a span", () => {
  const { alert } = golden("alert");
  const own = spanOf(alert, "it");
  /** @type {import("../../frontend/oomwatch_frontend/js/alertfilter.js").Filter[]} */
  const filters = [{}, { severity: own.severity }, { alert: own.alert }, { severity: "info" }, { alert: "other" }, { node: "none" }, { state: "ended" }];
  for (const filter of filters)
    assert.equal(passes(own, filter), passes(alert, filter), JSON.stringify(filter));
  assert.ok(!passes(own, { alert: "other" }));
});

test("a bar says what, since when, how long, by how much and what came of it", () => {
  const [bar] = lanesOf([span("a", AT - 120, AT - 60, { outcome: "happened" }), span("b", AT - 100, AT - 60)], "run", 1)[0].rows[0].bars;
  const [title, times, states] = barLines(english, bar, AT);
  assert.match(title, /^2 alerts; the worst: Warning: a is full$/);
  assert.match(times, /^from .* · fired .* · until .* · lasts 1 min$/);
  assert.match(states, /ended · it happened · last value 90/);
  assert.match(barLines(chinese, bar, AT)[0], /^2 个告警，最严重的是：警告：a is full$/);
});

test("an axis is marked at whole times of the zone, no more often than there is room for", () => {
  const day = Date.UTC(2026, 10, 30) / 1000;
  for (const [span, most] of [[600, 8], [3600, 5], [86_400, 12], [604_800, 7], [31 * 86_400, 6]]) {
    const marks = ticks([day + 17, day + 17 + span], most);
    assert.ok(marks.length >= 2 && marks.length <= most + 1, `${span} s: ${marks.length}`);
    assert.ok(marks.every(({ at, step }) => at % Math.min(step, 86_400) === 0));
  }
  assert.deepEqual(ticks([day - 3600, day + 3600], 4).map((tick) => tickText(english, tick)), ["23:00", "23:30", "Nov 30", "00:30", "01:00"]);
  assert.deepEqual(ticks([day + 1, day + 21], 4).map((tick) => tickText(english, tick)), ["00:00:05", "00:00:10", "00:00:15", "00:00:20"]);
});

test("an answer about one alert is an alert in the language that was asked for", () => {
  const { texts, ...fields } = golden("alert").alert;
  const story = { alert: { ...fields, ...texts.en }, transitions: [], deliveries: [] };
  assert.equal(readStoryAlert(story, "en").texts.en.summary, texts.en.summary);
  assert.throws(() => readSpans({ alerts: [{ id: 1 }] }), /id/);
});

// ---------------------------------------------------------------- waiting

/** @param {Record<string, unknown>} config @param {Record<string, any>} [changes] of the alert */
function waited(config, changes = {}) {
  const { store } = goldenStore();
  const steps = [10, 11, 12].map((step) => ({ at: AT, step: { ...golden("run").run.steps[0].step, step, step_seconds: 60 } }));
  const [name] = store.runs.keys();
  const run = /** @type {any} */ (store.runs.get(name));
  store.runs.set(name, { ...run, steps, config });
  const alert = /** @type {any} */ ({ ...golden("alert").alert, state: "firing", labels: { run: name, node: "n", gpu: "0" }, facts: { eta_seconds: 480, eta_steps: 8 }, outcome: null, ...changes });
  store.alerts.clear();
  return { store, alert };
}

test("lost is what was done since the last checkpoint, as the run's own setting says", () => {
  const { store, alert } = waited({ "trainer.save_freq": 6 });
  const { full, lost } = costOfWaiting(store, alert);
  assert.equal(full?.seconds, 480);
  assert.deepEqual(lost, { steps: 2, seconds: 120, every: 6 }); // full at step 20, saved at 18
});

test("without checkpoints all is lost, and where nobody knows of them nothing is said", () => {
  const never = waited({ "trainer.save_freq": -1 });
  assert.deepEqual(costOfWaiting(never.store, never.alert).lost, { steps: 20, seconds: 1200, every: -1 });
  const unknown = waited({});
  assert.equal(costOfWaiting(unknown.store, unknown.alert).lost, null);
});

test("an alert about a level waits by the forecast of the same GPU, and not by that of another", () => {
  const { store, alert } = waited({ "trainer.save_freq": 6 }, { id: "forecast" });
  const level = { ...alert, id: "level", facts: { usable_bytes: 9 } };
  store.alerts.set(alert.id, alert);
  assert.equal(costOfWaiting(store, level).full?.seconds, 480);
  assert.equal(costOfWaiting(store, { ...level, labels: { ...level.labels, gpu: "1" } }).full, null);
});

test("what has come true is waited for no more, and a slow step costs its own time", () => {
  const { store, alert } = waited({ "trainer.save_freq": 6 });
  const happened = { ...alert, outcome: { verdict: "happened", at: AT, lead_seconds: 9, lead_steps: null } };
  assert.equal(costOfWaiting(store, happened).full, null);
  const slow = { ...alert, labels: { run: "other" }, facts: { baseline_seconds: 40 }, value: 100, unit: "seconds" };
  assert.equal(costOfWaiting(store, slow).slowerSeconds, 60);
});

test("nouns agree with the number before them", () => {
  assert.equal(english.t("run.table_cut", { n: 1, all: 1 }), "The last 1 of 1 step in view.");
  assert.equal(english.t("group.gpus_nodes", { n: 1, nodes: 2 }), "1 GPU on 2 nodes");
  assert.equal(english.t("ack.some_failed", { n: 2, left: 1 }), "2 are acknowledged, 1 is not.");
  assert.equal(chinese.t("group.gpus_nodes", { n: 1, nodes: 2 }), "2 个节点上的 1 块 GPU");
});
