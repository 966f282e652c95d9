import assert from "node:assert/strict";
import { test } from "node:test";

import { matchersOf } from "../../frontend/oomwatch_frontend/js/acknowledging.js";
import { ApiError, each } from "../../frontend/oomwatch_frontend/js/api.js";
import { clockTime } from "../../frontend/oomwatch_frontend/js/format.js";
import { endOf, heldBy, matcherText, offersFor } from "../../frontend/oomwatch_frontend/js/silencing.js";
import { readDeliveries, readPreview } from "../../frontend/oomwatch_frontend/js/wire.js";
import { AT, english, golden, goldenStore, goldenText } from "./reading.js";

const alert = golden("alert-muted-and-acknowledged").alert;

test("a silence begins with what its alerts have in common, and the severity is left for whoever wants it", () => {
  const other = { ...alert, labels: { ...alert.labels, gpu: "4" } };
  assert.deepEqual(
    offersFor([alert, other]).map(({ used, matcher }) => [used, matcherText(matcher)]),
    [
      [true, 'alert="gpu_memory_high"'],
      [false, 'severity="warning"'],
      [true, 'node="gpu-07"'],
      [true, 'run="qwen7b_grpo"'],
    ],
  );
  assert.deepEqual(offersFor([]), []);
});

test("a label that only some of the alerts have is not offered", () => {
  const bare = { ...alert, labels: { node: "gpu-07" } };
  const labels = offersFor([alert, bare]).map(({ matcher }) => matcher.label);
  assert.deepEqual(labels, ["alert", "severity", "node"]);
});

test("matchers are written as the server reads them, quotes and all", () => {
  assert.equal(matcherText({ label: "run", op: "=~", value: 'a"b\\d\n' }), 'run=~"a\\"b\\\\d\\n"');
});

test("a silence ends after its span, on the next morning, or when its maker says", () => {
  assert.equal(endOf("30m", AT, null), AT + 1800);
  assert.equal(endOf("8h", AT, null), AT + 8 * 3600);
  assert.equal(endOf("own", AT, AT + 5), AT + 5);
  assert.equal(endOf("own", AT, null), null);
  const morning = new Date((endOf("tomorrow", AT, null) ?? 0) * 1000);
  assert.deepEqual([morning.getHours(), morning.getMinutes()], [9, 0]);
  assert.equal(morning.getDate(), new Date(AT * 1000 + 86_400_000).getDate());
});

test("a silence holds the open alerts that name it", () => {
  const open = { ...alert, state: /** @type {const} */ ("firing"), ended_at: null };
  assert.deepEqual(heldBy([open], "s-4f1c2a9e07b3"), [open]);
  assert.deepEqual(heldBy([open], "9f3c0a1b2c3d"), []); // a graver alert is no silence
  assert.deepEqual(heldBy([{ ...open, state: "resolved" }], "s-4f1c2a9e07b3"), []);
});

test("silences and channels are replaced as they come", () => {
  const { store } = goldenStore();
  /** @type {string[]} */
  const topics = [];
  store.subscribe((changed) => topics.push(...changed));
  store.receive(goldenText("silences"));
  store.receive(goldenText("channels"));
  assert.deepEqual(topics, ["silences", "channels"]);
  assert.deepEqual([store.silences.length, store.channels[0].health], [1, "failing"]);
});

test("what is refused is told apart from what was done, and the rest goes on", async () => {
  const { done, errors } = await each([1, 2, 3, 4, 5, 6, 7, 8, 9], async (number) => {
    if (number % 4 === 0) throw new ApiError(409, `${number} fires no more`);
  });
  assert.deepEqual(done.sort(), [1, 2, 3, 5, 6, 7, 9]);
  assert.deepEqual(
    errors.map((error) => [error.status, error.message]),
    [
      [409, "4 fires no more"],
      [409, "8 fires no more"],
    ],
  );
});

test("alerts are named by their labels where those name exactly them", () => {
  const on = (/** @type {string} */ gpu, /** @type {object} */ changes = {}) => ({
    ...alert,
    id: gpu,
    state: /** @type {const} */ ("firing"),
    labels: { node: "a", gpu, run: "r" },
    ...changes,
  });
  const both = [on("0"), on("1")];
  const texts = matchersOf([...both, on("2", { state: "resolved" })], both)?.map(matcherText);
  assert.deepEqual(texts, ['alert="gpu_memory_high"', 'severity="warning"', 'node="a"', 'run="r"']);
  assert.equal(matchersOf([...both, on("2")], both), null); // a third would be meant too
});

test("answers of the API are checked before anything is drawn", () => {
  const delivery = { id: "d", channel: "team", kind: "firing", state: "waiting", made_at: AT };
  assert.equal(readDeliveries({ alert: {}, deliveries: [delivery] })[0].attempts, 0);
  assert.deepEqual(readDeliveries({ alert: {} }), []); // a server that does not tell
  assert.throws(() => readPreview({ alerts: [] }), /last_24h/);
});

test("a moment is told by the clock, and by its day where that is another", () => {
  const noon = new Date(2026, 10, 29, 12, 5).getTime() / 1000;
  assert.equal(clockTime(english, noon, noon - 60), "12:05");
  assert.match(clockTime(english, noon, noon - 86_400), /Nov 29.*12:05/);
});
