// How full a host is: the page tells what the rules judge (tests/core/test_host_use.py holds them to the same cases).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { HOST_KINDS, heldByKind } from "../../frontend/oomwatch_frontend/js/host-kinds.js";
import { hostUse } from "../../frontend/oomwatch_frontend/js/judge.js";
import { NAMES, kindOfName } from "../../frontend/oomwatch_frontend/js/process-kinds.js";
import { goldenStore } from "./reading.js";

/** @type {{ case: string, facts: Record<string, number>, host: Record<string, number>, limited_by: string | null }[]} */
const cases = JSON.parse(readFileSync(new URL("../core/host_use.json", import.meta.url), "utf8"));

/** The golden node with the memory of a case. @param {(typeof cases)[number]} one */
function viewOf({ facts, host }) {
  const view = goldenStore().store.nodes.get("gpu-07");
  assert.ok(view?.info.facts.host);
  view.info.facts.host.memory_total_bytes = facts.memory_total_bytes;
  view.info.facts.host.memory_limit_bytes = facts.memory_limit_bytes ?? null;
  return { ...view, hostUsedBytes: host.memory_used_bytes ?? null, cgroupUsedBytes: host.cgroup_used_bytes ?? null };
}

for (const one of cases) {
  test(`a host is as full as the rules say: ${one.case}`, () => {
    const use = hostUse(viewOf(one));
    if (one.limited_by === null) return assert.equal(use, null);
    const contained = one.limited_by === "container";
    const used = contained ? one.host.cgroup_used_bytes : one.host.memory_used_bytes;
    const whole = contained ? one.facts.memory_limit_bytes : one.facts.memory_total_bytes;
    assert.deepEqual(use, { used, whole, ratio: used / whole, contained });
  });
}

test("a host that told nothing of itself has no use", () => {
  const view = goldenStore().store.nodes.get("gpu-07");
  assert.ok(view);
  const bare = { ...view, info: { ...view.info, facts: { ...view.info.facts, host: null } } };
  assert.equal(hostUse(bare), null);
});

/** @type {[string, string][]} */
const names = JSON.parse(readFileSync(new URL("../core/process_kinds.json", import.meta.url), "utf8"));

test("every word that tells a kind has a case that rests on it alone", () => {
  for (const [kind, { source, flags }] of Object.entries(NAMES)) {
    const words = source.split("|").map((word) => new RegExp(word, flags));
    const found = names.filter(([, of]) => of === kind).map(([name]) => words.filter((word) => word.test(name)));
    for (const word of words) assert.ok(found.some((told) => told.length === 1 && told[0] === word), word.source);
  }
});

test("a process is of the kind that the rules know it as", () => {
  for (const [name, kind] of names) assert.equal(kindOfName(name), kind, name);
  assert.deepEqual(Object.keys(HOST_KINDS).sort(), [...new Set(names.map(([, kind]) => kind))].sort());
});

test("processes of one kind are added up", () => {
  const process = (/** @type {string} */ name, /** @type {number} */ rss_bytes) => ({ pid: 1, name, rss_bytes, run: null });
  const held = heldByKind([process("ray::WorkerDict", 3), process("ray::WorkerDict", 4), process("raylet", 2)]);
  assert.deepEqual(held, { worker: 7, engine: 0, driver: 0, object_store: 2, other: 0 });
});
