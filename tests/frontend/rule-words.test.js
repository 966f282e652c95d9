// What a rule watches, in words of both languages: no number without its unit.

import assert from "node:assert/strict";
import test from "node:test";

import { watched } from "../../frontend/oomwatch_frontend/js/rule-words.js";
import { chinese, english } from "./reading.js";

/** @param {Record<string, unknown>} condition */
const said = (condition) => watched(english, [condition]).replaceAll("\u00a0", " ");

test("a threshold is told with the unit of its signal", () => {
  const when = { kind: "threshold", metric: "gpu_used_ratio", above: 0.85, below: null, steady_steps: 0, steady: 0 };
  assert.equal(said(when), "device memory in use above 85 %");
  assert.equal(said({ ...when, metric: "agent_silent_seconds", above: 30 }), "time since the agent was last heard: more than 30 s");
  assert.equal(said({ ...when, metric: "gpu_used_bytes", above: 70 * 2 ** 30 }), "device memory in use above 70.0 GiB");
  assert.equal(said({ ...when, above: null, below: 0.1 }), "device memory in use below 10 %");
  assert.equal(said({ ...when, metric: "gpu_lost", above: 0 }), "GPUs that the driver has given up: more than 0");
});

test("from when on a height is only for information is part of it", () => {
  const when = { kind: "threshold", metric: "gpu_used_ratio", above: 0.85, steady_steps: 10, steady: 3600 };
  assert.match(said(when), /no higher than 10 steps ago \(or 1 h\)/);
});

test("a share of less than one percent is not rounded to nothing, and bytes are GiB", () => {
  assert.match(said({ kind: "rising", metric: "torch_reserved_ratio", above: 0.9, by: 0.005, window: 1200 }), /above 90 %, and rising by 0\.5 % of the card within 20 min/);
  assert.match(said({ kind: "residue", increase: 0.5, by: 5 * 2 ** 30 }), /up by 50 % and 5\.0 GiB/);
});

test("several conditions are one or the other, in either language", () => {
  const when = [
    { kind: "rate", of: "reshard_cycles", above_per_minute: 6, window: 60 },
    { kind: "event", of: ["device_oom", "host_oom"], within: 600 },
  ];
  assert.equal(watched(english, when), "more than 6 switches from training to rollout per minute (over 1 min); or told within the last 10 min: out of memory on a GPU or out of host memory");
  assert.equal(watched(chinese, when), "训练到 rollout 的切换每分钟超过 6 次（1 分钟内统计）；或最近 10 分钟内报告：GPU 显存不足（OOM）或主机内存不足（OOM）");
});

test("Chinese stands apart from the Latin letters that follow it", () => {
  const when = { kind: "disk_forecast", of: ["spill_disk", "shm"], within_steps: 5, within: 900 };
  assert.equal(watched(chinese, [when]).replaceAll("\u00a0", " "), "Ray 溢写磁盘或 /dev/shm 将在 5 步或 15 分钟内占满");
});

test("a plan that counts at any height says nothing of heights", () => {
  assert.equal(said({ kind: "plan", steps: 2, peak_above: 0 }), "a phase above what was expected of it, 2 steps in a row");
  assert.match(said({ kind: "plan", steps: 2, peak_above: 0.9 }), /above 90 % of the card/);
});

test("one step, one switch and one day read as people say them", () => {
  const plan = { kind: "plan", steps: 1, peak_above: 0 };
  assert.equal(said(plan), "a phase above what was expected of it, in one step");
  assert.equal(watched(chinese, [plan]), "某阶段有 1 步高于预期");
  assert.match(said({ kind: "rate", above_per_minute: 1, window: 60 }), /^more than 1 switch from training/);
  const event = { kind: "event", of: ["gpu_lost"], within: 86_400 };
  assert.equal(said(event), "told within the last 24 h: a GPU lost");
  assert.equal(watched(chinese, [event]), "最近 24 小时内报告：GPU 丢失");
});

test("a kind that the page does not know is called by its name", () => {
  assert.equal(said({ kind: "hologram", size: 3 }), "hologram");
});
