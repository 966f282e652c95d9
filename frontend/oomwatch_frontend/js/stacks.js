// Bars that stand on one another, one colour and pattern each: a single path for each of them, however many bars.

import { fade } from "./ink.js";
import { colour } from "./theme.js";

/** @typedef {import("./charts.js").Line} Line */

/** @param {Line} line */
export const isStacked = (line) => line.stack === true;

const FILLED = 0.86; // of the distance between two bars

/**
 * @param {Line[]} lines the lowest first @param {number[]} x ascending @param {string} yaxis
 * @returns {Record<string, any>[]} traces
 */
export function stackTraces(lines, x, yaxis) {
  const half = (FILLED * leastDistance(x)) / 2;
  const below = x.map(() => 0);
  return lines.map((line) => {
    /** @type {{ x: (number | null)[], y: (number | null)[] }} */
    const shape = { x: [], y: [] };
    x.forEach((place, index) => {
      const size = line.y[index];
      if (size === null || size === 0) return;
      const [low, high] = [below[index], below[index] + size];
      below[index] = high;
      shape.x.push(place - half, place - half, place + half, place + half, null);
      shape.y.push(low, high, high, low, null);
    });
    return { ...shape, ...lookOf(line), type: "scatter", xaxis: "x", yaxis, mode: "lines", hoverinfo: "skip" };
  });
}

/** @param {Line} line */
function lookOf(line) {
  const ink = colour(line.colour);
  const pattern = { shape: line.pattern, bgcolor: fade(ink, 0.35), fgcolor: ink, fgopacity: 0.9, size: 6, solidity: 0.3 };
  const plain = { fillcolor: fade(ink, 0.6) };
  return { line: { width: 0 }, fill: "toself", ...(line.pattern ? { fillpattern: pattern } : plain) };
}

/** How high the stack is at each place. @param {Line[]} lines @param {number} length @returns {number[]} */
export const heights = (lines, length) =>
  Array.from({ length }, (_, index) => lines.reduce((sum, line) => sum + (line.y[index] ?? 0), 0));

/** @param {number[]} x */
function leastDistance(x) {
  let least = Infinity;
  for (let index = 1; index < x.length; index += 1) least = Math.min(least, x[index] - x[index - 1]);
  return Number.isFinite(least) ? least : 1;
}
