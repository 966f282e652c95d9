import assert from "node:assert/strict";
import { test } from "node:test";

import { KEYS, KEYS_WITHIN } from "../../frontend/oomwatch_frontend/js/keys.js";
import { indexAlerts } from "../../frontend/oomwatch_frontend/js/judge.js";
import { readLook, writeLook } from "../../frontend/oomwatch_frontend/js/run-look.js";
import { nextOut, timeLeft } from "../../frontend/oomwatch_frontend/js/views/next-out.js";
import { catalogue, english, golden, goldenStore } from "./reading.js";

test("which steps are in view survives the way through the address", () => {
  for (const look of [
    { zoom: null, window: null, isTable: false },
    { zoom: null, window: 50, isTable: true },
    { zoom: /** @type {[number, number]} */ ([11.5, 34.5]), window: null, isTable: false },
  ]) {
    assert.deepEqual(readLook(writeLook(look)), look);
  }
});

test("what was dragged across is told in whole steps, and an address that makes no sense shows all", () => {
  assert.equal(writeLook({ zoom: [11.7, 34.2], window: null, isTable: false }).steps, "12-34");
  assert.equal(writeLook({ zoom: [-3.2, 0.4], window: null, isTable: false }).steps, "0-0");
  for (const steps of ["", "0", "-5", "9-3", "x", "1-2-3"]) {
    assert.deepEqual(readLook({ steps }), { zoom: null, window: null, isTable: false }, steps);
  }
});

test("every key that the help lists is explained in both languages", () => {
  const named = [...KEYS, ...KEYS_WITHIN.flatMap(({ keys }) => keys)].map(({ does }) => `keys.${does}`);
  const places = KEYS_WITHIN.map(({ place }) => `keys.in_${place}`);
  for (const key of [...named, ...places]) assert.ok(catalogue[key]?.en && catalogue[key]?.zh, key);
});

test("what has an alert stands before what is merely fuller, and what has come due is called so", () => {
  const { store } = goldenStore();
  const { alert } = golden("alert");
  const usual = nextOut(store, { things: new Map(), soonest: [] }).map(({ key }) => key);
  const last = usual[usual.length - 1];
  const [node, gpu] = last.split("/");
  const labels = gpu === undefined ? { node } : { node, gpu };
  const index = indexAlerts([{ ...alert, state: "firing", severity: "critical", labels }]);
  const first = nextOut(store, { things: new Map(), soonest: [] }, 10, index).map(({ key }) => key);
  assert.deepEqual(first, [last, ...usual.slice(0, -1)]);
  assert.equal(timeLeft(english, { key: "k", thing: "gpu", seconds: 0, steps: 0, alert }), "now");
});
