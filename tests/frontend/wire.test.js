import assert from "node:assert/strict";
import { test } from "node:test";

import { LIVE_TYPES, WireError, decode } from "../../frontend/oomwatch_frontend/js/wire.js";
import { golden, goldenNames, goldenText } from "./reading.js";

/** What was sent is in what was read: a field that the page does not know is left out, none is changed. @param {any} read @param {any} sent @param {string} place */
function assertCarries(read, sent, place) {
  if (Array.isArray(sent) && !Array.isArray(read)) assertCarries(Object.values(read), sent, place); // its fields in order
  else if (Array.isArray(sent)) {
    assert.equal(read.length, sent.length, place);
    sent.forEach((item, index) => assertCarries(read[index], item, `${place}[${index}]`));
  } else if (typeof sent === "object" && sent !== null) {
    for (const [key, item] of Object.entries(sent)) {
      const tag = key === "kind" || (key === "type" && /(sample|together)$/.test(place)); // what a part is, its place says
      if (!tag) assertCarries(read[key], item, `${place}.${key}`);
    }
  } else assert.equal(read, sent, place);
}

for (const name of goldenNames) {
  test(`the golden message ${name} is read with every field`, () => {
    assertCarries(golden(name), JSON.parse(goldenText(name)), name);
  });
}

test("there is a golden message of every type the page knows", () => {
  const types = new Set(goldenNames.map((name) => JSON.parse(goldenText(name)).type));
  assert.deepEqual([...types].sort(), [...LIVE_TYPES].sort());
});

test("what was left out is empty or null, never 0", () => {
  const snapshot = golden("snapshot-empty");
  assert.deepEqual([snapshot.nodes, snapshot.runs, snapshot.alerts, snapshot.rules], [[], [], [], []]);
  assert.equal(snapshot.server.rules_error, null);
  const tick = /** @type {any} */ (decode('{"type":"tick","at":1,"nodes":[["a",1,[null]]]}'));
  assert.deepEqual(tick.nodes[0].used_mib, [null]);
  assert.equal(tick.nodes[0].host_used_mib, null);
});

test("a field of a later version is ignored", () => {
  assert.deepEqual(decode('{"type":"tick","at":1,"mood":"fine"}'), { type: "tick", at: 1, nodes: [] });
});

test("a type of a later version is told apart from a broken frame", () => {
  assert.equal(decode('{"type":"weather","at":1}'), null);
  assert.equal(decode('{"type":"toString"}'), null);
});

for (const [frame, place] of [
  ["{", /no JSON/],
  ["[]", /an object/],
  ['{"at":1}', /type/],
  ['{"type":"tick","at":"now"}', /tick: at: expected a number, got string/],
  ['{"type":"tick","at":1,"nodes":[["a",1,[1,"2"]]]}', /nodes: \[0\]: used_mib: \[1\]/],
  ['{"type":"tick","at":1,"nodes":[["a",1,[1e999]]]}', /used_mib: \[0\]: expected a number/],
  ['{"type":"tick","at":1,"nodes":[{"node":"a","at":1}]}', /nodes: \[0\]: expected a list, got object/],
  ['{"type":"tick","at":1,"nodes":[["a",1,[],[],["melted"]]]}', /ok or no_data or lost/],
  ['{"type":"node","node":{"node":"a"}}', /node: state/],
]) {
  test(`the frame ${frame} is refused and the error says where`, () => {
    assert.throws(
      () => decode(String(frame)),
      (error) => error instanceof WireError && /** @type {RegExp} */ (place).test(error.message),
    );
  });
}
