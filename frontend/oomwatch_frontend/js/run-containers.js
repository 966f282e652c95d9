// The memory of the containers that a run's nodes work in, step by step: of each step the fullest one. Pure.

/** @typedef {import("./history.js").Series} Series */
/** @typedef {import("./wire.js").StepPoint} StepPoint */

export const NODES_MOST = 16; // of a larger run those that are fullest now

/**
 * @typedef {object} Containers one value a step; null where nothing was read
 * @property {(number | null)[]} bytes
 * @property {(string | null)[]} node the one that had it
 */

/**
 * @param {StepPoint[]} points as they count, in order @param {number[]} step those to lay it out on
 * @param {Map<string, Series>} curves of each node @returns {Containers}
 */
export function containersOf(points, step, curves) {
  const spans = new Map(points.map((point, index) => [point.step.step, spanOf(point, points[index - 1])]));
  /** @type {Containers} */
  const out = { bytes: [], node: [] };
  for (const number of step) {
    const [most, node] = fullest(curves, spans.get(number));
    out.bytes.push(most);
    out.node.push(node);
  }
  return out;
}

/** A step goes from the end of the one before to its own line. @param {StepPoint} point @param {StepPoint | undefined} before @returns {[number, number]} */
const spanOf = ({ at, step }, before) => [Math.max(before?.at ?? -Infinity, at - (step.step_seconds ?? at)), at];

/** @param {Map<string, Series>} curves @param {[number, number] | undefined} span @returns {[number | null, string | null]} */
function fullest(curves, span) {
  /** @type {[number | null, string | null]} */
  let found = [null, null];
  if (span === undefined) return found;
  for (const [node, { at, max }] of curves) {
    const first = Math.max(0, placeOf(at, span[0]));
    for (let index = first; index < at.length && at[index] <= span[1]; index += 1) {
      const bytes = max[index];
      if (bytes !== null && bytes > (found[0] ?? -1)) found = [bytes, node];
    }
  }
  return found;
}

/** The last of these times that is not after a moment; -1 where all are. @param {number[]} at ascending @param {number} moment */
function placeOf(at, moment) {
  let [low, high] = [0, at.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] <= moment) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
