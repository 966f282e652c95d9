// Where a rule fires, and what an open alert has to do with what its condition says now.

import assert from "node:assert/strict";
import test from "node:test";

import { firesOn } from "../../frontend/oomwatch_frontend/js/rulewatch.js";

/** @param {Record<string, string>} labels @param {string} state */
const alert = (labels, state = "firing") => /** @type {import("../../frontend/oomwatch_frontend/js/wire.js").Alert} */ (/** @type {unknown} */ ({ labels, state }));

test("an alert fires on its own card, whatever run is on it now", () => {
  const open = [alert({ node: "n", gpu: "4", run: "a" })];
  assert.equal(firesOn(open, { node: "n", gpu: "4", run: "b" }), true);
  assert.equal(firesOn(open, { node: "n", gpu: "5", run: "a" }), false);
  assert.equal(firesOn(open, { node: "n", run: "a" }), false);
});

test("an alert of a run is not one of a node of the same name", () => {
  assert.equal(firesOn([alert({ run: "a" })], { run: "a" }), true);
  assert.equal(firesOn([alert({ run: "a" })], { node: "a" }), false);
});

test("what is pending does not fire", () => {
  assert.equal(firesOn([alert({ run: "a" }, "pending")], { run: "a" }), false);
});
