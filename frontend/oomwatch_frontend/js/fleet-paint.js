// Paints the map. Only what looks different from the last time is painted again, so a tick of ten thousand GPUs costs
// what has changed in it.

import { cellAt } from "./fleet-layout.js";
import { bandIn, dataIn, heightIn, isForeseenIn, levelIn, ratioIn, signIn, withoutText } from "./fleet-look.js";
import { paintBlock, paintHeadings } from "./fleet-names.js";
import { SHAPES, SIGNS, paintPath } from "./marks.js";

/** @typedef {import("./fleet-layout.js").Layout} Layout */
/** @typedef {import("./fleet-palette.js").Palette} Palette */
/** @typedef {import("./fleet-scene.js").Scene} Scene */

/**
 * @typedef {object} Sayings what the map writes
 * @property {(ratio: number | null) => string} percent
 * @property {(index: number) => string} soon until a GPU is full, by its index in the scene
 * @property {(block: number) => string} note beside a node's name
 */

const MARKED_FROM = 24; // px: below it a mark is a blot, and the cell itself takes the mark's shape
const TEXT_FROM = 38;
const NARROW_BELOW = 44; // px: as cells are on a phone
const SOON_FROM = 46;
const SIGNED_FROM = 56;
const LARGE_FROM = 80;

/** Of a cell's share: large where the cell is, for it is read from further away. @param {number} size px of the cell @returns {number} px */
const shareSize = (size) => (size >= LARGE_FROM ? Math.min(28, Math.round(size / 5)) : size >= SIGNED_FROM ? 15 : size >= NARROW_BELOW ? 12 : 11);

/** Of the time until a cell is full, above the cell's foot: its share stands below it. @param {number} size px */
const soonAbove = (size) => (size >= SIGNED_FROM ? 9 + shareSize(size) : 20);

export class Painter {
  /** @param {CanvasRenderingContext2D} context in CSS pixels @param {Layout} layout @param {Palette} palette @param {Sayings} sayings */
  constructor(context, layout, palette, sayings) {
    this.context = context;
    this.layout = layout;
    this.palette = palette;
    this.sayings = sayings;
    const gpus = layout.blocks.reduce((sum, block) => sum + block.gpus, 0);
    this.xs = new Int16Array(gpus);
    this.ys = new Int32Array(gpus);
    this.painted = new Int32Array(gpus).fill(-1);
    /** @type {string[]} */
    this.named = layout.blocks.map(() => "");
    this.#place();
    context.clearRect(0, 0, layout.width, layout.height);
    context.textBaseline = "alphabetic";
    paintHeadings(context, layout, palette);
  }

