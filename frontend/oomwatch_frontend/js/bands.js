// Stretches of time that have a name, in a chart: a lane below its rows, and a tint behind the first of them.

import { escapeMarkup, fade, localStamp } from "./ink.js";
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
 * The lane and the tint, a trace for each look; and unseen points that say on hovering which band is there.
 * @param {Band[]} bands @param {number[]} x where there are readings, and so where one can point @param {number} top of the first row
 */
export function bandTraces(bands, x, top) {
  /** @type {Map<string, Band[]>} */
  const looks = new Map();
  for (const band of bands) {
    const look = `${band.colour} ${band.pattern}`;
    looks.set(look, [...(looks.get(look) ?? []), band]);
  }
  return [...[...looks.values()].flatMap((alike) => fills(alike, top)), pointsOf(bands, x)];
}

/** @param {Band[]} alike of one look @param {number} top */
function fills(alike, top) {
  const [{ colour: name, pattern }] = alike;
  const ink = colour(name);
  const x = alike.flatMap(({ from, to }) => [...[from, from, to, to].map(localStamp), null]);
  const heights = (/** @type {number} */ height) => alike.flatMap(() => [0, height, height, 0, null]);
  const fill = { ...LANE, x, mode: "lines", line: { width: 0 }, fill: "toself", hoverinfo: "skip" };
  const lines = { shape: pattern, bgcolor: fade(ink, 0.3), fgcolor: ink, fgopacity: 0.8, size: 6, solidity: 0.3 };
  const look = pattern === "" ? { fillcolor: fade(ink, 0.45) } : { fillpattern: lines };
  return [
    { ...fill, ...look, y: heights(1) },
    { ...fill, yaxis: "y", y: heights(top), fillcolor: fade(ink, 0.09) },
  ];
}

/** @param {Band[]} bands @param {number[]} x */
function pointsOf(bands, x) {
  const text = x.map((at) => bands.find(({ from, to }) => from <= at && at < to)?.about ?? null);
  return {
    ...LANE,
    x: x.map(localStamp),
    y: text.map((about) => (about === null ? null : 0.5)),
    text,
    mode: "markers",
    marker: { size: 1, opacity: 0 },
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
    x: localStamp((band.from + band.to) / 2),
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
