// Listens for the keys of keys.js, except where somebody types or a dialog is open.

import { Presses } from "./keys.js";
import { link } from "./router.js";

/** @typedef {"search" | "next" | "previous" | "theme" | "language" | "zone" | "help"} Deed */

/** What j and k go through: the lines of lists and tables, by what can be pressed in them. */
const LINES = "#view :is(tbody tr, .full li, .alert, .member, .silence, .channel, .rule)";
const PRESSED = "a[href], summary, button";

/** @param {Record<Exclude<Deed, "search" | "next" | "previous">, () => void>} deeds @param {() => boolean} isOn */
export function listenForKeys(deeds, isOn) {
  const presses = new Presses();
  addEventListener("keydown", (event) => {
    if (!isOn() || isTaken(event)) return;
    const key = presses.take(event.key, event.timeStamp);
    if (key === null || key.does === "search") return; // the search listens itself
    event.preventDefault();
    if (key.view !== null) location.hash = link(key.view);
    else if (key.does === "next") step(1);
    else if (key.does === "previous") step(-1);
    else deeds[key.does]();
  });
}

/** Whether a key belongs to something else: a field, a dialog, the browser. @param {KeyboardEvent} event */
function isTaken(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return true;
  const { target } = event;
  return target instanceof Element && target.closest("input, textarea, select, dialog, [contenteditable]") !== null;
}

/** The focus goes to the line after or before that which has it. @param {1 | -1} by */
function step(by) {
  const lines = [...document.querySelectorAll(LINES)].flatMap((line) => {
    const [first] = [...line.querySelectorAll(PRESSED)].filter((one) => one.checkVisibility());
    return first instanceof HTMLElement ? [first] : [];
  });
  const stops = [...new Set(lines)];
  const held = document.activeElement;
  const at = stops.findIndex((stop) => stop === held || stop.parentElement?.contains(held));
  const next = at === -1 ? (by === 1 ? 0 : stops.length - 1) : at + by;
  stops[Math.min(stops.length - 1, Math.max(0, next))]?.focus();
}
