// The fleet map as an element: a canvas that is repainted when something changed, with pointer and keyboard.

import { h } from "./dom.js";
import { fit, hit, step } from "./fleet-layout.js";
import { paint, readPalette } from "./fleet-paint.js";

/** @typedef {import("./fleet-layout.js").Section} Section */
/** @typedef {import("./fleet-paint.js").NodeCells} NodeCells */
/** @typedef {{ block: number, gpu: number }} Place */

/**
 * @typedef {object} MapHandlers `node` counts over all sections, `gpu` within the node (null: the node itself)
 * @property {(node: number, gpu: number | null) => void} open
 * @property {(node: number, gpu: number | null) => (Element | string)[]} describe lines for the tooltip
 * @property {(ratio: number | null) => string} percent
 * @property {(node: number, gpu: number) => string} announce a sentence for a screen reader
 */

export const FEW_NODES = 16;
const ARROWS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

export class FleetMap {
  /** @param {MapHandlers} handlers @param {{ label: string, help: string }} words */
  constructor(handlers, words) {
    this.handlers = handlers;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.tip = h("div", { class: "tip", hidden: true });
    this.live = h("div", { class: "unseen", role: "status" });
    this.element = h(
      "div",
      { class: "fleet-map", tabindex: 0, role: "application", "aria-label": `${words.label} ${words.help}` },
      this.canvas,
      this.tip,
      this.live,
    );
    this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    /** @type {Section[]} */
    this.sections = [];
    /** @type {NodeCells[]} */
    this.nodes = [];
    this.layout = fit([], 1, 1);
    /** @type {import("./fleet-paint.js").Palette | null} */
    this.palette = null;
    /** @type {Place | null} */
    this.focus = null;
    /** @type {{ block: number, gpu: number | null } | null} */
    this.hovered = null;
    this.frame = 0;
    this.scale = 0;
    this.#listen();
    this.resizing = new ResizeObserver(() => this.resize());
  }

  /** Call once the element is in the document. */
  start() {
    this.resizing.observe(/** @type {Element} */ (this.element.parentElement));
    addEventListener("resize", this.resize);
    this.resize();
  }

  close() {
    this.resizing.disconnect();
    removeEventListener("resize", this.resize);
    cancelAnimationFrame(this.frame);
  }

  /** Another set of nodes. @param {Section[]} sections @param {NodeCells[]} nodes */
  arrange(sections, nodes) {
    this.sections = sections;
    this.nodes = nodes;
    this.focus = null;
    this.hovered = null;
    this.resize();
  }

  /** New readings of the same nodes. @param {NodeCells[]} nodes */
  show(nodes) {
    this.nodes = nodes;
    this.#paintSoon();
  }

  /** Puts the ring around a GPU from outside, or takes it away. @param {Place | null} place */
  point(place) {
    this.focus = place;
    this.#paintSoon();
  }

  resize = () => {
    const width = this.element.clientWidth;
    const top = this.element.getBoundingClientRect().top + scrollY;
    const few = this.nodes.length <= FEW_NODES; // beside the map of a few nodes their table is to be seen too
    this.layout = fit(this.sections, width, Math.max(220, few ? (innerHeight - top) * 0.6 : innerHeight - top - 150));
    this.scale = devicePixelRatio;
    this.canvas.width = Math.ceil(width * this.scale);
    this.canvas.height = Math.ceil((this.layout.height + 2) * this.scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${this.layout.height + 2}px`;
    this.palette = null;
    this.#paintSoon();
  };

  #paintSoon() {
    if (this.frame === 0) this.frame = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    this.frame = 0;
    if (devicePixelRatio !== this.scale) return this.resize(); // moved to another screen, or zoomed
    this.palette ??= readPalette(this.context, this.scale);
    this.context.setTransform(this.scale, 0, 0, this.scale, 0, this.scale); // a pixel of room for the ring
    if (this.nodes.length === this.layout.blocks.length) {
      paint(this.context, this.layout, this.nodes, this.palette, this.focus, this.handlers.percent);
    }
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
    this.hovered = hit(this.layout, event.clientX - box.left, event.clientY - box.top);
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

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Enter" && this.focus !== null) this.handlers.open(this.focus.block, this.focus.gpu);
    if (event.key === "Escape") this.point(null);
    if (!ARROWS.includes(event.key)) return;
    event.preventDefault();
    this.#move(this.focus === null ? this.#first() : step(this.layout, this.focus, event.key));
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
    const pitch = this.layout.cell + this.layout.gap;
    const column = place.gpu === null ? 0 : place.gpu % block.columns;
    const row = place.gpu === null ? 0 : Math.floor(place.gpu / block.columns) + 1;
    const left = Math.min(block.x + column * pitch, this.element.clientWidth - this.tip.offsetWidth);
    const below = block.y + (place.gpu === null ? this.layout.label : this.layout.label + row * pitch) + 6;
    const over = below + this.tip.offsetHeight > this.layout.height + 140;
    this.tip.style.left = `${Math.max(0, left)}px`;
    this.tip.style.top = `${over ? below - pitch - this.tip.offsetHeight - 12 : below}px`;
  }
}
