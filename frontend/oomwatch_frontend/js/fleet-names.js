// What stands around the cells of the map: names of groups and nodes, the host's bar, the mark of a node's own alert.

import { bandIn, dataIn, levelIn, ratioIn, signIn } from "./fleet-look.js";
import { SHAPES, SIGNS, paintPath } from "./marks.js";

/** @typedef {import("./fleet-layout.js").Layout} Layout */
/** @typedef {import("./fleet-layout.js").Block} Block */
/** @typedef {import("./fleet-palette.js").Palette} Palette */
/** @typedef {{ name: string, note: string, look: number }} NodeLook */

const MARK = 12;

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Palette} palette */
export function paintHeadings(context, layout, palette) {
  context.font = `600 13px ${palette.font}`;
  context.fillStyle = palette.text;
  for (const { title, x, y, width } of layout.headings) context.fillText(shorten(context, title, width), x, y + 12);
}

/** @param {CanvasRenderingContext2D} context @param {Layout} layout @param {Block} block @param {NodeLook} node @param {Palette} palette */
export function paintBlock(context, layout, block, node, palette) {
  if (layout.label === 0) return paintFrame(context, block, node, palette);
  paintName(context, block, node, palette);
  if (layout.host > 0) paintHost(context, block, node, palette);
}

/** @param {CanvasRenderingContext2D} context @param {Block} block @param {NodeLook} node @param {Palette} palette */
function paintName(context, block, { name, note, look }, palette) {
  const [level, isMuted] = [levelIn(look), signIn(look) === "muted"];
  const before = level === "ok" ? 0 : MARK + 4;
  const room = block.width - before;
  context.clearRect(block.x, block.y, block.width, 16);
  context.font = `12px ${palette.font}`;
  const noted = note === "" ? 0 : context.measureText(note).width + 10;
  context.fillStyle = dataIn(look) === "ok" ? palette.text : palette.muted;
  context.fillText(shorten(context, name, noted < room / 2 ? room - noted : room), block.x + before, block.y + 12);
  if (isMuted) paintPath(context, SIGNS.muted, true, block.x, block.y + 1, MARK, palette.muted);
  else if (level !== "ok")
    paintPath(context, SHAPES[level].path, SHAPES[level].stroked, block.x, block.y + 1, MARK, palette.level[level]);
  if (noted === 0 || noted >= room / 2) return;
  context.fillStyle = palette.muted;
  context.fillText(note, block.x + block.width - noted + 10, block.y + 12);
}

/** @param {CanvasRenderingContext2D} context @param {Block} block @param {NodeLook} node @param {Palette} palette */
function paintHost(context, block, { look }, palette) {
  const y = block.y + block.height - 4;
  const ratio = ratioIn(look);
  const level = levelIn(look);
  context.clearRect(block.x, y, block.width, 4);
  context.fillStyle = ratio === null ? palette.stale : palette.empty;
  context.fillRect(block.x, y, block.width, 4);
  if (ratio === null) return;
  context.fillStyle = level === "warning" || level === "critical" ? palette.level[level] : palette.bands[bandIn(look)];
  context.fillRect(block.x, y, Math.round(block.width * Math.min(1, ratio)), 4);
}

/** Without a name to stand before, the mark of a node's own alert is a frame around its cells. @param {CanvasRenderingContext2D} context @param {Block} block @param {NodeLook} node @param {Palette} palette */
function paintFrame(context, { x, y, width, height }, { look }, palette) {
  const level = levelIn(look);
  context.clearRect(x - 1, y - 1, width + 2, height + 2);
  if (level === "ok") return;
  context.lineWidth = 1;
  context.strokeStyle = palette.level[level];
  context.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
}

/** @type {Map<string, string>} */
const shortened = new Map();

/** A name that fits into a width: its end is what tells machines apart, so the middle goes. @param {CanvasRenderingContext2D} context @param {string} name @param {number} width */
function shorten(context, name, width) {
  const key = `${context.font} ${name} ${Math.round(width)}`;
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
