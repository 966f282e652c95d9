// What stands on the page is made to say what it should say now, and only what differs is touched: a selected text, the
// focus, a scrolled table and what points at an element outlive an update.

/** @typedef {import("./dom.js").Child} Child */

/** What a person may have changed, or what acts by itself: kept where it is the same, else put anew. */
const WHOLE = new Set(["BUTTON", "INPUT", "SELECT", "TEXTAREA", "CANVAS", "DETAILS"]);

/**
 * As `fill`, but the elements that are there already stay. Children are told apart by their `data-key`, those without
 * by their place. Listeners are of those that came first: they may depend on nothing that changes.
 * @param {Element} element @param {...Child} children
 */
export function patch(element, ...children) {
  const wanted = children.filter((child) => child !== null);
  align(element, wanted.map((child) => (typeof child === "string" ? document.createTextNode(child) : child)));
}

/** @param {Node} node */
export const keyOf = (node) => (node instanceof Element ? node.getAttribute("data-key") : null);

/** @param {Element} element @param {Node[]} wanted */
function align(element, wanted) {
  const keys = new Set(wanted.map(keyOf));
  const known = new Map([...element.children].map((child) => [keyOf(child), child]));
  for (const [key, child] of known) if (key !== null && !keys.has(key)) child.remove();
  let place = element.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const old = key === null ? (place !== null && keyOf(place) === null ? place : null) : (known.get(key) ?? null);
    const shown = old !== null && become(old, node) ? old : node;
    const next = old === place && place !== null ? place.nextSibling : place;
    if (shown !== old) old?.parentNode?.removeChild(old);
    if (shown !== place) element.insertBefore(shown, next);
    place = next;
  }
  while (place !== null) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

/** @param {Node} old @param {Node} node @returns {boolean} whether the old one now is as the new one */
function become(old, node) {
  if (old.isEqualNode(node) || isSameMoment(old, node)) return true;
  if (old.nodeName !== node.nodeName || WHOLE.has(old.nodeName)) return false;
  if (old instanceof Text && node instanceof Text) old.data = node.data;
  if (!(old instanceof Element) || !(node instanceof Element)) return true;
  takeAttributes(old, node);
  align(old, [...node.childNodes]);
  return true;
}

/** The page's clock writes the age into one that stands there (ages.js). @param {Node} old @param {Node} node */
function isSameMoment(old, node) {
  if (!(old instanceof HTMLTimeElement) || !(node instanceof HTMLTimeElement)) return false;
  return old.dataset.since !== undefined && old.dataset.since === node.dataset.since;
}

/** @param {Element} old @param {Element} node */
function takeAttributes(old, node) {
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) {
    if (old.getAttribute(name) === value) continue;
    // The page's policy forbids styles that are written as an attribute.
    if (name === "style" && old instanceof HTMLElement) old.style.cssText = value;
    else old.setAttribute(name, value);
  }
}
