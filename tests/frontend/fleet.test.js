// The fleet view's pure parts: what is foreseen, how GPUs stand together, how each looks, and what is found.

import assert from "node:assert/strict";
import { test } from "node:test";

import { toldValue } from "../../frontend/oomwatch_frontend/js/elements/alert-figures.js";
import { byNode, byRisk, byRun, readGrouping } from "../../frontend/oomwatch_frontend/js/fleet-groups.js";
import { LARGEST_ON_WALL } from "../../frontend/oomwatch_frontend/js/fleet-layout.js";
import * as look from "../../frontend/oomwatch_frontend/js/fleet-look.js";
import { Scene } from "../../frontend/oomwatch_frontend/js/fleet-scene.js";
import { foreseenBy, indexForecasts, isForeseen } from "../../frontend/oomwatch_frontend/js/foreseen.js";
import { indexAlerts } from "../../frontend/oomwatch_frontend/js/judge.js";
import { following, intervalOf, withControls, worstRun } from "../../frontend/oomwatch_frontend/js/kiosk.js";
import { parseRoute } from "../../frontend/oomwatch_frontend/js/router.js";
import { entriesOf, partOfUuid, search } from "../../frontend/oomwatch_frontend/js/search.js";
import { foreseenSentence, nextOut, timeLeft } from "../../frontend/oomwatch_frontend/js/views/next-out.js";
import { AT, chinese, english, golden, goldenStore } from "./reading.js";

/** The golden alert, changed. @param {object} changes @returns {import("../../frontend/oomwatch_frontend/js/wire.js").Alert} */
const alert = (changes) => ({ ...golden("alert").alert, muted: [], acknowledged: null, ...changes });

/** A forecast of a GPU. @param {string} gpu @param {object} facts @param {object} [changes] */
const forecast = (gpu, facts, changes = {}) =>
  alert({ id: `f${gpu}`, state: "firing", labels: { node: "gpu-07", gpu, run: "qwen7b_grpo" }, facts, ...changes });

test("a forecast tells the time until a GPU, a host or a disk is full", () => {
  const none = new Map();
  assert.equal(foreseenBy(forecast("3", { eta_seconds: 840, eta_steps: 6 }), none)?.key, "gpu-07/3");
  const host = foreseenBy(alert({ state: "firing", labels: { node: "a" }, facts: { eta_seconds: 60 } }), none);
  assert.deepEqual([host?.key, host?.thing, host?.seconds], ["a", "host", 60]);
  const disk = foreseenBy(alert({ state: "firing", labels: { node: "a" }, facts: { eta_seconds: 60, path: "/s" } }), none);
  assert.deepEqual([disk?.key, disk?.thing], ["a /s", "disk"]);
});

test("what does not fire, or counts steps to something other than full memory, foresees nothing", () => {
  const none = new Map();
  assert.equal(foreseenBy(forecast("3", { eta_seconds: 840 }, { state: "pending" }), none), null);
  assert.equal(foreseenBy(forecast("3", { eta_seconds: 840 }, { state: "resolved" }), none), null);
  assert.equal(foreseenBy(forecast("3", { eta_steps: 9, cap_tokens: 2048 }), none), null);
  assert.equal(foreseenBy(alert({ state: "firing", labels: { run: "r" }, facts: { eta_seconds: 9 } }), none), null);
});

test("steps alone become time by the run's usual step, and stay steps where that is not known", () => {
  const { store } = goldenStore();
  const told = forecast("3", { eta_steps: 10, usable_bytes: 1 });
  const run = store.runs.get("qwen7b_grpo");
  assert.ok(run);
  const steps = [90, 500, 100].map((seconds, index) => ({ at: AT, step: { ...run.steps[0].step, step: index, step_seconds: seconds } }));
  assert.equal(foreseenBy(told, new Map([["qwen7b_grpo", { ...run, steps }]]))?.seconds, 1000);
  const unknown = foreseenBy(told, new Map());
  assert.equal(unknown?.seconds, null);
  assert.ok(unknown);
  assert.equal(timeLeft(english, unknown), "10 steps");
});

test("of two forecasts of one thing the sooner counts, and the soonest thing comes first", () => {
  const { things, soonest } = indexForecasts(
    [forecast("3", { eta_seconds: 900 }), forecast("3", { eta_seconds: 300 }, { id: "x" }), forecast("4", { eta_seconds: 60 })],
    new Map(),
  );
  assert.equal(things.get("gpu-07/3")?.seconds, 300);
  assert.deepEqual(soonest.map(({ key }) => key), ["gpu-07/4", "gpu-07/3"]);
});

test("what runs out next lists what is foreseen before what is fullest, each thing once and ten at most", () => {
  const { store } = goldenStore();
  const forecasts = indexForecasts([alert({ state: "firing", labels: { node: "gpu-07" }, facts: { eta_seconds: 99 } })], store.runs);
  assert.deepEqual(nextOut(store, forecasts).map(({ key }) => key), ["gpu-07", "gpu-07/3"]);
  assert.deepEqual(nextOut(store, forecasts, 1).map(({ key }) => key), ["gpu-07"]);
});

