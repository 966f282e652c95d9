// Stretches of time that have a name, in a chart: a lane below its rows, and a tint behind the first of them.

import { escapeMarkup, fade, plotTime } from "./ink.js";
import { colour } from "./theme.js";

/**
 * @typedef {object} Band
 * @property {number} from Unix seconds
 * @property {number} to
 * @property {string} label
 * @property {string} about what hovering says
 * @property {string} colour name of a colour of the style sheet
 * @property {string} pattern as plotly names it; "" is none
 */

export const LANE_PX = 18;
export const LANE_GAP_PX = 6;
export const LANE_AXIS = 90; // the number of its axis: behind those of all rows

const LANE = { type: "scatter", xaxis: "x", yaxis: `y${LANE_AXIS}` };

/**
 * The lane and the tint, a trace for each look and each colour; and an unseen line that says on hovering which band is there.
 * @param {Band[]} bands @param {number[]} x where there are readings, and so where one can point @param {number} top of the first row
 */
export function bandTraces(bands, x, top) {
  const looks = alike(bands, (band) => `${band.colour} ${band.pattern}`);
  const colours = alike(bands, (band) => band.colour);
  return [...looks.map(lane), ...colours.map((same) => tint(same, top)), pointsOf(bands, x)];
}

/** @param {Band[]} bands @param {(band: Band) => string} look @returns {Band[][]} those of one look together */
function alike(bands, look) {
  /** @type {Map<string, Band[]>} */
  const found = new Map();
  for (const band of bands) {
    const same = found.get(look(band));
    if (same === undefined) found.set(look(band), [band]);
    else same.push(band);
  }
  return [...found.values()];
}

/** @param {Band[]} bands @param {number} height */
function shapesOf(bands, height) {
  const x = bands.flatMap(({ from, to }) => [...[from, from, to, to].map(plotTime), null]);
  const y = bands.flatMap(() => [0, height, height, 0, null]);
  return { ...LANE, x, y, mode: "lines", line: { width: 0 }, fill: "toself", hoverinfo: "skip" };
}

/** @param {Band[]} bands of one look */
function lane(bands) {
  const [{ colour: name, pattern }] = bands;
  const ink = colour(name);
  const lines = { shape: pattern, bgcolor: fade(ink, 0.3), fgcolor: ink, fgopacity: 0.8, size: 6, solidity: 0.3 };
  return { ...shapesOf(bands, 1), ...(pattern === "" ? { fillcolor: fade(ink, 0.45) } : { fillpattern: lines }) };
}

/** @param {Band[]} bands of one colour @param {number} top */
const tint = (bands, top) => ({ ...shapesOf(bands, top), yaxis: "y", fillcolor: fade(colour(bands[0].colour), 0.09) });

/** @param {Band[]} bands @param {number[]} x */
function pointsOf(bands, x) {
  const text = x.map((at) => bands.find(({ from, to }) => from <= at && at < to)?.about ?? null);
  return {
    ...LANE,
    x: x.map(plotTime),
    y: text.map((about) => (about === null ? null : 0.5)),
    text,
    mode: "lines", // one path; a mark would be an element for each point
    line: { width: 0 },
    hovertemplate: "%{text}<extra></extra>",
  };
}

/**
 * The names of those bands that are wide enough for theirs.
 * @param {Band[]} bands @param {[number, number]} range Unix seconds @param {number} width of the range in px
 */
export function bandLabels(bands, [from, to], width) {
  const pixels = width / (to - from);
  const wide = bands.filter((band) => (band.to - band.from) * pixels > textPixels(band.label) + 10);
  return wide.map((band) => ({
    x: plotTime((band.from + band.to) / 2),
    y: 0.5,
    yref: `y${LANE_AXIS}`,
    showarrow: false,
    text: escapeMarkup(band.label),
    font: { size: 11, color: colour("text") },
    bgcolor: fade(colour("surface"), 0.8),
    borderpad: 1,
  }));
}

/** About how wide a text of 11 px is: a letter 6 px, a Chinese character 11. @param {string} text */
const textPixels = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 11 : 6), 0);
