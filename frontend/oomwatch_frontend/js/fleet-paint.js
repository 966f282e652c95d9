// Painting the fleet map. Cells are painted in batches of one colour: 10,000 of them are repainted within a frame.

import { cellAt } from "./fleet-layout.js";
import { SHAPES } from "./marks.js";
import { colour } from "./theme.js";

/** @typedef {import("./fleet-layout.js").Layout} Layout */
/** @typedef {import("./judge.js").Level} Level */
/** @typedef {import("./judge.js").Data} Data */

/** @typedef {{ gpu: string, ratio: number | null, level: Level, data: Data }} Cell */
/** @typedef {(ratio: number | null) => string} Percent a share in words */
/** @typedef {{ name: string, note: string, level: Level, data: Data, hostRatio: number | null, cells: Cell[] }} NodeCells */

/** Used share from which each colour of headroom applies; the first is for all below. */
export const BANDS = [0, 0.7, 0.85, 0.95];

/** @param {number} ratio @returns {number} index into BANDS */
export function bandOf(ratio) {
  let band = BANDS.length - 1;
  while (ratio < BANDS[band]) band -= 1;
  return band;
}

const MARKED_FROM = 24; // px: below it a mark is a blot, and the cell itself takes the mark's shape
const TEXT_FROM = 38;

