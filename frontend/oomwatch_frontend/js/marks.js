// The marks of each state: a shape beside every colour, so that colour never says anything alone.

import { svg } from "./dom.js";

/** @typedef {import("./headline.js").Mark} Mark */

/** Paths in a box of 16. Filled unless `stroked`. @type {Record<Mark, { path: string, stroked: boolean }>} */
export const SHAPES = {
  ok: { path: "M3.5 8.5 6.5 11.5 12.5 4.5", stroked: true },
  watch: { path: "M8 3a5 5 0 1 0 0 10A5 5 0 1 0 8 3Z", stroked: true },
  warning: { path: "M8 1.8 15 14.2H1Z", stroked: false },
  critical: { path: "M5.2 1.2h5.6l4 4v5.6l-4 4H5.2l-4-4V5.2Z", stroked: false },
  stale: { path: "M2 9 9 2M2 14 14 2M7 14 14 7", stroked: true },
  lost: { path: "M3.5 3.5l9 9M12.5 3.5l-9 9", stroked: true },
};

/** As plain text, for the tab's title. @type {Record<Mark, string>} */
export const GLYPHS = { ok: "", watch: "○ ", warning: "▲ ", critical: "⬣ ", stale: "◌ ", lost: "✕ " };

/** What people did about an alert: somebody takes care, and a bell that is struck out. */
export const SIGNS = {
  acknowledged: "M8 2.2a2.6 2.6 0 1 0 .01 0ZM2.8 14c.4-3 2.5-4.6 5.2-4.6s4.8 1.6 5.2 4.6",
  muted: "M4.2 11V7.2a3.8 3.8 0 0 1 6.3-2.9M11.8 7.8V11M3 11.2h7.6M6.8 13.8h2.4M2.4 2.4l11.2 11.2",
};

/** @param {keyof typeof SIGNS} sign @param {string} [label] without one it is decoration @returns {SVGElement} */
export function signIcon(sign, label) {
  /** @type {import("./dom.js").Attributes} */
  const named = label === undefined ? { "aria-hidden": "true" } : { role: "img", "aria-label": label };
  const path = svg("path", { d: SIGNS[sign], class: "stroked" });
  return svg("svg", { viewBox: "0 0 16 16", class: "mark sign", ...named }, path);
}

/**
 * A mark as an element. With a label it is an image to a screen reader, without one it is decoration.
 * @param {Mark} mark @param {string} [label] @returns {SVGElement}
 */
export function markIcon(mark, label) {
  const { path, stroked } = SHAPES[mark];
  /** @type {import("./dom.js").Attributes} */
  const named = label === undefined ? { "aria-hidden": "true" } : { role: "img", "aria-label": label };
  return svg(
    "svg",
    { viewBox: "0 0 16 16", class: `mark mark-${mark}`, ...named },
    svg("path", { d: path, class: stroked ? "stroked" : "filled" }),
  );
}

/** The colours of the tab's icon, readable on light and dark tabs alike. @type {Record<Mark, string>} */
const ICON_COLOURS = {
  ok: "#5b6b7d",
  watch: "#2f86d6",
  warning: "#e09a1a",
  critical: "#d8430f",
  stale: "#8b95a1",
  lost: "#3a424c",
};

/** The tab's icon as a data URL: the shape, on a light disc where it would not be seen on a dark tab. @param {Mark} mark */
export function iconUrl(mark) {
  const { path, stroked } = SHAPES[mark];
  const colour = ICON_COLOURS[mark];
  const paint = stroked
    ? `fill="none" stroke="${colour}" stroke-width="2.4" stroke-linecap="round"`
    : `fill="${colour}"`;
  const disc = stroked ? `<rect width="16" height="16" rx="4" fill="#fff"/>` : "";
  const image = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">${disc}<path d="${path}" ${paint}/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(image)}`;
}

/**
 * A mark or a sign on a canvas.
 * @param {CanvasRenderingContext2D} context @param {string} path in a box of 16 @param {boolean} stroked
 * @param {number} x @param {number} y @param {number} size @param {string} ink
 */
export function paintPath(context, path, stroked, x, y, size, ink) {
  const shape = new Path2D(path);
  context.save();
  context.translate(x, y);
  context.scale(size / 16, size / 16);
  context.lineWidth = 2.2;
  context.fillStyle = context.strokeStyle = ink;
  if (stroked) context.stroke(shape);
  else context.fill(shape);
  context.restore();
}
