import assert from "node:assert/strict";
import { test } from "node:test";

import { Decimals } from "../../frontend/oomwatch_frontend/js/i18n.js";
import { inOrder } from "../../frontend/oomwatch_frontend/js/naming.js";

test("names stand in the order in which people count, small and capital letters alike", () => {
  const names = ["gpu-10", "gpu-2", "b", "Gpu-1", "10.0.0.12", "10.0.0.3", "gpu", "gpu-2-b", "A7"];
  const wanted = ["10.0.0.3", "10.0.0.12", "A7", "b", "gpu", "Gpu-1", "gpu-2", "gpu-2-b", "gpu-10"];
  assert.deepEqual(inOrder(names), wanted);
  assert.deepEqual(inOrder(names.reverse()), wanted);
});

test("names that differ in nothing but leading zeros or capitals keep one order", () => {
  for (const pair of [["gpu-1", "gpu-01"], ["GPU", "gpu"]]) assert.deepEqual(inOrder(pair), inOrder(pair.reverse()));
});

for (const locale of ["en", "zh-CN"]) {
  test(`numbers are written as the browser writes them in ${locale}`, () => {
    for (const places of [0, 1]) {
      const theirs = new Intl.NumberFormat(locale, { minimumFractionDigits: places, maximumFractionDigits: places });
      const ours = new Decimals(places);
      for (const value of [0, -0, 0.04, 0.05, 0.25, 0.45, 0.5, 1.5, 2.5, -2.5, -0.04, 99.95, 999.95, 1000, 12345.678, -1234567.85, 1e-7, 2 ** 53])
        assert.equal(ours.format(value), theirs.format(value), String(value));
      for (let half = 5; half < 200_000; half += 10) // each is right between two numbers with one decimal, or a little less
        assert.equal(ours.format(half / 100), theirs.format(half / 100), String(half / 100));
    }
  });
}