test("the time left is told in time and steps, and what is not full at its end by its share", () => {
  const full = foreseenBy(forecast("3", { eta_seconds: 840, eta_steps: 6 }), new Map());
  const host = foreseenBy(alert({ state: "firing", labels: { node: "a" }, facts: { eta_seconds: 5400, until_ratio: 0.95 } }), new Map());
  assert.ok(full && host);
  assert.equal(foreseenSentence(english, full), "Full in about 14 min (6 steps)");
  assert.equal(foreseenSentence(chinese, full), "约 14 分钟（6 步）后耗尽");
  assert.equal(foreseenSentence(english, host), "At 95\u00a0% in about 1 h 30 min");
  assert.equal(timeLeft(english, host), "1 h 30 min");
});

test("nothing is called steady unless a rule looks for growth", () => {
  const { store } = goldenStore();
  const [rule] = store.rules;
  assert.equal(isForeseen([{ ...rule, when: [{ kind: "threshold" }] }], "gpu"), false);
  assert.equal(isForeseen([{ ...rule, when: [{ kind: "forecast" }] }], "gpu"), true);
  assert.equal(isForeseen([{ ...rule, when: [{ kind: "forecast" }] }], "host"), false);
});

test("a look holds all that is painted of a GPU, and two that look the same are the same number", () => {
  const flags = look.flagsOf("warning", "acknowledged", true);
  const packed = look.lookOf(flags, "ok", 0.876, 96);
  assert.deepEqual(
    [look.levelIn(packed), look.signIn(packed), look.isForeseenIn(packed), look.dataIn(packed), look.bandIn(packed)],
    ["warning", "acknowledged", true, "ok", 2],
  );
  assert.deepEqual([look.heightIn(packed), look.ratioIn(packed)], [84, 0.88]);
  assert.equal(packed, look.lookOf(flags, "ok", 0.8761, 96));
  assert.equal(look.ratioIn(look.lookOf(0, "ok", 0.9967, 96)), 0.996); // 100 % means full
  assert.equal(look.heightIn(look.lookOf(0, "ok", 1.5, 96)), 96);
  const largest = look.lookOf(flags, "ok", 0.77, LARGEST_ON_WALL);
  assert.deepEqual([look.heightIn(largest), look.ratioIn(largest), look.bandIn(largest)], [185, 0.77, 1]);
});

test("what is stale or lost has no share, whatever it last said", () => {
  for (const data of /** @type {const} */ (["stale", "lost"])) {
    const packed = look.lookOf(0, data, 0.9, 40);
    assert.deepEqual([look.dataIn(packed), look.ratioIn(packed), look.heightIn(packed)], [data, null, 0]);
  }
});

test("a GPU stands with its run, with its node, and with its risk", () => {
  const { store } = goldenStore();
  const views = [...store.nodes.values()];
  const none = indexForecasts([], store.runs);
  assert.deepEqual(byNode(views), [{ key: "", parts: [{ node: "gpu-07", gpus: [0, 1] }] }]);
  assert.deepEqual(byRun(views).map(({ key }) => key), ["qwen7b_grpo", ""]);
  const alerts = indexAlerts([forecast("3", {}, { severity: "critical" })]);
  const risks = byRisk(views, alerts, none, AT);
  assert.deepEqual(risks[0], { key: "critical", parts: [{ node: "gpu-07", gpus: [0] }] });
  const all = byRisk(views, indexAlerts([alert({ state: "firing", severity: "warning", labels: { node: "gpu-07" } })]), none, AT);
  assert.deepEqual(all.map(({ key }) => key), ["warning"]);
  assert.equal(readGrouping("colour"), null);
});

test("within a risk the next to run out comes first, then the fullest", () => {
  const { store } = goldenStore();
  const [view] = store.nodes.values();
  const card = view.gpus[0];
  const views = ["a", "b", "c"].map((node, index) => ({
    ...view,
    info: { ...view.info, node },
    gpus: [{ ...card, node, usedBytes: card.usableBytes * (0.3 + 0.3 * index) }],
  }));
  const forecasts = indexForecasts([forecast("3", { eta_seconds: 9 }, { labels: { node: "a", gpu: card.facts.gpu } })], store.runs);
  const [group] = byRisk(views, indexAlerts([]), forecasts, AT);
  assert.deepEqual(group.parts.map(({ node }) => node), ["a", "c", "b"]);
});

test("a scene finds a GPU where it stands, and forgets nothing that alerts say between two readings", () => {
  const { store } = goldenStore();
  const scene = new Scene();
  scene.arrange(store, [{ node: "gpu-07", gpus: [1] }, { node: "gpu-07", gpus: [0] }]);
  const told = [forecast("3", { eta_seconds: 9 }, { severity: "critical" })];
  scene.mark(indexAlerts(told), indexForecasts(told, store.runs));
  scene.read(AT, 40);
  const place = scene.find("gpu-07", "3");
  assert.deepEqual(place, { block: 1, gpu: 0 });
  assert.equal(scene.at(1, 0).foreseen?.seconds, 9);
  assert.equal(look.levelIn(scene.looks[1]), "critical");
  assert.equal(scene.find("gpu-07", "99"), null);
});

