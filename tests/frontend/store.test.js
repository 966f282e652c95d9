import assert from "node:assert/strict";
import { test } from "node:test";

import { MIB } from "../../frontend/oomwatch_frontend/js/format.js";
import { Store } from "../../frontend/oomwatch_frontend/js/store.js";
import { AT, golden, goldenStore, goldenText } from "./reading.js";

test("a snapshot gives nodes, runs, alerts and rules, and says live", () => {
  const { store } = goldenStore();
  assert.equal(store.connection.phase, "live");
  assert.deepEqual([...store.nodes.keys()], ["gpu-07"]);
  assert.deepEqual([...store.runs.keys()], ["qwen7b_grpo"]);
  assert.equal(store.alerts.size, 1);
  assert.equal(store.rules.length, 1);
});

test("a tick is laid on the GPUs in the order of the facts, and what is missing stays unknown", () => {
  const { store } = goldenStore();
  store.receive(goldenText("tick"));
  const [first, second] = store.nodes.get("gpu-07")?.gpus ?? [];
  assert.equal(first.usedBytes, 73728 * MIB);
  assert.equal(first.status, "ok");
  assert.equal(second.usedBytes, null);
  assert.equal(second.status, "lost");
});

test("a GPU without a number in a tick has no data even where no status came", () => {
  const { store } = goldenStore();
  store.receive('{"type":"tick","at":1764430002,"nodes":[["gpu-07",1764430002,[5,null]]]}');
  assert.deepEqual(
    store.nodes.get("gpu-07")?.gpus.map((gpu) => gpu.status),
    ["ok", "no_data"],
  );
});

test("a tick of an unknown node is passed over", () => {
  const { store } = goldenStore();
  store.receive('{"type":"tick","at":1764430002,"nodes":[["stranger",1764430002,[5]]]}');
  assert.deepEqual(store.ticked, []);
});

test("new facts keep the readings of the GPUs that stay", () => {
  const { store } = goldenStore();
  store.receive(goldenText("tick"));
  const changed = JSON.parse(goldenText("node"));
  delete changed.node.reading;
  changed.node.cards.reverse();
  store.receive(JSON.stringify(changed));
  const gpus = store.nodes.get("gpu-07")?.gpus ?? [];
  assert.deepEqual(
    gpus.map((gpu) => gpu.facts.gpu),
    ["3:1", "3"],
  );
  assert.equal(gpus[1].usedBytes, 73728 * MIB);
});

test("what only the page of a GPU shows of a card stays through frames that tell of it at a glance, while it is the same card", () => {
  const { store } = goldenStore();
  const uuids = () => store.nodes.get("gpu-07")?.gpus.map(({ facts }) => facts.uuid);
  const [whole, mig] = golden("node-in-full").node.facts.gpus.map((/** @type {any} */ gpu) => gpu.uuid);
  assert.deepEqual(uuids(), [null, null]);
  store.putDetail(golden("node-in-full").node);
  assert.deepEqual(uuids(), [whole, mig]);
  const other = JSON.parse(goldenText("node"));
  other.node.cards[1][1] = "NVIDIA H200";
  store.receive(JSON.stringify(other));
  assert.deepEqual(uuids(), [whole, null]);
});

test("a node's frame that a tick has overtaken changes what ticks leave out, and no reading", () => {
  const { store } = goldenStore();
  store.receive(goldenText("tick"));
  const message = JSON.parse(goldenText("node-in-full"));
  message.node.sample.gpus[0].processes = [];
  store.receive(JSON.stringify(message));
  const view = store.nodes.get("gpu-07");
  assert.deepEqual(view?.gpus[0].sample?.processes, []);
  assert.equal(view?.gpus[0].usedBytes, 73728 * MIB);
  assert.equal(view?.gpus[0].torchReservedBytes, 62464 * MIB);
  assert.equal(view?.gpus[1].status, "lost");
});

test("what ticks leave out is not known until it is told, and then stays through frames without it", () => {
  const { store } = goldenStore();
  const view = () => store.nodes.get("gpu-07");
  assert.equal(view()?.isDetailed, false);
  assert.equal(view()?.gpus[0].usedBytes, 73728 * MIB);
  store.putDetail(golden("node-in-full").node);
  for (const frame of ["node", "snapshot", "tick"]) {
    store.receive(goldenText(frame));
    assert.ok(view()?.isDetailed);
    assert.equal(view()?.gpus[0].sample?.power_watts, 612.5);
    assert.equal(view()?.info.together?.at, AT - 9);
  }
});

test("a snapshot that has a node in full needs no question for it", () => {
  const snapshot = JSON.parse(goldenText("snapshot"));
  snapshot.nodes = [JSON.parse(goldenText("node-in-full")).node];
  const store = new Store(() => AT);
  store.receive(JSON.stringify(snapshot));
  assert.ok(store.nodes.get("gpu-07")?.isDetailed);
});

test("a node of which nothing was read yet is known in full once it was asked for", () => {
  const { store } = goldenStore();
  const { node } = golden("node");
  store.putDetail({ ...node, node: "new", reading: null });
  assert.deepEqual([store.nodes.get("new")?.isDetailed, store.nodes.get("new")?.info.sample], [true, null]);
  store.receive(JSON.stringify({ type: "node", node: { ...JSON.parse(goldenText("node")).node, node: "new" } }));
  assert.ok(store.nodes.get("new")?.isDetailed);
});

