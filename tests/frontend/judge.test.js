import assert from "node:assert/strict";
import { test } from "node:test";

import {
  fullest,
  gpuData,
  gpusOfRun,
  indexAlerts,
  runLevels,
  isDemo,
  levelOf,
  memoryLimits,
  nodeData,
  openAlerts,
  runsByNode,
} from "../../frontend/oomwatch_frontend/js/judge.js";
import { passes } from "../../frontend/oomwatch_frontend/js/alertfilter.js";
import { byState, firstOfEach, listed } from "../../frontend/oomwatch_frontend/js/views/alerts.js";
import { lastAttempt } from "../../frontend/oomwatch_frontend/js/run-steps.js";
import { AT, golden, goldenStore, goldenText } from "./reading.js";

/** The golden alert, changed. @param {object} changes @returns {import("../../frontend/oomwatch_frontend/js/wire.js").Alert} */
const alert = (changes) => ({ ...golden("alert").alert, ...changes });

test("the level of an alert follows its state before its severity", () => {
  assert.equal(levelOf(alert({ state: "firing", severity: "critical" })), "critical");
  assert.equal(levelOf(alert({ state: "pending", severity: "critical" })), "watch");
  assert.equal(levelOf(alert({ state: "firing", severity: "info" })), "watch");
  assert.equal(levelOf(alert({ state: "resolved", severity: "critical" })), "ok");
});

test("an alert marks the most exact thing it names", () => {
  const index = indexAlerts([
    alert({ state: "firing", severity: "warning", labels: { node: "a", gpu: "1", run: "r" } }),
    alert({ state: "firing", severity: "critical", labels: { node: "a" } }),
    alert({ state: "firing", severity: "critical", labels: { run: "r" } }),
  ]);
  assert.deepEqual([...index.gpus], [["a/1", "warning"]]);
  assert.deepEqual([...index.nodes], [["a", "critical"]]);
  assert.deepEqual([...index.hosts], ["a"]);
});

test("a run is as bad as the worst alert that concerns it, of its own, of its GPUs or of their node", () => {
  const { store } = goldenStore();
  const [run] = [...store.nodes.values()].flatMap(({ gpus }) => gpus.flatMap((gpu) => gpu.run ?? []));
  const [node] = [...store.nodes.values()].filter(({ gpus }) => gpus.some((gpu) => gpu.run === run)).map(({ info }) => info.node);
  const levels = (/** @type {import("../../frontend/oomwatch_frontend/js/wire.js").Alert[]} */ ...alerts) => {
    store.alerts = new Map(alerts.map((one, index) => [String(index), one]));
    return [...runLevels(store)];
  };
  const ofNode = alert({ state: "firing", severity: "warning", labels: { node } });
  assert.deepEqual(levels(ofNode), [[run, "warning"]]);
  assert.deepEqual(levels(ofNode, alert({ state: "firing", severity: "critical", labels: { run } })), [[run, "critical"]]);
  assert.deepEqual(levels(alert({ state: "resolved", severity: "critical", labels: { run } })), []);
});

test("what is closest to full comes first, hosts among GPUs, and what has no current data is left out", () => {
  const { store, clock } = goldenStore();
  assert.deepEqual(
    fullest(store, 10).map((item) => item.key),
    ["gpu-07/3", "gpu-07"],
  );
  assert.deepEqual(
    fullest(store, 1).map((item) => item.key),
    ["gpu-07/3"],
  );
  clock.now = AT + 60;
  assert.deepEqual(fullest(store, 10), []);
});

test("a GPU of a silent node is stale, whatever it last said, and a lost one stays lost", () => {
  const { store, clock } = goldenStore();
  store.receive(goldenText("tick"));
  clock.now = AT + 60;
  const view = store.nodes.get("gpu-07");
  assert.ok(view);
  const ofNode = nodeData(view, store.now());
  assert.equal(ofNode, "stale");
  assert.deepEqual(
    view.gpus.map((gpu) => gpuData(gpu, ofNode)),
    ["stale", "lost"],
  );
});

test("the limits of the chart are those of the rules on the used share", () => {
  const { store } = goldenStore();
  assert.deepEqual(memoryLimits(store), [{ ratio: 0.85, severity: "warning" }]);
});

test("a node belongs to the run its agent named and to the runs that name it", () => {
  const { store } = goldenStore();
  assert.deepEqual([...runsByNode(store)], [["gpu-07", ["qwen7b_grpo"]]]);
  const view = store.nodes.get("gpu-07");
  assert.ok(view);
  view.info = { ...view.info, run: null };
  assert.deepEqual([...runsByNode(store)], [["gpu-07", ["qwen7b_grpo"]]]);
});

/** Two runs on the golden node: its processes say which GPU is whose. */
function sharedNode() {
  const { store } = goldenStore();
  store.receive(
    JSON.stringify({ type: "run", run: { run: "other", nodes: ["gpu-07"], first_seen_at: AT, last_seen_at: AT } }),
  );
  const view = store.nodes.get("gpu-07");
  assert.ok(view);
  return { store, view };
}