/** The colours and the pattern, read once for each theme and each pixel ratio. @param {CanvasRenderingContext2D} context @param {number} scale */
export function readPalette(context, scale) {
  return {
    text: colour("text"),
    muted: colour("muted"),
    line: colour("line"),
    surface: colour("surface"),
    empty: colour("cell"),
    accent: colour("accent"),
    lost: colour("lost"),
    stale: hatch(context, scale),
    bands: BANDS.map((_, index) => colour(`band-${index}`)),
    onBands: BANDS.map((_, index) => colour(`on-band-${index}`)),
    /** @type {Record<string, string>} */
    level: { watch: colour("watch"), warning: colour("warning"), critical: colour("critical") },
    /** @type {Record<string, string>} */
    onLevel: { warning: colour("on-warning"), critical: colour("on-critical") },
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

/** @typedef {{ x: number, y: number, cell: Cell }} Placed */
/** @typedef {Map<string | CanvasPattern, [number, number, number, number][]>} Batches */

/**
 * @param {CanvasRenderingContext2D} context in CSS pixels
 * @param {Layout} layout @param {NodeCells[]} nodes in the order of the layout's blocks
 * @param {Palette} palette @param {{ block: number, gpu: number } | null} focus @param {Percent} percent
 */
export function paint(context, layout, nodes, palette, focus, percent) {
  context.clearRect(0, 0, layout.width, layout.height);
  /** @type {Placed[]} */
  const placed = [];
  layout.blocks.forEach((block, index) => {
    nodes[index].cells.forEach((cell, gpu) => placed.push({ ...cellAt(layout, block, gpu), cell }));
  });
  paintFills(context, layout, placed, palette);
  if (layout.cell < MARKED_FROM) paintTriangles(context, layout, placed, palette);
  paintLost(context, layout, placed, palette);
  paintOutlines(context, layout, placed, palette);
  if (layout.cell >= TEXT_FROM) paintTexts(context, layout, placed, palette, percent);
  if (layout.cell >= MARKED_FROM) paintMarks(context, layout, placed, palette);
  if (layout.label > 0) paintNodes(context, layout, nodes, palette);
  else paintUnnamed(context, layout, nodes, palette);
  paintHeadings(context, layout, palette);
  if (focus !== null) paintFocus(context, layout, focus, palette);
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Placed[]} placed @param {Palette} palette */
function paintFills(context, layout, placed, palette) {
  const size = layout.cell;
  const small = size < MARKED_FROM; // no room for marks: a critical cell is full, a warning is a triangle
  /** @type {Batches} */
  const batches = new Map([[palette.empty, []]]);
  for (const { x, y, cell } of placed) {
    batches.get(palette.empty)?.push([x, y, size, size]);
    const paintOf = small && cell.data === "ok" && cell.level === "warning" ? null : fillOf(cell, palette);
    if (paintOf === null) continue;
    const height = cell.data === "ok" && !(small && paintOf === palette.level.critical) ? fillHeight(cell, size) : size;
    const batch = batches.get(paintOf) ?? [];
    batches.set(paintOf, batch);
    batch.push([x, y + size - height, size, height]);
  }
  for (const [paintOf, rectangles] of batches) {
    context.fillStyle = paintOf;
    for (const [x, y, width, height] of rectangles) context.fillRect(x, y, width, height);
  }
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Placed[]} placed @param {Palette} palette */
function paintTriangles(context, layout, placed, palette) {
  const size = layout.cell;
  context.fillStyle = palette.level.warning;
  context.beginPath();
  for (const { x, y, cell } of placed) {
    if (cell.level !== "warning" || cell.data !== "ok") continue;
    context.moveTo(x, y + size);
    context.lineTo(x + size / 2, y);
    context.lineTo(x + size, y + size);
  }
  context.fill();
}

/** @param {Cell} cell @param {number} size */
const fillHeight = (cell, size) => Math.round(Math.min(1, cell.ratio ?? 0) * size);

/** @param {Cell} cell @param {Palette} palette */
function fillOf(cell, palette) {
  if (cell.data === "lost") return null;
  if (cell.data === "stale") return palette.stale;
  if (cell.level === "warning" || cell.level === "critical") return palette.level[cell.level];
  return cell.ratio === null ? null : palette.bands[bandOf(cell.ratio)];
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Placed[]} placed @param {Palette} palette */
function paintLost(context, layout, placed, palette) {
  const inset = Math.max(1, layout.cell * 0.28);
  context.strokeStyle = palette.lost;
  context.lineWidth = Math.max(1, Math.min(3, layout.cell / 10));
  context.beginPath();
  for (const { x, y, cell } of placed) {
    if (cell.data !== "lost") continue;
    const [left, top, right, bottom] = [x + inset, y + inset, x + layout.cell - inset, y + layout.cell - inset];
    context.moveTo(left, top);
    context.lineTo(right, bottom);
    context.moveTo(right, top);
    context.lineTo(left, bottom);
  }
  context.stroke();
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Placed[]} placed @param {Palette} palette */
function paintOutlines(context, layout, placed, palette) {
  const width = layout.cell >= 14 ? 2 : 1;
  for (const level of /** @type {const} */ (["watch", "warning", "critical"])) {
    context.strokeStyle = palette.level[level];
    context.lineWidth = width;
    for (const { x, y, cell } of placed) {
      if (cell.level !== level || (level === "warning" && cell.data === "ok" && layout.cell < MARKED_FROM)) continue;
      context.strokeRect(x + width / 2, y + width / 2, layout.cell - width, layout.cell - width);
    }
  }
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Placed[]} placed @param {Palette} palette @param {Percent} percent */
function paintTexts(context, layout, placed, palette, percent) {
  const size = layout.cell;
  const texts = (/** @type {Placed} */ { x, y, cell }, /** @type {string} */ weak, /** @type {string} */ strong) => {
    context.font = `11px ${palette.font}`;
    context.fillStyle = weak;
    context.fillText(cell.gpu, x + 6, y + 15);
    if (cell.data !== "ok") return;
    context.font = `600 ${size >= 56 ? 15 : 12}px ${palette.font}`;
    context.fillStyle = strong;
    context.fillText(percent(cell.ratio), x + 6, y + size - 7);
  };
  for (const at of placed) {
    texts(at, palette.muted, palette.text);
    if (at.cell.data !== "ok" || at.cell.ratio === null) continue;
    const onFill = palette.onLevel[at.cell.level] ?? palette.onBands[bandOf(at.cell.ratio)];
    const filled = fillHeight(at.cell, size);
    context.save(); // once more, within the fill: each part of a letter is readable on what is behind it
    context.beginPath();
    context.rect(at.x, at.y + size - filled, size, filled);
    context.clip();
    texts(at, onFill, onFill);
    context.restore();
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} mark @param {number} x @param {number} y @param {number} size
 * @param {string} ink
 */
function paintMark(context, mark, x, y, size, ink) {
  const { path, stroked } = SHAPES[/** @type {keyof typeof SHAPES} */ (mark)];
  const shape = new Path2D(path);
  context.save();
  context.translate(x, y);
  context.scale(size / 16, size / 16);
  context.lineWidth = 2.4;
  context.fillStyle = context.strokeStyle = ink;
  if (stroked) context.stroke(shape);
  else context.fill(shape);
  context.restore();
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Placed[]} placed @param {Palette} palette */
function paintMarks(context, layout, placed, palette) {
  const size = Math.min(16, Math.max(8, Math.round(layout.cell * 0.3)));
  const room = size + 6; // a plate below the mark, so that it is seen on any fill
  for (const { x, y, cell } of placed) {
    if (cell.level === "ok") continue;
    const left = x + layout.cell - room - 2;
    context.fillStyle = palette.surface;
    context.fillRect(left, y + 2, room, room);
    paintMark(context, cell.level, left + 3, y + 5, size, palette.level[cell.level]);
  }
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {NodeCells[]} nodes @param {Palette} palette */
function paintNodes(context, layout, nodes, palette) {
  context.textBaseline = "alphabetic";
  layout.blocks.forEach((block, index) => {
    const node = nodes[index];
    const marked = node.level !== "ok";
    const room = block.width - (marked ? 16 : 0);
    context.font = `12px ${palette.font}`;
    const noted = node.note === "" ? 0 : context.measureText(node.note).width + 10;
    const name = shorten(context, node.name, noted < room / 2 ? room - noted : room);
    context.fillStyle = node.data === "ok" ? palette.text : palette.muted;
    context.fillText(name, block.x + (marked ? 16 : 0), block.y + 12);
    if (marked) paintMark(context, node.level, block.x, block.y + 1, 12, palette.level[node.level]);
    if (noted > 0 && noted < room / 2) {
      context.fillStyle = palette.muted;
      context.fillText(node.note, block.x + block.width - noted + 10, block.y + 12);
    }
    if (layout.host > 0) paintHost(context, block, node, palette);
  });
}

/** Without a name to stand before, the mark of a node's own alert is a frame around its cells. @param {CanvasRenderingContext2D} context @param {Layout} layout @param {NodeCells[]} nodes @param {Palette} palette */
function paintUnnamed(context, layout, nodes, palette) {
  context.lineWidth = 1;
  layout.blocks.forEach(({ x, y, width, height }, index) => {
    const { level } = nodes[index];
    if (level === "ok") return;
    context.strokeStyle = palette.level[level];
    context.strokeRect(x - 1.5, y - 1.5, width + 3, height + 3);
  });
}

/** @param {CanvasRenderingContext2D} context @param {import("./fleet-layout.js").Block} block @param {NodeCells} node @param {Palette} palette */
function paintHost(context, block, node, palette) {
  const y = block.y + block.height - 4;
  context.fillStyle = node.data === "ok" ? palette.empty : palette.stale;
  context.fillRect(block.x, y, block.width, 4);
  if (node.hostRatio === null || node.data !== "ok") return;
  const serious = node.level === "warning" || node.level === "critical";
  context.fillStyle = serious ? palette.level[node.level] : palette.bands[bandOf(node.hostRatio)];
  context.fillRect(block.x, y, Math.round(block.width * Math.min(1, node.hostRatio)), 4);
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Palette} palette */
function paintHeadings(context, layout, palette) {
  context.font = `600 13px ${palette.font}`;
  context.fillStyle = palette.text;
  for (const { title, x, y } of layout.headings) context.fillText(title, x, y + 12);
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {{ block: number, gpu: number }} focus @param {Palette} palette */
function paintFocus(context, layout, focus, palette) {
  const { x, y } = cellAt(layout, layout.blocks[focus.block], focus.gpu);
  context.strokeStyle = palette.surface;
  context.lineWidth = 4;
  context.strokeRect(x - 1, y - 1, layout.cell + 2, layout.cell + 2);
  context.strokeStyle = palette.accent;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, layout.cell + 2, layout.cell + 2);
}

/** @type {Map<string, string>} */
const shortened = new Map();

/** A name that fits into a width: its end is what tells machines apart, so the middle goes. @param {CanvasRenderingContext2D} context @param {string} name @param {number} width */
function shorten(context, name, width) {
  const key = `${name} ${Math.round(width)}`;
  const known = shortened.get(key);
  if (known !== undefined) return known;
  let text = name;
  for (let keep = name.length - 1; keep > 1 && context.measureText(text).width > width; keep -= 1) {
    const tail = Math.ceil(keep * 0.6);
    text = `${name.slice(0, keep - tail)}…${name.slice(name.length - tail)}`;
  }
  if (shortened.size > 20_000) shortened.clear();
  shortened.set(key, text);
  return text;
}
