import assert from "node:assert/strict";
import { test } from "node:test";

import { headline } from "../../frontend/oomwatch_frontend/js/headline.js";
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
  store.receive(JSON.stringify({ type: "tick", at: AT, nodes: [{ node: "gpu-07", at: AT, used_mib: used, status }] }));
}

test("a fleet in which all is well says so, with its size", () => {
  assert.deepEqual(headline(scene().store, english), { mark: "ok", sentence: "All 2 GPUs have headroom", alert: null });
  assert.equal(headline(scene().store, chinese).sentence, "全部 2 块 GPU 显存余量充足");
});

test("one open alert is told by its own sentence", () => {
  const { store } = scene({ state: "firing", severity: "critical" });
  const said = headline(store, english);
  assert.equal(said.mark, "critical");
  assert.equal(said.sentence, "GPU 3 of gpu-07: 93 % of its memory is in use");
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
  assert.match(said.sentence, /^2 alerts; the worst: GPU 3/);
});

test("what a rule says twice, as a warning and as critical, is one alert", () => {
  const { store } = scene({ id: "w", state: "firing", severity: "warning" });
  const critical = JSON.parse(goldenText("alert"));
  store.receive(
    JSON.stringify({ ...critical, alert: { ...critical.alert, id: "c", state: "firing", severity: "critical" } }),
  );
  const said = headline(store, english);
  assert.deepEqual([said.mark, said.alert], ["critical", "c"]);
  assert.match(said.sentence, /^GPU 3 of gpu-07: 93 %/);
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
