// The steps of a run as columns that a chart can draw. Pure.

import { usualTimes } from "./run-baseline.js";

/** @typedef {import("./wire.js").Run} Run */
/** @typedef {import("./wire.js").Step} Step */
/** @typedef {import("./wire.js").StepPoint} StepPoint */
/** @typedef {import("./wire.js").Peaks} Peaks */
/** @typedef {(number | null)[]} Column null where it is not known */

/**
 * @typedef {object} Columns one value a step, oldest first; seconds, bytes and tokens as the trainer told them
 * @property {number[]} step
 * @property {Column} at Unix seconds
 * @property {Map<string, Column>} phases seconds of each, in the order in which they ran
 * @property {Column} seconds of the whole step
 * @property {Column} rollout
 * @property {Column} usual what a rollout usually took in the steps before
 * @property {Column} limit above which the rule speaks of a jump
 * @property {Column} length mean of the responses, tokens
 * @property {Column} reserved bytes
 * @property {Column} allocated
 * @property {Column} reshard seconds
 * @property {Column} share of the step that went into resharding
 * @property {Column} cycles
 * @property {Column} host bytes
 * @property {Map<string, { bytes: Column, gpu: (string | null)[] }>} peaks of each phase, and the GPU "node:gpu" that had it
 */

/**
 * The steps as they count: after a resume a run does some steps again, and those it did before are void.
 * @param {StepPoint[]} points in the order they were read @returns {StepPoint[]} in the order of the steps
 */
export function lastAttempt(points) {
  /** @type {StepPoint[]} */
  const kept = [];
  for (const point of points) {
    while (kept.length > 0 && kept[kept.length - 1].step.step >= point.step.step) kept.pop();
    kept.push(point);
  }
  return kept;
}

/**
 * What was asked for, and what came since.
 * @param {StepPoint[]} stored oldest first @param {StepPoint[]} live oldest first @returns {StepPoint[]}
 */
export function withOlder(stored, live) {
  if (live.length === 0) return stored;
  return [...stored.filter(({ at }) => at < live[0].at), ...live];
}

/**
 * @param {StepPoint[]} told as they were read, validation and void steps too
 * @param {Peaks | null} peaks
 * @param {number | null} increase of the rule that watches the time of rollouts
 * @param {number[]} [onto] steps to lay the columns out on; without them the run's own
 * @returns {Columns}
 */
export function columnsOf(told, peaks, increase, onto) {
  const training = told.filter(({ step }) => !step.validation_only);
  const points = lastAttempt(training);
  const step = onto ?? points.map((point) => point.step.step);
  const byStep = new Map(points.map((point) => [point.step.step, point]));
  const usual = increase === null ? new Map() : usualTimes(training, increase);
  /** @param {(point: StepPoint) => number | null | undefined} of @returns {Column} */
  const column = (of) => {
    return step.map((number) => {
      const point = byStep.get(number);
      return point === undefined ? null : (of(point) ?? null);
    });
  };
  const names = [...new Set(points.flatMap((point) => Object.keys(point.step.phase_seconds)))];
  const cycles = new Map((peaks?.step ?? []).map((number, index) => [number, peaks?.reshard_cycles[index] ?? null]));
  return {
    step,
    at: column((point) => point.at),
    phases: new Map(names.map((name) => [name, column((point) => point.step.phase_seconds[name])])),
    seconds: column((point) => point.step.step_seconds),
    rollout: column((point) => point.step.rollout_seconds),
    usual: column((point) => usual.get(point)?.usual),
    limit: column((point) => usual.get(point)?.limit),
    length: column((point) => point.step.response_length_mean_tokens),
    reserved: column((point) => point.step.torch_reserved_peak_bytes),
    allocated: column((point) => point.step.torch_allocated_peak_bytes),
    reshard: column((point) => point.step.reshard_seconds),
    share: column((point) => shareOf(point.step)),
    cycles: step.map((number) => cycles.get(number) ?? null),
    host: column((point) => point.step.host_used_bytes),
    peaks: peaksOn(step, peaks),
  };
}

/** @param {Step} step */
const shareOf = ({ reshard_seconds: part, step_seconds: whole }) =>
  part === null || whole === null || whole === 0 ? null : Math.min(1, part / whole);

/** @param {number[]} step @param {Peaks | null} peaks */
function peaksOn(step, peaks) {
  /** @type {Columns["peaks"]} */
  const out = new Map();
  if (peaks === null) return out;
  const place = new Map(peaks.step.map((number, index) => [number, index]));
  for (const [phase, { peak_bytes, gpu }] of Object.entries(peaks.phases)) {
    const at = step.map((number) => place.get(number) ?? -1);
    out.set(phase, {
      bytes: at.map((index) => peak_bytes[index] ?? null),
      gpu: at.map((index) => nameOf(peaks.gpus[gpu[index] ?? -1])),
    });
  }
  return out;
}

/** @param {{ node: string, gpu: string } | undefined} source */
const nameOf = (source) => (source === undefined ? null : `${source.node}:${source.gpu}`);

/** The highest of several columns, row by row. @param {Column[]} columns @returns {Column} */
export function highest(columns) {
  const [first = []] = columns;
  return first.map((_, index) =>
    columns.reduce((/** @type {number | null} */ most, column) => {
      const value = column[index];
      return value === null ? most : Math.max(most ?? value, value);
    }, null),
  );
}

/** The steps of two runs, each once, in order. @param {number[]} a @param {number[]} b */
export const union = (a, b) => [...new Set([...a, ...b])].sort((first, second) => first - second);
