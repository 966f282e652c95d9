import assert from "node:assert/strict";
import { test } from "node:test";

import { whyOf } from "../../frontend/oomwatch_frontend/js/elements/headline-why.js";
import { headline, worstAlert } from "../../frontend/oomwatch_frontend/js/headline.js";
import { GLYPHS, SHAPES, iconUrl } from "../../frontend/oomwatch_frontend/js/marks.js";
import { Store } from "../../frontend/oomwatch_frontend/js/store.js";
import { AT, chinese, english, goldenStore, goldenText } from "./reading.js";

/** The golden node with both GPUs well, and the alert in any state. @param {object} [alert] */
function scene(alert) {
  const made = goldenStore();
  const message = JSON.parse(goldenText("alert"));
  if (alert !== undefined) made.store.receive(JSON.stringify({ ...message, alert: { ...message.alert, ...alert } }));
  tick(made.store, [30_000, 10_000]);
  return made;
}

/** @param {Store} store @param {(number | null)[]} used @param {string[]} [status] */
function tick(store, used, status) {
  store.receive(JSON.stringify({ type: "tick", at: AT, nodes: [["gpu-07", AT, used, [], status]] }));
}

test("a fleet in which all is well says so, with its size", () => {
  assert.deepEqual(headline(scene().store, english), { mark: "ok", sentence: "All 2 GPUs have headroom", alert: null });
  assert.equal(headline(scene().store, chinese).sentence, "全部 2 块 GPU 显存余量充足");
});

test("who is signed out is told so, and how old what is shown has become", () => {
  const { store } = scene();
  store.connectionEnded();
  assert.match(headline(store, english).sentence, /^You are signed out: what is shown is .* old\. Sign in to go on$/);
  assert.match(headline(store, chinese).sentence, /^你已退出登录/);
  const unseen = new Store(() => AT);
  unseen.connectionEnded();
  assert.equal(headline(unseen, english).sentence, "You are signed out. Sign in to see how things stand");
});

/** The golden run with so many steps, of these numbers, watched by a rule that foresees. @param {number[]} numbers */
function stepped(numbers) {
  const { store } = scene();
  store.rules = store.rules.map((rule) => ({ ...rule, when: [{ kind: "forecast" }] }));
  const run = store.runs.get("qwen7b_grpo");
  assert.ok(run);
  const [one] = run.steps;
  store.runs.set(run.run, { ...run, first_seen_at: AT - 60, steps: numbers.map((step) => ({ ...one, step: { ...one.step, step } })) });
  return store;
}

test("headroom is promised to last only where a rule has seen enough steps to say so", () => {
  const unknown = "All 2 GPUs have headroom now; no forecast of qwen7b_grpo yet";
  assert.equal(headline(stepped([1, 2, 3, 4]), english).sentence, "All 2 GPUs have headroom");
  assert.equal(headline(stepped([1, 2, 3]), english).sentence, unknown);
  assert.equal(headline(stepped([7, 8, 9, 1, 2, 3]), english).sentence, unknown, "it was started again");
  assert.equal(headline(stepped([7, 8, 9, 1, 2, 3, 4]), english).sentence, "All 2 GPUs have headroom");
  assert.equal(headline(stepped([]), english).sentence, unknown);
  assert.equal(headline(stepped([1]), chinese).sentence, "全部 2 块 GPU 显存余量充足（当前）；尚无 qwen7b_grpo 的预测");
});

test("one open alert is told by its own sentence, after the run that it puts at risk", () => {
  const { store } = scene({ state: "firing", severity: "critical" });
  const said = headline(store, english);
  assert.equal(said.mark, "critical");
  assert.equal(said.sentence, "qwen7b_grpo is at risk: GPU 3 of gpu-07: 93 % of its memory is in use");
  assert.equal(said.alert, "0f3e5a7c1f0e");
});

test("of several alerts the worst is told", () => {
  const { store } = scene({ id: "w", state: "firing", severity: "warning" });
  const critical = JSON.parse(goldenText("alert"));
  store.receive(
    JSON.stringify({
      ...critical,
      alert: { ...critical.alert, id: "c", alert: "memory_forecast", state: "firing", severity: "critical" },
    }),
  );
  const said = headline(store, english);
  assert.deepEqual([said.mark, said.alert], ["critical", "c"]);
  assert.match(said.sentence, /^qwen7b_grpo is at risk: GPU 3/);
});

test("what a rule says twice, as a warning and as critical, is one alert", () => {
  const { store } = scene({ id: "w", state: "firing", severity: "warning" });
  const critical = JSON.parse(goldenText("alert"));
  store.receive(
    JSON.stringify({ ...critical, alert: { ...critical.alert, id: "c", state: "firing", severity: "critical" } }),
  );
  const said = headline(store, english);
  assert.deepEqual([said.mark, said.alert], ["critical", "c"]);
  assert.match(said.sentence, /^qwen7b_grpo is at risk: GPU 3 of gpu-07: 93 %/);
});

/** Alerts of a kind, one a run, as firing critical ones. @param {{ run?: string, alert?: string, facts?: object, node?: string, gpu?: string, summary?: string }[]} all */
function firing(all) {
  const { store } = scene();
  const { alert } = JSON.parse(goldenText("alert"));
  all.forEach(({ run, alert: name = "a", facts = {}, node, gpu, summary = "It is so" }, index) => {
    const labels = Object.fromEntries(Object.entries({ run, node, gpu }).filter(([, value]) => value !== undefined));
    const texts = { en: { summary, description: "", advice: [] } };
    const one = { ...alert, id: `f${index}`, alert: name, state: "firing", severity: "critical", stale: false, labels, facts, texts };
    store.receive(JSON.stringify({ type: "alert", alert: { ...one, started_at: AT - 100 + index, ended_at: null } }));
  });
  return store;
}

