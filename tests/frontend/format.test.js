import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
  GIB,
  age,
  beside,
  clockTime,
  duration,
  gib,
  gibOf,
  memoryOf,
  percent,
  quantity,
  roughAge,
  size,
  stepSeconds,
  stretch,
  unbroken,
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

/** @type {{ unit: string | null, value: number, en: string, zh: string }[]} */
const cases = JSON.parse(readFileSync(new URL("../rules/figures.json", import.meta.url), "utf8"));
for (const { unit, value, en, zh } of cases) {
  test(`${value} in ${unit} reads ${en}, as the server writes it`, () => {
    assert.equal(plain(quantity(english, value, unit)), en);
    assert.equal(plain(quantity(chinese, value, unit)), zh);
  });
}

const sizes = JSON.parse(readFileSync(new URL("../rules/sizes.json", import.meta.url), "utf8"));
for (const { value, text } of sizes) {
  test(`${value} bytes of what is stored read ${text}, as the server writes it`, () => {
    assert.equal(plain(size(english, value)), text);
    assert.equal(plain(size(chinese, value)), text);
  });
}

test("beside its unit a number is as exact as where the unit is written", () => {
  const written = [[165.1, "s"], [1.93, "s"], [2, "s"], [76.84, "GiB"], [12.345, "%"], [1543.7, "tokens"], [51.25, "tokens"]];
  const told = written.map(([value, unit]) => beside(english, Number(value), String(unit)));
  assert.deepEqual(told, ["165", "1.9", "2", "76.8", "12.3", "1,544", "51.3"]);
  assert.equal(stepSeconds(english, 165.1), "165 s");
});

test("an age has whole seconds and is never negative", () => {
  assert.equal(age(english, 4.9), "4 s");
  assert.equal(age(english, -3), "0 s");
  assert.equal(age(english, 100), "1 min"); // it grows while it is read
  assert.equal(roughAge(english, 3725), "1 h");
});

test("the time of a step keeps its seconds", () => {
  assert.equal(stepSeconds(english, 165.2), "165 s");
  assert.equal(stepSeconds(english, 1.93), "1.9 s");
  assert.equal(stepSeconds(english, 5400), "1 h 30 min");
});

test("the last day is told in hours", () => {
  const said = [3600, 86399.6, 86400, 100_000, 7 * 86400].map((seconds) => stretch(english, seconds));
  assert.deepEqual(said, ["1 h", "24 h", "24 h", "27 h 46 min", "7 d"]);
  assert.equal(stretch(chinese, 86400), "24 小时");
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

test("a number and its unit stay on one line, in sentences that came as they are", () => {
  const said = unbroken("GPU 3 of gpu-02: 97 % of 79.1 GiB in 14 min (6 steps)");
  assert.equal(said, "GPU 3 of gpu-02: 97\u00a0% of 79.1\u00a0GiB in 14\u00a0min (6 steps)");
  assert.equal(unbroken("用时 1 分钟 36 秒，第 58 步的 rollout"), "用时 1\u00a0分钟 36\u00a0秒，第 58\u00a0步的 rollout");
});

test("a moment is told to the second where that is asked for", () => {
  assert.match(clockTime(english, 1_700_000_000, 1_700_000_000, true), /^\d\d:\d\d:20/);
  assert.match(clockTime(english, 1_700_000_000, 1_700_000_000), /^\d\d:\d\d$/);
});
