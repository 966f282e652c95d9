import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import {
  GIB,
  age,
  beside,
  duration,
  gib,
  gibOf,
  memoryOf,
  percent,
  quantity,
  roughAge,
  size,
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
