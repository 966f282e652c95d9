// The fleet map as an element: a canvas on which what changed is painted, with pointer and keyboard.

import { h } from "./dom.js";
import { LARGEST_ON_WALL, ON_DESK, ON_WALL, cellAt, fit, hit, step } from "./fleet-layout.js";
import { Painter } from "./fleet-paint.js";
import { readPalette } from "./fleet-palette.js";

/** @typedef {import("./fleet-layout.js").Section} Section */
/** @typedef {import("./fleet-scene.js").Scene} Scene */
/** @typedef {{ block: number, gpu: number }} Place */

/**
 * @typedef {object} MapHandlers `node` counts over all sections, `gpu` within the node (null: the node itself)
 * @property {(node: number, gpu: number | null) => void} open
 * @property {(node: number, gpu: number | null) => (Element | string)[]} describe lines for the tooltip
 * @property {(node: number, gpu: number) => string} announce a sentence for a screen reader
 * @property {() => number} now server's clock
 * @property {() => boolean} isKiosk whether the map is all there is to see
 */

export const FEW_NODES = 16;
const LEAST_HEIGHT = 220; // px
const BELOW = 110; // px that the legend and the margin take
const ABOUT_LEGEND = 56; // px that are free above and below it on a wall screen
const PHONE = 620; // px: on so narrow a screen whoever reads scrolls anyway, and the cells are to be told apart
const TALL = 1.7; // the height of the map there, of its width
const OF_WIDTH = 12; // the largest cell, as a part of a wide map
const MOVES = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];

let painted = false;

/** For whoever measures the page: the moment at which its map is first there. */
function noteFirstPaint() {
  if (!painted) performance.mark("fleet painted");
  painted = true;
}

/** How much the page is enlarged by its style, as on a wall screen. */
const zoom = () => document.body.currentCSSZoom ?? 1;

/** Pixels of the screen in one of the canvas. */
const scaleNow = () => devicePixelRatio * zoom();

/** Few cards are drawn larger where there is much room. @param {number} width px */
const onDesk = (width) => ({ ...ON_DESK, most: Math.min(LARGEST_ON_WALL, Math.max(ON_DESK.most, Math.round(width / OF_WIDTH))) });

export class FleetMap {
  /** @param {Scene} scene @param {MapHandlers} handlers @param {import("./fleet-paint.js").Sayings} sayings @param {{ label: string, help: string }} words */
  constructor(scene, handlers, sayings, words) {
    this.scene = scene;
    this.handlers = handlers;
    this.sayings = sayings;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.ring = h("i", { class: "ring", hidden: true });
    this.tip = h("div", { class: "tip", hidden: true });
    this.live = h("div", { class: "unseen", role: "status" });
    this.element = h(
      "div",
      { class: "fleet-map", tabindex: 0, role: "application", "aria-label": `${words.label} ${words.help}` },
      this.canvas,
      this.ring,
      this.tip,
      this.live,
    );
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    /** @type {Section[]} */
    this.sections = [];
    this.layout = fit([], 1, 1);
    /** @type {Painter | null} made anew for each layout and each kind of screen */
    this.painter = null;
    /** @type {Place | null} */
    this.focus = null;
    /** @type {{ block: number, gpu: number | null } | null} */
    this.hovered = null;
    this.scale = 0;
    this.size = ""; // what it was laid out for
    this.#listen();
    this.resizing = new ResizeObserver(() => this.resize());
  }

  /** Call once the element is in the document. */
  start() {
    this.resizing.observe(/** @type {Element} */ (this.element.parentElement));
    // Nobody scrolls a wall screen: what comes and goes above the map takes of its room.
    if (this.handlers.isKiosk()) for (const above of document.querySelectorAll("#headline, #why, #notices")) this.resizing.observe(above);
    addEventListener("resize", this.resize);
    this.resize();
  }

  close() {
    this.resizing.disconnect();
    removeEventListener("resize", this.resize);
  }

  /** Whether somebody is reading it: then nothing is moved. */
  get isRead() {
    return this.hovered !== null || document.activeElement === this.element;
  }

  /** The scene was arranged anew. @param {Section[]} sections */
  arrange(sections) {
    this.sections = sections;
    this.focus = null;
    this.hovered = null;
    this.size = "";
    this.resize();
  }

  /** New readings of the same nodes, or what is written in the cells. @param {boolean} [all] paint also what looks the same */
  show(all = false) {
    if (scaleNow() !== this.scale) return this.resize(); // moved to another screen, or zoomed
    if (this.painter === null || this.scene.nodes.length !== this.layout.blocks.length) return;
    if (all) this.painter.forget();
    this.scene.read(this.handlers.now(), this.layout.tall);
    this.painter.paint(this.scene);
    if (this.scene.gpus.length > 0) noteFirstPaint();
    this.#describe();
  }