  #place() {
    let next = 0;
    for (const block of this.layout.blocks) {
      for (let gpu = 0; gpu < block.gpus; gpu += 1, next += 1) {
        const { x, y } = cellAt(this.layout, block, gpu);
        this.xs[next] = x;
        this.ys[next] = y;
      }
    }
  }

  /** What is written in cells may be different, though their looks are not. */
  forget() {
    this.painted.fill(-1);
    this.named.fill("");
  }

  /** @param {Scene} scene arranged as the layout */
  paint(scene) {
    this.#paintBlocks(scene);
    const changed = this.#changed(scene);
    if (changed.length === 0) return;
    this.#paintFills(scene, changed);
    for (const index of changed) this.#paintRest(scene, index);
  }

  /** @param {Scene} scene */
  #paintBlocks(scene) {
    this.layout.blocks.forEach((block, index) => {
      const node = scene.nodes[index];
      const named = this.layout.label > 0;
      const note = named ? this.sayings.note(index) : "";
      const state = named ? `${node.look} ${note}` : `${levelIn(node.look)}`;
      if (state === this.named[index]) return;
      this.named[index] = state;
      paintBlock(this.context, this.layout, block, { name: node.view.info.node, note, look: node.look }, this.palette);
      if (!named) this.painted.fill(-1, node.first, node.first + block.gpus); // the frame was wiped out with the cells
    });
  }

  /** @param {Scene} scene @returns {number[]} indexes */
  #changed({ looks }) {
    const texts = this.layout.cell >= TEXT_FROM;
    const changed = [];
    for (let index = 0; index < looks.length; index += 1) {
      const look = texts ? looks[index] : withoutText(looks[index]);
      if (look === this.painted[index]) continue;
      this.painted[index] = look;
      changed.push(index);
    }
    return changed;
  }

  /** In batches of one colour. @param {Scene} scene @param {number[]} changed */
  #paintFills({ looks }, changed) {
    const { context, palette, xs, ys } = this;
    const { cell: size, tall } = this.layout;
    context.fillStyle = palette.empty;
    for (const index of changed) context.clearRect(xs[index], ys[index], size, tall);
    for (const index of changed) context.fillRect(xs[index], ys[index], size, tall);
    palette.bands.forEach((paint, band) => {
      context.fillStyle = paint;
      for (const index of changed) {
        const look = looks[index];
        const height = heightIn(look);
        if (height > 0 && bandIn(look) === band && dataIn(look) === "ok")
          context.fillRect(xs[index], ys[index] + tall - height, size, height);
      }
    });
    context.fillStyle = palette.stale;
    for (const index of changed)
      if (dataIn(looks[index]) === "stale") context.fillRect(xs[index], ys[index], size, tall);
  }

  /** What is on the fill. @param {Scene} scene @param {number} index */
  #paintRest(scene, index) {
    const look = scene.looks[index];
    const size = this.layout.cell;
    const level = levelIn(look);
    if (dataIn(look) === "lost") this.#paintLost(index);
    if (size < MARKED_FROM && level !== "ok") return this.#paintSmall(look, index);
    if (isForeseenIn(look)) this.#paintForeseen(look, index);
    if (size >= TEXT_FROM) this.#paintTexts(scene, index);
    if (level !== "ok") this.#paintState(look, index);
  }

  /** @param {number} index */
  #paintLost(index) {
    const { context, palette, layout } = this;
    const size = layout.cell;
    const [x, y] = [this.xs[index], this.ys[index] + (layout.tall - size) / 2];
    const inset = Math.max(1, size * 0.28);
    context.strokeStyle = palette.lost;
    context.lineWidth = Math.max(1, Math.min(3, size / 10));
    context.beginPath();
    context.moveTo(x + inset, y + inset);
    context.lineTo(x + size - inset, y + size - inset);
    context.moveTo(x + size - inset, y + inset);
    context.lineTo(x + inset, y + size - inset);
    context.stroke();
  }

  /**
   * Too small for a mark: the cell is the mark. A critical one is a square, a warning a triangle, one to watch a frame;
   * filled where it is so now, hollow where it is foreseen.
   * @param {number} look @param {number} index
   */
  #paintSmall(look, index) {
    const { context, palette } = this;
    const size = this.layout.cell;
    const [x, y, level, foreseen] = [this.xs[index], this.ys[index], levelIn(look), isForeseenIn(look)];
    const width = size >= 12 ? 2 : 1;
    const shape = new Path2D();
    if (level === "warning") {
      shape.moveTo(x + width / 2, y + size - width / 2);
      shape.lineTo(x + size / 2, y + width / 2);
      shape.lineTo(x + size - width / 2, y + size - width / 2);
      shape.closePath();
      context.fillStyle = palette.empty;
      if (dataIn(look) === "ok") context.fillRect(x, y, size, size);
    } else shape.rect(x + width / 2, y + width / 2, size - width, size - width);
    context.fillStyle = context.strokeStyle = palette.level[level];
    context.lineWidth = width;
    context.stroke(shape);
    if (level !== "watch" && !foreseen && dataIn(look) === "ok") context.fill(shape);
  }

  /** Where the peaks lead: a dashed line at the end of the card, and dashes up to it from what is in use. @param {number} look @param {number} index */
  #paintForeseen(look, index) {
    const { context, palette } = this;
    const { cell: size, tall } = this.layout;
    const [x, y] = [this.xs[index], this.ys[index]];
    const written = size >= SOON_FROM ? soonAbove(size) + 12 : 0; // the line ends above what is written
    const top = y + tall - Math.max(heightIn(look), written);
    context.save();
    context.strokeStyle = palette.level[levelIn(look)];
    context.lineWidth = 2;
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x + 3, y + 4);
    context.lineTo(x + size - 3, y + 4);
    context.moveTo(x + size / 2, top);
    context.lineTo(x + size / 2, y + 4);
    context.stroke();
    context.restore();
  }

  /** @param {Scene} scene @param {number} index */
  #paintTexts(scene, index) {
    const { context, palette } = this;
    const look = scene.looks[index];
    const { cell: size, tall } = this.layout;
    const [x, y, filled] = [this.xs[index], this.ys[index], heightIn(look)];
    this.#write(scene, index, palette.muted, palette.text);
    if (dataIn(look) !== "ok" || filled === 0) return;
    const onFill = palette.onBands[bandIn(look)];
    context.save(); // once more, within the fill: each part of a letter is readable on what is behind it
    context.beginPath();
    context.rect(x, y + tall - filled, size, filled);
    context.clip();
    this.#write(scene, index, onFill, onFill);
    context.restore();
  }

  /** @param {Scene} scene @param {number} index @param {string} weak @param {string} strong */
  #write(scene, index, weak, strong) {
    const { context, palette, sayings } = this;
    const look = scene.looks[index];
    const { cell: size, tall } = this.layout;
    const [x, y] = [this.xs[index], this.ys[index]];
    context.font = `11px ${palette.font}`;
    context.fillStyle = weak;
    context.fillText(scene.gpus[index].facts.gpu, x + 6, y + 17);
    if (dataIn(look) !== "ok") return;
    context.fillStyle = strong;
    if (isForeseenIn(look) && size >= SOON_FROM) context.fillText(sayings.soon(index), x + 6, y + tall - soonAbove(size), size - 8);
    context.font = `600 ${shareSize(size)}px ${palette.font}`;
    const inset = size >= NARROW_BELOW ? 6 : 4;
    context.fillText(sayings.percent(ratioIn(look)), x + inset, y + tall - 7, size - inset - 2);
  }

  /** Outline and mark: what the alerts say. Thin where somebody did something about them. @param {number} look @param {number} index */
  #paintState(look, index) {
    const { context, palette } = this;
    const { cell: size, tall } = this.layout;
    const [x, y, level, sign] = [this.xs[index], this.ys[index], levelIn(look), signIn(look)];
    const width = sign === "none" && level !== "watch" ? 3 : 1.5;
    context.strokeStyle = palette.level[level];
    context.lineWidth = width;
    context.strokeRect(x + width / 2, y + width / 2, size - width, tall - width);
    const mark = Math.min(16, Math.max(8, Math.round(size * 0.3)));
    const plate = mark + 4; // below the mark, so that it is seen on any fill
    const left = x + size - plate - 3;
    context.fillStyle = palette.surface;
    context.fillRect(left, y + 3, plate, plate);
    const below = sign === "acknowledged" && size >= SIGNED_FROM; // else there is room for one of the two
    if (sign !== "none" && !below)
      return paintPath(context, SIGNS[sign], true, left + 2, y + 5, mark, sign === "muted" ? palette.muted : palette.level[level]);
    const { path, stroked } = SHAPES[level];
    paintPath(context, path, stroked, left + 2, y + 5, mark, palette.level[level]);
    if (!below) return;
    context.fillStyle = palette.surface;
    context.fillRect(left, y + 3 + plate, plate, plate);
    paintPath(context, SIGNS.acknowledged, true, left + 2, y + 5 + plate, mark, palette.muted);
  }
}
