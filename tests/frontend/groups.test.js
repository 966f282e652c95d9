import assert from "node:assert/strict";
import { test } from "node:test";

import {
  endedGroups,
  extent,
  openGroups,
  titleOf,
  unacknowledged,
} from "../../frontend/oomwatch_frontend/js/groups.js";
import { headline, openCount } from "../../frontend/oomwatch_frontend/js/headline.js";
import { AT, chinese, english, golden, goldenStore } from "./reading.js";

/** @typedef {import("../../frontend/oomwatch_frontend/js/wire.js").Alert} Alert */

const SILENCED = [{ kind: /** @type {const} */ ("silence"), by: "s-1", until: AT + 60, note: null }];
const TAKEN = { by: "wei", at: AT, note: null };

/** An open alert on a GPU of run r. @param {number} number @param {object} [changes] @returns {Alert} */
const on = (number, changes = {}) => ({
  ...golden("alert").alert,
  id: `g${number}`,
  state: "firing",
  severity: "critical",
  labels: { run: "r", node: `n${number >> 3}`, gpu: String(number % 8) },
  ended_at: null,
  value: 0.9,
  limit: 0.85,
  muted: [],
  acknowledged: null,
  ...changes,
});

const gpus = (/** @type {number} */ count) => Array.from({ length: count }, (_, number) => on(number));

test("64 GPUs of a run in the same trouble are one group, the worst first", () => {
  const all = gpus(64);
  all[17] = on(17, { value: 0.97 });
  const [group, ...others] = openGroups(all);
  assert.equal(others.length, 0);
  assert.equal(group.alerts.length, 64);
  assert.equal(group.alerts[0].id, "g17");
  assert.match(titleOf(english, group), /^64 GPUs on 8 nodes; the worst: GPU 3 of gpu-07/);
  assert.match(titleOf(chinese, group), /^8 个节点上的 64 块 GPU，最严重的是：/);
});

test("of a forecast the one with the least time left is the worst", () => {
  const left = (/** @type {number} */ number, /** @type {number} */ value) =>
    on(number, { value, limit: 1800, unit: "seconds" });
  assert.equal(openGroups([left(0, 900), left(1, 120), left(2, 600)])[0].alerts[0].id, "g1");
});

test("what differs in run, rule or severity is told apart, and without a run each node is", () => {
  const alone = { labels: { node: "n9", gpu: "0" } };
  const apart = [
    on(0),
    on(1, { alert: "memory_forecast" }),
    on(2, { severity: "warning" }),
    on(3, alone),
    on(4, { labels: { run: "q" } }),
  ];
  assert.equal(openGroups(apart).length, 5);
});

test("what needs somebody comes before what somebody takes care of, and that before what is muted", () => {
  const groups = openGroups([
    on(0, { alert: "a", muted: SILENCED }),
    on(1, { alert: "b", acknowledged: TAKEN }),
    on(2, { alert: "c", severity: "warning" }),
  ]);
  assert.deepEqual(
    groups.map((group) => [group.alerts[0].alert, group.standing]),
    [
      ["c", "open"],
      ["b", "open"],
      ["a", "muted"],
    ],
  );
});

test("a muted critical alert does not hide the warning that people are sent", () => {
  const labels = { node: "a", gpu: "1" };
  const groups = openGroups([on(0, { labels, muted: SILENCED }), on(1, { labels, severity: "warning" })]);
  assert.deepEqual(
    groups.map((group) => [group.alerts[0].severity, group.standing]),
    [
      ["warning", "open"],
      ["critical", "muted"],
    ],
  );
});

test("one that joins an acknowledged group is still to be taken care of", () => {
  const [group] = openGroups([on(0, { acknowledged: TAKEN }), on(1)]);
  assert.deepEqual(
    unacknowledged(group).map((alert) => alert.id),
    ["g1"],
  );
});

test("ended alerts are one group where they were one incident, and two where hours lay between", () => {
  const over = (/** @type {number} */ number, /** @type {number} */ from, /** @type {number} */ to) =>
    on(number, { state: "resolved", started_at: AT + from, ended_at: AT + to });
  const groups = endedGroups([over(0, 0, 100), over(1, 50, 200), over(2, 9000, 9100)]);
  assert.deepEqual(
    groups.map((group) => group.alerts.map((alert) => alert.id)),
    [["g2"], ["g0", "g1"]],
  );
});

test("how much a group is true of is said by what it is about", () => {
  const of = (/** @type {Record<string, string>[]} */ ...labels) =>
    extent(
      english,
      labels.map((one, index) => on(index, { labels: one })),
    );
  assert.equal(of({ node: "a", gpu: "0" }, { node: "a", gpu: "1" }), "2 GPUs of a");
  assert.equal(of({ node: "a" }, { node: "b" }), "2 nodes");
  assert.equal(of({ run: "r" }, { run: "r" }), "2 alerts");
});

/** A store with these alerts and nothing else that is open. @param {Alert[]} alerts */
function storeWith(...alerts) {
  const { store } = goldenStore();
  store.receive(
    JSON.stringify({ type: "tick", at: AT, nodes: [["gpu-07", AT, [30_000, 10_000]]] }),
  );
  store.alerts = new Map(alerts.map((alert) => [alert.id, alert]));
  return store;
}

test("the headline tells what nobody takes care of before something graver that somebody does", () => {
  const taken = on(0, { alert: "a", acknowledged: TAKEN });
  const store = storeWith(taken, on(1, { alert: "b", severity: "warning" }));
  assert.deepEqual([headline(store, english).mark, headline(store, english).alert], ["warning", "g1"]);
  assert.equal(openCount(store.alerts.values()), 1);
  assert.match(headline(storeWith(taken), english).sentence, /^Acknowledged by wei: GPU 3/);
});

test("of several groups the worst alert is told, and of one how much it is true of", () => {
  const pair = [on(0), on(1)];
  assert.match(headline(storeWith(...pair), english).sentence, /^r is at risk: 2 GPUs of n0; the worst: GPU 3/);
  const more = storeWith(...pair, on(2, { alert: "memory_forecast" }));
  assert.match(headline(more, english).sentence, /^r is at risk: GPU 3/);
  const nobodys = [on(0, { labels: { node: "n0", gpu: "0" } }), on(1, { alert: "b", labels: { node: "n1" } })];
  assert.match(headline(storeWith(...nobodys), english).sentence, /^2 alerts; the worst: GPU 3/);
  const taken = storeWith(on(0, { acknowledged: TAKEN }), on(1, { alert: "b", acknowledged: { ...TAKEN, by: "ada" } }));
  assert.match(headline(taken, english).sentence, /^2 alerts, all acknowledged; the worst: GPU 3/);
});

test("over a muted alert nothing is called well", () => {
  const { mark, sentence } = headline(storeWith(on(0, { muted: SILENCED })), english);
  assert.equal(mark, "watch");
  assert.match(sentence, /^Muted: GPU 3/);
});
