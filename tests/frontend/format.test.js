import assert from "node:assert/strict";
import { test } from "node:test";

import {
  GIB,
  age,
  duration,
  gib,
  gibOf,
  memoryOf,
  percent,
  quantity,
  roughAge,
  stepSeconds,
} from "../../frontend/oomwatch_frontend/js/format.js";
import { chinese, english } from "./reading.js";

/** Spaces before units do not break; here they are written as usual. @param {string} text */
const plain = (text) => text.replaceAll("\u00a0", " ");

test("memory is GiB with one decimal", () => {
  assert.equal(plain(gib(english, 84_885_000_000)), "79.1 GiB");
  assert.equal(plain(gibOf(english, 0, 1024 * GIB)), "0.0 / 1,024.0 GiB");
});

test("the sum over a large fleet is TiB", () => {
  assert.equal(plain(memoryOf(english, 5120 * GIB, 10240 * GIB)), "5.0 / 10.0 TiB");
  assert.equal(plain(memoryOf(english, 512 * GIB, 1024 * GIB)), "512.0 / 1,024.0 GiB");
});

for (const [ratio, text] of /** @type {[number, string][]} */ ([
  [0, "0 %"],
  [0.854, "85 %"],
  [0.9899, "99 %"],
  [0.9961, "99.6 %"],
  [0.99999, "99.9 %"],
  [1, "100 %"],
  [1.02, "102 %"],
])) {
  test(`the share ${ratio} reads ${text}`, () => assert.equal(plain(percent(english, ratio)), text));
}

for (const [seconds, text, zh] of /** @type {[number, string, string][]} */ ([
  [0, "0 s", "0 秒"],
  [0.42, "0.4 s", "0.4 秒"],
  [12.4, "12 s", "12 秒"],
  [59.6, "1 min", "1 分钟"],
  [840, "14 min", "14 分钟"],
  [12_000, "3 h 20 min", "3 小时 20 分钟"],
  [7200, "2 h", "2 小时"],
  [187_200, "2 d 4 h", "2 天 4 小时"],
])) {
  test(`${seconds} seconds read ${text}`, () => {
    assert.equal(duration(english, seconds), text);
    assert.equal(duration(chinese, seconds), zh);
  });
}

test("an age has whole seconds and is never negative", () => {
  assert.equal(age(english, 4.9), "4 s");
  assert.equal(age(english, -3), "0 s");
  assert.equal(roughAge(english, 3725), "1 h");
});

test("the time of a step keeps its seconds", () => {
  assert.equal(stepSeconds(english, 165.2), "165 s");
  assert.equal(stepSeconds(english, 1.93), "1.9 s");
  assert.equal(stepSeconds(english, 5400), "1 h 30 min");
});

test("what is not known is a dash, never 0", () => {
  const unknown = [
    gib(english, null),
    percent(english, null),
    duration(english, null),
    stepSeconds(english, null),
    quantity(english, null, "ratio"),
  ];
  assert.deepEqual(new Set(unknown), new Set(["–"]));
});

for (const [value, unit, text] of /** @type {[number, string | null, string][]} */ ([
  [0.97, "ratio", "97 %"],
  [76.8 * GIB, "bytes", "76.8 GiB"],
  [96, "seconds", "1 min"],
  [7.5, "per_minute", "7.5 per minute"],
  [3, "count", "3"],
  [83, "celsius", "83 °C"],
  [2.25, null, "2.3"],
])) {
  test(`an alert's ${value} in ${unit} reads ${text}`, () => assert.equal(plain(quantity(english, value, unit)), text));
}
