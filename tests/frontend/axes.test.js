// The marks of a chart's axes.

import assert from "node:assert/strict";
import test from "node:test";

import { pairOf } from "../../frontend/oomwatch_frontend/js/chart-axes.js";

test("two axes have their marks at the same heights, and all of either is seen", () => {
  for (const [highest, other] of [[109, 1270], [2.3, 2.4], [1, 100], [0.02, 7e6], [600, 1]]) {
    const { dtick, right } = pairOf(highest, other);
    assert.ok(Math.abs(highest / dtick - right.highest / right.dtick) < 1e-9);
    assert.ok(right.highest >= other * (1 - 1e-9) && right.highest < 2.6 * other);
    assert.ok(highest / dtick >= 2 && highest / dtick <= 5 + 1e-9);
  }
});

test("marks are at numbers that people count in", () => {
  assert.deepEqual(pairOf(109, 1270), { dtick: 25, right: { dtick: 500, highest: 2180 } });
});
