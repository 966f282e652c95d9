// The colours and the pattern of the map, read once for each theme and each pixel ratio.

import { BANDS } from "./fleet-look.js";
import { colour } from "./theme.js";

/** @param {CanvasRenderingContext2D} context @param {number} scale device pixels a CSS pixel */
export function readPalette(context, scale) {
  return {
    text: colour("text"),
    muted: colour("muted"),
    surface: colour("surface"),
    empty: colour("cell"),
    lost: colour("lost"),
    stale: hatch(context, scale),
    bands: BANDS.map((_, index) => colour(`band-${index}`)),
    onBands: BANDS.map((_, index) => colour(`on-band-${index}`)),
    level: { ok: colour("muted"), watch: colour("watch"), warning: colour("warning"), critical: colour("critical") },
    font: colour("font") || "sans-serif",
  };
}
/** @typedef {ReturnType<typeof readPalette>} Palette */

/** @param {CanvasRenderingContext2D} context @param {number} scale */
function hatch(context, scale) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6 * scale;
  const ink = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  ink.scale(scale, scale);
  ink.strokeStyle = colour("stale");
  ink.lineWidth = 1.2;
  ink.beginPath();
  for (const shift of [-6, 0, 6]) {
    ink.moveTo(shift, 6);
    ink.lineTo(shift + 6, 0);
  }
  ink.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern ?? colour("stale");
}