test("the signs of a thing say what was done about all of its alerts", () => {
  const acknowledged = { by: "ada", at: AT, note: null };
  const muted = [{ kind: "silence", by: "s", until: null, note: null }];
  const index = indexAlerts([
    forecast("1", {}, { acknowledged }),
    forecast("2", {}, { muted }),
    forecast("2", {}, { acknowledged }),
    forecast("3", {}, { muted }),
    forecast("4", {}, { muted }),
    forecast("4", {}, {}),
  ]);
  assert.deepEqual([...index.signs.values()], ["acknowledged", "acknowledged", "muted", "none"]);
});

test("a search finds runs, nodes, GPUs and alerts by all of its words, the best of each kind first", () => {
  const { store } = goldenStore();
  const entries = entriesOf(store, english);
  const kinds = (/** @type {string} */ query) => search(entries, query).found.map(({ kind }) => kind);
  assert.equal(search(entries, "qwen7b").found[0].href, "#/run/qwen7b_grpo");
  assert.equal(search(entries, "gpu-07:3").found[0].href, "#/gpu/gpu-07/3");
  assert.ok(kinds("GPU-07").includes("node"));
  assert.deepEqual(kinds("no such thing"), []);
  assert.deepEqual(search(entries, "  "), { found: [], more: 0 });
});

test("the server is asked for UUIDs by the longest word, and not by a few letters", () => {
  assert.equal(partOfUuid("gpu-07 GPU-5A7C1f0e"), "gpu-5a7c1f0e");
  assert.equal(partOfUuid("trainer-node-17 gpu-12ab"), "gpu-12ab");
  assert.deepEqual([partOfUuid("qwen"), partOfUuid(" "), partOfUuid("")], [null, null, null]);
});

test("a search lists a few of each kind and counts the rest", () => {
  const { store } = goldenStore();
  const [node] = entriesOf(store, english).filter(({ kind }) => kind === "node");
  const many = Array.from({ length: 20 }, (_, index) => ({ ...node, title: `n${index}`, text: `n${index}` }));
  const { found, more } = search(many, "n1");
  assert.equal(found.length, 5);
  assert.equal(more, 6);
  assert.equal(found[0].title, "n1");
});

test("a wall screen shows the fleet, the worst run and the alerts in turn, each for as long as it is told to", () => {
  const { store } = goldenStore();
  const turn = (/** @type {string} */ hash) => following(parseRoute(hash), store);
  store.alerts.set("a", alert({ id: "a", state: "firing" }));
  assert.equal(turn("#/fleet?kiosk=1"), "#/run/qwen7b_grpo?kiosk=1");
  assert.equal(turn("#/run/qwen7b_grpo?kiosk=1&every=5"), "#/alerts?kiosk=1&every=5");
  assert.equal(turn("#/alerts?kiosk=1"), "#/fleet?kiosk=1");
  assert.equal(intervalOf(parseRoute("#/fleet?kiosk=1")), 20);
  assert.equal(intervalOf(parseRoute("#/fleet?every=0.1")), 3);
  assert.equal(intervalOf(parseRoute("#/fleet?every=soon")), 20);
  assert.equal(withControls(parseRoute("#/run/a?kiosk=1&every=5")), "#/run/a");
  store.runs.clear();
  assert.equal(worstRun(store), null);
  assert.equal(turn("#/fleet?kiosk=1"), "#/alerts?kiosk=1");
  store.alerts.clear();
  assert.equal(turn("#/fleet?kiosk=1"), "#/fleet?kiosk=1"); // an empty list of alerts is nothing to show
});

for (const facts of [{ eta_seconds: 0, eta_steps: 0, usable_bytes: 1 }, { eta_seconds: 9.9, eta_steps: 2 }, { eta_steps: 0, usable_bytes: 1 }]) {
  test(`a forecast with ${JSON.stringify(facts)} left is of now, and tells no noughts`, () => {
    const due = foreseenBy(forecast("3", facts), new Map());
    assert.ok(due);
    assert.equal(timeLeft(english, due), "now");
    assert.equal(foreseenSentence(english, due), "Full at any moment now");
    assert.equal(foreseenSentence(chinese, due), "随时会耗尽");
    assert.equal(toldValue(english, { ...due.alert, value: 0, unit: "seconds", limit: 1800 }), "now");
    const host = { ...due, alert: { ...due.alert, facts: { ...due.alert.facts, until_ratio: 0.95 } } };
    assert.equal(foreseenSentence(english, host), "At 95\u00a0% at any moment now");
  });
}

test("no whole step that is left is not told as none", () => {
  const soon = foreseenBy(forecast("3", { eta_seconds: 100, eta_steps: 0 }), new Map());
  assert.ok(soon);
  assert.equal(foreseenSentence(english, soon), "Full in about 1 min 40 s");
});
