import assert from "node:assert/strict";
import { test } from "node:test";

import { PHASES, lookOf, mergePhases, phasesBetween } from "../../frontend/oomwatch_frontend/js/phases.js";
import { catalogue } from "./reading.js";

/** @param {number} start @param {number | null} end @param {string} [phase] @returns {import("../../frontend/oomwatch_frontend/js/wire.js").PhaseSpan} */
const span = (start, end, phase = "rollout") => ({ start_at: start, end_at: end, phase, step: 1, known_by: "mark" });

test("no two phases look the same, and each has a name", () => {
  const looks = Object.values(PHASES).map(({ colour, pattern }) => `${colour} ${pattern}`);
  assert.equal(new Set(looks).size, looks.length);
  assert.deepEqual(
    Object.keys(PHASES).filter((phase) => catalogue[`phase.${phase}`] === undefined),
    [],
  );
});

test("a phase of a later server has a look too", () => {
  assert.ok(lookOf("dreaming").colour);
});

test("new spans replace what was told from their beginning on, and cut what reaches into them", () => {
  const told = [span(0, 10), span(10, 20), span(20, null)];
  assert.deepEqual(mergePhases(told, [span(15, 30, "ref")]), [span(0, 10), span(10, 15), span(15, 30, "ref")]);
  assert.deepEqual(mergePhases(told, [span(25, null, "ref")]), [
    span(0, 10),
    span(10, 20),
    span(20, 25),
    span(25, null, "ref"),
  ]);
  assert.equal(mergePhases(told, []), told);
});

test("spans are cut at the ends of the time that is shown, and one that lasts ends there", () => {
  const shown = phasesBetween([span(0, 10), span(10, 20), span(30, null)], 15, 40);
  assert.deepEqual(
    shown.map(({ start_at: start, end_at: end }) => [start, end]),
    [
      [15, 20],
      [30, 40],
    ],
  );
});
