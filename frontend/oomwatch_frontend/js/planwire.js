// What the server says of a run, its plan and its batches, checked (docs/reference/api.md; the types are in
// backend/oomwatch/web/planrows.py and batchrows.py).

import { line, problem } from "./doctorwire.js";
import { flag, list, maybe, number, oneOf, struct, text } from "./wire.js";

const verdict = oneOf("fits", "tight", "will_not_fit");

const phase = struct({
  phase: text,
  moment: text,
  low_bytes: number,
  expected_bytes: number,
  high_bytes: number,
  verdict,
  trouble: maybe(text),
  part: text,
  part_bytes: number,
  measured_bytes: maybe(number),
  stands: maybe(oneOf("below", "within", "above")),
  at_lengths_bytes: maybe(number),
  error_ratio: maybe(number),
  factor: maybe(number),
  next_bytes: maybe(number),
});
/** @typedef {ReturnType<typeof phase>} PlannedPhase */

const plan = struct({
  why: maybe(text),
  capacity_bytes: maybe(number),
  model: maybe(text),
  parameters: maybe(number),
  verdict: maybe(verdict),
  peak_phase: maybe(text),
  length_tokens: maybe(number),
  assumed: list(text),
  phases: list(phase),
});
/** @typedef {ReturnType<typeof plan>} Plan */

/** An answer of /api/v1/runs/NAME/plan. @type {(value: unknown) => Plan} @throws {import("./wire.js").WireError} */
export const readPlan = plan;

/** An answer of /api/v1/runs/NAME/batches. @throws {import("./wire.js").WireError} */
export const readBatches = struct({
  why: maybe(oneOf("config")),
  release: maybe(text),
  release_told: flag,
  working: list(line),
  problems: list(problem),
});
/** @typedef {ReturnType<typeof readBatches>} BatchesOfRun */