test("a run that has left a node is not shown there once the run of each of its GPUs is known", () => {
  const { store } = sharedNode();
  const message = JSON.parse(goldenText("node"));
  message.node.gpu_runs = ["other", "other"];
  store.receive(JSON.stringify(message));
  assert.deepEqual(runsByNode(store).get("gpu-07"), ["other"]);
});

test("the run of each GPU is the one that the server names, and none where it does not", () => {
  const { store, view } = sharedNode();
  assert.deepEqual(runsByNode(store).get("gpu-07"), ["qwen7b_grpo", "other"]);
  assert.deepEqual(
    view.gpus.map((gpu) => gpu.run),
    ["qwen7b_grpo", null],
  );
});

test("a run has the GPUs that are its own, and no others of its nodes", () => {
  const { store } = sharedNode();
  const named = (/** @type {string} */ name) => {
    const run = store.runs.get(name);
    assert.ok(run);
    return [...gpusOfRun(store, run).values()].flat().map((gpu) => gpu.facts.gpu);
  };
  assert.deepEqual(named("qwen7b_grpo"), ["3"]);
  assert.deepEqual(named("other"), []);
});

test("steps that a resumed run does again replace those it did before", () => {
  const point = (/** @type {number} */ step, /** @type {number} */ at) => ({
    at,
    step: { ...golden("run").run.steps[0].step, step },
  });
  const points = [point(1, 10), point(2, 20), point(3, 30), point(2, 40), point(3, 50), point(4, 60)];
  assert.deepEqual(
    lastAttempt(points).map(({ at, step }) => [step.step, at]),
    [
      [1, 10],
      [2, 40],
      [3, 50],
      [4, 60],
    ],
  );
  assert.deepEqual(
    lastAttempt([...points, point(1, 70)]).map(({ at }) => at),
    [70],
  );
});

test("whatever is simulated makes the page a demo", () => {
  const { store } = goldenStore();
  assert.ok(isDemo(store));
  store.receive(goldenText("snapshot-empty"));
  assert.ok(!isDemo(store));
  store.receive(goldenText("alert"));
  assert.ok(isDemo(store));
});

test("alerts are filtered by state, run and node together", () => {
  const open = alert({ state: "firing" });
  assert.ok(passes(open, {}));
  assert.ok(passes(open, { state: "open", run: "qwen7b_grpo", node: "gpu-07" }));
  assert.ok(!passes(open, { state: "ended" }));
  assert.ok(!passes(open, { node: "gpu-08" }));
  assert.ok(!passes(alert({}), { state: "open" }));
});

test("open alerts come first with the worst on top, then those that ended last", () => {
  const alerts = [
    alert({ id: "old", ended_at: AT - 100 }),
    alert({ id: "warning", state: "firing", severity: "warning" }),
    alert({ id: "late", ended_at: AT - 10 }),
    alert({ id: "critical", state: "firing", severity: "critical" }),
  ];
  assert.deepEqual(
    alerts.sort(byState).map(({ id }) => id),
    ["critical", "warning", "late", "old"],
  );
});

test("while a rule is critical of something, its warning of the same is not shown", () => {
  const labels = { node: "a", gpu: "1" };
  const warning = alert({ id: "w", state: "firing", severity: "warning", labels });
  const critical = alert({ id: "c", state: "firing", severity: "critical", labels });
  const elsewhere = alert({ id: "e", state: "firing", severity: "warning", labels: { node: "a", gpu: "2" } });
  const ids = openAlerts([warning, critical, elsewhere]).map(({ id }) => id);
  assert.deepEqual(ids, ["c", "e"]);
  const over = { ...critical, state: /** @type {const} */ ("resolved"), ended_at: AT };
  assert.deepEqual(
    [listed([warning, over], {}).open, listed([warning, over], {}).ended].map(([group]) => group.alerts[0].id),
    ["w", "c"],
  );
});

test("what a rule says of a run in two severities is unfolded once, and not where somebody takes care of it", () => {
  const of = (/** @type {string} */ gpu, /** @type {object} */ changes) =>
    alert({ id: gpu, state: "firing", severity: "warning", labels: { node: "a", gpu, run: "r" }, ...changes });
  const other = alert({ id: "o", alert: "host_memory_high", state: "firing", severity: "warning", labels: { node: "a" } });
  const taken = { ...other, id: "t", alert: "disk_full", acknowledged: { by: "wei", at: AT, note: null } };
  const { open } = listed([of("0", {}), of("1", { severity: "critical" }), other, of("2", {}), taken], {});
  assert.deepEqual(
    firstOfEach(open).map((group) => group.alerts[0].id),
    ["1", "o"],
  );
});

test("a muted alert marks what it is about as worth an eye, and no more", () => {
  const muted = [{ kind: /** @type {const} */ ("silence"), by: "s", until: null, note: null }];
  const index = indexAlerts([alert({ state: "firing", severity: "critical", labels: { node: "a", gpu: "1" }, muted })]);
  assert.deepEqual([...index.gpus], [["a/1", "watch"]]);
});