test("runs at risk are counted, and a summary that names its run is left alone", () => {
  const two = firing([{ run: "a" }, { run: "b", alert: "other" }]);
  assert.equal(headline(two, english).sentence, "2 runs are at risk, a first: It is so");
  assert.equal(headline(two, chinese).sentence, "2 个任务有风险，首先是 a：It is so");
  const named = firing([{ run: "a_1", summary: "Rollout took 1 min (run a_1)" }]);
  assert.equal(headline(named, english).sentence, "Rollout took 1 min (run a_1)");
});

test("an alert that names a GPU alone puts the run on it at risk", () => {
  assert.match(headline(firing([{ node: "gpu-07", gpu: "3" }]), english).sentence, /^qwen7b_grpo is at risk: /);
  assert.equal(headline(firing([{ node: "gpu-99" }]), english).sentence, "It is so");
});

test("of what is equally grave what runs out first is told, but what has happened before that", () => {
  const eta = (/** @type {number} */ seconds) => ({ facts: { eta_seconds: seconds }, node: "gpu-07", gpu: "3" });
  const store = firing([{ run: "a" }, { run: "b", alert: "x", ...eta(900) }, { run: "c", alert: "y", ...eta(60) }, { run: "d", alert: "oom" }]);
  assert.equal(worstAlert(store)?.labels.run, "c");
  store.rules = [...store.rules, { ...store.rules[0], alert: "oom", when: [{ kind: "event" }] }];
  assert.equal(worstAlert(store)?.labels.run, "d");
});

test("cause and remedy are the likeliest, else what the rule advises first", () => {
  const { alert } = JSON.parse(goldenText("alert"));
  const cause = { cause: "leak", score: 0.9, evidence: [], texts: { en: "A leak" } };
  const remedy = { remedy: "r", cause: "leak", override: "a.b=1", texts: { en: "Lower it: 2 -> 1." }, price: {}, source: null };
  assert.deepEqual(whyOf(english, { ...alert, causes: [cause], remedies: [remedy] }), {
    cause: "A leak",
    change: "Lower it: 2 → 1.",
    override: "a.b=1",
  });
  const restart = { ...remedy, limits_damage: true };
  assert.equal(whyOf(english, { ...alert, causes: [cause], remedies: [restart] }).override, null);
  const bare = whyOf(english, { ...alert, causes: [], remedies: [] });
  assert.deepEqual(bare, { cause: "", change: "Lower actor_rollout_ref.rollout.gpu_memory_utilization.", override: null });
});

test("a condition that waits for its hold time is one to watch", () => {
  const said = headline(scene({ state: "pending" }).store, english);
  assert.equal(said.mark, "watch");
  assert.match(said.sentence, /^1 condition is met and waits/);
});

test("a GPU above the rule's limit without an alert is not called well", () => {
  const { store } = scene();
  tick(store, [75_000, 10_000]);
  assert.deepEqual(headline(store, english), {
    mark: "watch",
    sentence: "1 GPU is above 85 % of its memory; no alert is open",
    alert: null,
  });
});

test("a lost GPU and one without data are told before all is called well", () => {
  const { store } = scene();
  tick(store, [10, null], ["ok", "lost"]);
  assert.deepEqual(
    [headline(store, english).mark, headline(store, english).sentence],
    ["lost", "1 GPU was lost by its driver"],
  );
  tick(store, [10, null], ["ok", "no_data"]);
  assert.equal(headline(store, english).sentence, "1 GPU gives no data");
});

test("a node that falls silent is told after three intervals, and five seconds at least", () => {
  const { store, clock } = scene();
  clock.now = AT + 4.9;
  assert.equal(headline(store, english).mark, "ok");
  clock.now = AT + 5.1;
  assert.equal(headline(store, english).sentence, "Node gpu-07 sends no data");
});

test("a lost connection is told with the age of what is shown, whatever that was", () => {
  const { store, clock } = scene({ state: "firing", severity: "critical" });
  store.connectionLost(0);
  clock.now = AT + 12;
  assert.deepEqual(headline(store, english), {
    mark: "stale",
    sentence: "The connection to the server is lost: what is shown is 12 s old",
    alert: null,
  });
});

test("before the first snapshot nothing is claimed", () => {
  const store = new Store(() => AT);
  assert.equal(headline(store, english).sentence, "Connecting to the server");
  store.connectionLost(0);
  assert.equal(headline(store, english).sentence, "The server cannot be reached; trying again");
  store.receive(goldenText("snapshot-empty"));
  assert.equal(headline(store, english).sentence, "No agent has connected yet");
});

test("every mark has a shape of its own, and the alerts a glyph of their own", () => {
  const shapes = Object.values(SHAPES).map((shape) => shape.path);
  assert.equal(new Set(shapes).size, shapes.length);
  const glyphs = [GLYPHS.watch, GLYPHS.warning, GLYPHS.critical, GLYPHS.stale, GLYPHS.lost];
  assert.equal(new Set(glyphs).size, glyphs.length);
  assert.ok(iconUrl("critical").startsWith("data:image/svg+xml,"));
});
