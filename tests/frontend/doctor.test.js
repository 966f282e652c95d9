// What the doctor is asked, and where its answers point.

import assert from "node:assert/strict";
import { test } from "node:test";

import { scaleOf, sharesOf } from "../../frontend/oomwatch_frontend/js/doctor-bars.js";
import { modelConfigIn, textOf } from "../../frontend/oomwatch_frontend/js/doctor-files.js";
import { isEmpty, questionOf, whereIs, withOverride } from "../../frontend/oomwatch_frontend/js/doctor-question.js";
import { readDoctorMistakes } from "../../frontend/oomwatch_frontend/js/doctorwire.js";

const choices = { gpu: "", gpus: "", nodes: "", model: "", verl: "", host_memory: "" };
const draft = { texts: [{ name: "", text: "a: 1" }], overrides: "", run: "", model_config: null };

test("only what is told is asked", () => {
  assert.deepEqual(questionOf(draft, choices, false, "en"), { text: "a: 1", files: [], all_settings: false, language: "en" });
});

test("texts with names are files, and overrides stand behind them", () => {
  const texts = [{ name: "a.yaml", text: "a: 1" }, { name: "empty.yaml", text: " " }];
  const asked = questionOf({ ...draft, texts, overrides: "a=2", run: "r" }, { ...choices, gpu: " H100 ", gpus: "8" }, true, "zh");
  assert.deepEqual(asked, {
    files: [{ name: "a.yaml", text: "a: 1" }, { name: "overrides", text: "a=2" }],
    ...{ run: "r", gpu: "H100", gpus: 8, all_settings: true, language: "zh" },
  });
});

test("nothing but blanks is nothing to ask about", () => {
  assert.equal(isEmpty({ ...draft, texts: [{ name: "x", text: " \n" }] }), true);
  assert.equal(isEmpty({ ...draft, texts: [], overrides: "a=1" }), false);
});

test("a place is found among the texts", () => {
  const texts = [{ name: "", text: "" }, { name: "dir/a:b.yaml", text: "" }];
  assert.deepEqual(whereIs(texts, "pasted text:3"), { index: 0, line: 3 });
  assert.deepEqual(whereIs(texts, "dir/a:b.yaml:12"), { index: 1, line: 12 });
  for (const place of [null, "command line", "verl 0.9.1", "other:3", "dir/a:b.yaml"]) assert.equal(whereIs(texts, place), null);
});

test("an override that is tried takes the place of one of the same setting", () => {
  assert.equal(withOverride("", "a.b=1"), "a.b=1");
  assert.equal(withOverride("a.b=2\nc=3\n\n", "+a.b=1"), "c=3\n+a.b=1");
});

test("bars share a scale on which the largest has room", () => {
  const rows = [
    { low_bytes: 10, expected_bytes: 20, high_bytes: 30, capacity_bytes: 80 },
    { low_bytes: 90, expected_bytes: 100, high_bytes: 200, capacity_bytes: 80 },
  ];
  const scale = scaleOf(rows);
  assert.ok(scale > 200 && scale < 220);
  assert.deepEqual(sharesOf({ ...rows[0], capacity_bytes: null }, 40), { low: 0.25, expected: 0.5, high: 0.75, capacity: null });
});

test("a model's config.json is told from a configuration in JSON", () => {
  assert.equal(modelConfigIn('{"num_hidden_layers": 4}')?.num_hidden_layers, 4);
  assert.notEqual(modelConfigIn('{"text_config": {"num_attention_heads": 4}}'), null);
  for (const text of ['{"data.train_batch_size": 4}', "data: {a: 1}", "{'actor_rollout_ref': {", "{", "null"]) assert.equal(modelConfigIn(text), null);
});

test("of a large log only what verl printed last is read, wherever it lies", async () => {
  const printed = "(A pid=7) {'actor_rollout_ref': {'x': 1}}\n";
  for (const after of [0, 1, 4 * 2 ** 20 - 10, 9 * 2 ** 20]) {
    const file = new File([printed.replace("1", "0"), `${"é".repeat(3 * 2 ** 20)}\n`, printed, "-".repeat(after)], "a.log");
    const { text } = await textOf(file);
    assert.ok(text.startsWith(printed), String(after));
  }
  await assert.rejects(textOf(new File(["-".repeat(3 * 2 ** 20)], "a.log")), /a\.log/);
});

test("the mistakes of an answer are read, and one that has none gives none", () => {
  assert.deepEqual(readDoctorMistakes({ error: "x", mistakes: [{ message: "m", remedy: "r", line: 3 }] }), [
    { message: "m", remedy: "r", name: null, line: 3, field: null },
  ]);
  assert.deepEqual(readDoctorMistakes({ error: "x" }), []);
  assert.deepEqual(readDoctorMistakes(null), []);
});
