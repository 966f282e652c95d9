// Building elements. Text goes in as text nodes only: nothing that a log, a model or a user wrote can become markup.

/** @typedef {Node | string | null} Child */
/** @typedef {Record<string, string | number | boolean | null | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/** @param {Element} element @param {Attributes} attributes */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, String(value));
  }
}

/**
 * An element. A function among the attributes is a listener of that event; null and false leave an attribute out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Attributes} [attributes] @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** @param {string} tag @param {Attributes} attributes @param {...SVGElement} children @returns {SVGElement} */
export function svg(tag, attributes, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** Sets the text only where it differs: an unchanged node costs no layout. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
}

/**
 * As `fill`, and whoever works by keyboard stays where they are: the focus goes to what has the same `data-focus`, else to
 * the first thing that can be pressed.
 * @param {Element} element @param {...Child} children
 */
export function refill(element, ...children) {
  const held = document.activeElement;
  const inside = held !== element && element.contains(held);
  fill(element, ...children);
  if (held === null || !inside) return;
  const name = held.getAttribute("data-focus");
  const same = name === null ? null : element.querySelector(`[data-focus="${CSS.escape(name)}"]`);
  const next = same ?? element.querySelector("button, a, summary");
  if (next instanceof HTMLElement) next.focus();
}

/** A part of an element that is drawn anew only when what it shows has changed: what was unfolded in it stays so. */
export class Part {
  /** @param {keyof HTMLElementTagNameMap} tag @param {Attributes} [attributes] */
  constructor(tag, attributes = {}) {
    this.element = h(tag, attributes);
    this.drawn = "";
  }

  /** @param {unknown} state all that the children depend on @param {() => Child[]} children */
  draw(state, children) {
    const key = JSON.stringify(state);
    if (key === this.drawn) return;
    this.drawn = key;
    refill(this.element, ...children());
  }
}

/**
 * Makes the children of a container match the items, keeping the elements of items that stay: focus, hover and text
 * selection survive an update.
 * @template T
 * @param {Element} container
 * @param {T[]} items
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => HTMLElement} create
 * @param {(element: HTMLElement, item: T) => void} update called for new elements too
 */
export function keyed(container, items, keyOf, create, update) {
  const old = new Map([...container.children].map((child) => [child.getAttribute("data-key"), child]));
  const wanted = new Set(items.map(keyOf));
  for (const [key, child] of old) if (key === null || !wanted.has(key)) child.remove(); // first: the others need not move
  let place = container.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let element = /** @type {HTMLElement | undefined} */ (old.get(key));
    if (element === undefined) {
      element = create(item);
      element.setAttribute("data-key", key);
    }
    update(element, item);
    if (element === place) place = place.nextElementSibling;
    else container.insertBefore(element, place);
  }
}

/**
 * A moment shown as the time since then; the page's clock keeps every such element current (see ages.js).
 * @param {number} unixSeconds @returns {HTMLTimeElement}
 */
export function since(unixSeconds) {
  return h("time", { "data-since": unixSeconds, datetime: new Date(unixSeconds * 1000).toISOString() });
}