test("a snapshot after a break brings its own readings, and where it has none, none are shown", () => {
  const { store } = goldenStore();
  const snapshot = JSON.parse(goldenText("snapshot"));
  delete snapshot.nodes[0].reading;
  store.receive(JSON.stringify(snapshot));
  assert.equal(store.nodes.get("gpu-07")?.gpus[0].usedBytes, null);
});

test("a run's new steps are appended to those known", () => {
  const { store } = goldenStore();
  const message = JSON.parse(goldenText("run"));
  message.run.steps[0].step.step = 13;
  message.run.reshard_cycles_total = 13;
  store.receive(JSON.stringify(message));
  const run = store.runs.get("qwen7b_grpo");
  assert.deepEqual(
    run?.steps.map((point) => point.step.step),
    [12, 13],
  );
  assert.equal(run?.reshard_cycles_total, 13);
});

test("a node and a run that were forgotten are gone, and may come again", () => {
  const { store } = goldenStore();
  /** @type {Set<string>[]} */
  const changes = [];
  store.subscribe((topics) => changes.push(topics));
  store.receive(goldenText("forgotten"));
  assert.deepEqual([store.nodes.size, store.runs.size], [0, 0]);
  assert.deepEqual([...changes[0]].sort(), ["nodes", "runs"]);
  store.receive(goldenText("node"));
  store.receive(goldenText("run"));
  assert.deepEqual([store.nodes.size, store.runs.size], [1, 1]);
});

test("the phases told with a change replace those from their beginning on", () => {
  const { store } = goldenStore();
  const message = JSON.parse(goldenText("run"));
  const told = () => store.runs.get("qwen7b_grpo")?.phases.map(({ start_at: at, end_at: end, phase }) => [at - AT, end && end - AT, phase]);
  message.run.phases = [
    { start_at: AT - 30, end_at: AT - 18, phase: "update_weights", step: 12, known_by: "step line" },
    { start_at: AT - 18, phase: "rollout", known_by: "mark" },
  ];
  store.receive(JSON.stringify(message));
  assert.deepEqual(told(), [
    [-94, -64, "rollout"],
    [-64, -30, "update_actor"],
    [-30, -18, "update_weights"],
    [-18, null, "rollout"],
  ]);
  delete message.run.phases;
  store.receive(JSON.stringify(message));
  assert.equal(told()?.length, 4);
});

test("what probes say is the sum over a GPU's processes, and unknown where there is no probe", () => {
  const { store } = goldenStore();
  const reserved = () => store.nodes.get("gpu-07")?.gpus.map((gpu) => gpu.torchReservedBytes);
  assert.deepEqual(reserved(), [42 * 1024 * MIB, null]);
  store.receive(goldenText("tick"));
  assert.deepEqual(reserved(), [62464 * MIB, null]);
  store.receive('{"type":"tick","at":1764430002,"nodes":[["gpu-07",1764430002,[5,6]]]}');
  assert.deepEqual(reserved(), [null, null]);
});

test("an alert that ended is kept, one that ended before it ever fired is taken away", () => {
  const { store } = goldenStore();
  const message = JSON.parse(goldenText("alert"));
  store.receive(JSON.stringify(message));
  assert.equal(store.alerts.get(message.alert.id)?.state, "resolved");
  delete message.alert.fired_at;
  store.receive(JSON.stringify(message));
  assert.equal(store.alerts.size, 0);
});

test("a new snapshot replaces everything", () => {
  const { store } = goldenStore();
  store.receive(goldenText("snapshot-empty"));
  assert.deepEqual([store.nodes.size, store.runs.size, store.alerts.size, store.rules.length], [0, 0, 0, 0]);
});

test("a connection that ended stays so until a snapshot comes", () => {
  const { store } = goldenStore();
  store.connectionEnded();
  store.connectionOpened();
  assert.deepEqual([store.connection.phase, store.connection.retryAtMs], ["ended", null]);
  store.receive(goldenText("snapshot"));
  assert.equal(store.connection.phase, "live");
});

test("a lost connection is reconnecting once there was data, and connecting before", () => {
  const fresh = new Store(() => AT);
  fresh.connectionLost(0);
  assert.deepEqual([fresh.connection.phase, fresh.connection.failed], ["connecting", true]);
  const { store } = goldenStore();
  store.connectionLost(0);
  assert.equal(store.connection.phase, "reconnecting");
  assert.equal(store.nodes.size, 1);
});

test("frames that cannot be read and frames of unknown types are counted, and change nothing", () => {
  const { store } = goldenStore();
  store.receive("{");
  store.receive('{"type":"weather"}');
  assert.deepEqual([store.malformedFrames, store.unknownFrames, store.nodes.size], [1, 1, 1]);
});

test("the server's clock is told by the least delayed frame", () => {
  const clock = { now: AT + 100 }; // our clock is 100 s ahead
  const store = new Store(() => clock.now);
  store.receive(goldenText("snapshot"));
  assert.equal(store.now(), AT);
  clock.now += 10;
  store.receive('{"type":"tick","at":1764430007}'); // 3 s late
  assert.equal(store.now(), AT + 10);
});

test("a change is one event that names its topics, until the subscriber leaves", () => {
  const { store } = goldenStore();
  /** @type {string[][]} */
  const heard = [];
  const leave = store.subscribe((topics) => heard.push([...topics]));
  store.apply(golden("tick"));
  store.apply(golden("alert"));
  leave();
  store.apply(golden("alert"));
  assert.deepEqual(heard, [["tick"], ["alerts"]]);
});