  resize = () => {
    if (this.scene.nodes.length === 0) return; // nothing is shown, and to ask for its size makes the browser lay out the page
    const [width, height] = this.#room();
    const size = `${width} ${height} ${scaleNow()}`;
    if (size === this.size || width === 0) return;
    this.size = size;
    this.layout = fit(this.sections, width, height, this.handlers.isKiosk() ? ON_WALL : onDesk(width));
    this.scale = scaleNow();
    this.canvas.width = Math.ceil(width * this.scale);
    this.canvas.height = Math.ceil((this.layout.height + 2) * this.scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.layout.height + 2}px`;
    this.context.setTransform(this.scale, 0, 0, this.scale, 0, this.scale); // a pixel of room for a node's frame
    this.painter = new Painter(this.context, this.layout, readPalette(this.context, this.scale), this.sayings);
    this.show();
    this.#drawRing();
  };

  /** @returns {[number, number]} px */
  #room() {
    const top = this.element.getBoundingClientRect().top + scrollY;
    const width = this.element.clientWidth;
    const room = (innerHeight - top) / zoom();
    if (this.handlers.isKiosk()) return [width, Math.round(Math.max(LEAST_HEIGHT, room - this.#legendHeight()))];
    const few = this.scene.nodes.length <= FEW_NODES; // beside the map of a few nodes their table is to be seen too
    const least = width < PHONE ? TALL * width : LEAST_HEIGHT;
    return [width, Math.round(Math.max(least, few ? 0.6 * room : room - BELOW))];
  }

  /** What is below the map on a wall screen, px. */
  #legendHeight() {
    const legend = this.element.nextElementSibling;
    return (legend instanceof HTMLElement ? legend.offsetHeight : 0) + ABOUT_LEGEND;
  }

  #drawRing() {
    const place = this.focus;
    this.ring.hidden = place === null || place.block >= this.layout.blocks.length;
    if (place === null || this.ring.hidden) return;
    const { x, y } = cellAt(this.layout, this.layout.blocks[place.block], place.gpu);
    Object.assign(this.ring.style, {
      left: `${x}px`,
      top: `${y + 1}px`,
      width: `${this.layout.cell}px`,
      height: `${this.layout.tall}px`,
    });
  }

  /** Puts the ring around a GPU, or takes it away. @param {Place | null} place */
  point(place) {
    this.focus = place;
    this.#drawRing();
    this.#describe();
  }

  #listen() {
    const { element } = this;
    element.addEventListener("pointermove", (event) => this.#hover(event));
    element.addEventListener("pointerleave", () => this.#leave());
    element.addEventListener("click", () => this.hovered && this.handlers.open(this.hovered.block, this.hovered.gpu));
    element.addEventListener("keydown", (event) => this.#key(event));
    element.addEventListener("focus", () => this.#keyboardFocus());
    element.addEventListener("blur", () => this.point(null));
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const box = this.canvas.getBoundingClientRect();
    this.hovered = hit(this.layout, (event.clientX - box.left) / zoom(), (event.clientY - box.top) / zoom());
    this.element.classList.toggle("pointing", this.hovered !== null);
    this.#describe();
  }

  #leave() {
    this.hovered = null;
    this.#describe();
  }

  #keyboardFocus() {
    if (this.focus === null && this.element.matches(":focus-visible")) this.#move(this.#first());
  }

  #first() {
    const block = this.layout.blocks.findIndex((candidate) => candidate.gpus > 0);
    return block === -1 ? null : { block, gpu: 0 };
  }

  #last() {
    const block = this.layout.blocks.findLastIndex((candidate) => candidate.gpus > 0);
    return block === -1 ? null : { block, gpu: this.layout.blocks[block].gpus - 1 };
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Enter" && this.focus !== null) this.handlers.open(this.focus.block, this.focus.gpu);
    if (event.key === "Escape") this.point(null);
    if (!MOVES.includes(event.key)) return;
    event.preventDefault();
    if (event.key === "End") this.#move(this.#last());
    else if (event.key === "Home" || this.focus === null) this.#move(this.#first());
    else this.#move(step(this.layout, this.focus, event.key));
  }

  /** @param {Place | null} place */
  #move(place) {
    if (place === null) return;
    this.hovered = null;
    this.point(place);
    this.live.textContent = this.handlers.announce(place.block, place.gpu);
  }

  /** The tooltip, at what is pointed at or has the ring. It follows the readings. */
  #describe() {
    const place = this.hovered ?? (document.activeElement === this.element ? this.focus : null);
    this.tip.hidden = place === null;
    const block = place === null ? undefined : this.layout.blocks[place.block];
    if (place === null || block === undefined) return;
    this.tip.replaceChildren(...this.handlers.describe(place.block, place.gpu).map((line) => h("div", {}, line)));
    const { x, y } = place.gpu === null ? block : cellAt(this.layout, block, place.gpu);
    const pitch = this.layout.tall + this.layout.gap;
    const left = Math.min(x, this.element.clientWidth - this.tip.offsetWidth);
    const below = y + (place.gpu === null ? this.layout.label : pitch) + 6;
    const over = below + this.tip.offsetHeight > this.layout.height + 140;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${over ? below - pitch - this.tip.offsetHeight - 12 : below}px`;
  }
}
