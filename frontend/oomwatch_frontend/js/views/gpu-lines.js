// What is drawn of a GPU's memory over time: the layers of the stack, the line of all that is in use, and what is foretold.

import { h } from "../dom.js";
import { GIB } from "../format.js";
import { fanOf } from "../forecast.js";
import { isSteady } from "../history.js";
import { PARTS, stackOver } from "../memory-parts.js";
import { PATTERN_CLASS } from "../parts.js";

/** @typedef {import("../charts.js").Line} Line */
/** @typedef {import("../history.js").Series} Series */
/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {(number | null)[]} Column */

/** @param {Column} column bytes @returns {Column} GiB */
export const inGib = (column) => column.map((bytes) => (bytes === null ? null : bytes / GIB));

/** @param {Column} upper @param {Column} lower @returns {Column} */
const heights = (upper, lower) => upper.map((top, index) => (top === null ? null : top - (lower[index] ?? 0)));

/**
 * @param {Words} words @param {Series} used @param {Series} reserved @param {Series} allocated
 * @param {number} seconds the pace of a probe: so long its word holds @returns {Line[]} from the back to the front
 */
export function memoryLines(words, used, reserved, allocated, seconds) {
  const steady = isSteady(reserved, seconds);
  const layers = steady ? layersOf(words, used, reserved, allocated, seconds) : [];
  const line = {
    name: words.t("gpu.used"),
    y: inGib(used.mean),
    low: inGib(used.min),
    high: inGib(used.max),
    colour: "accent",
  };
  return [...layers, line, ...(steady || reserved.at.length === 0 ? [] : [loggedLine(words, reserved)])];
}

/** @param {Words} words @param {Series} used @param {Series} reserved @param {Series} allocated @param {number} seconds @returns {Line[]} */
function layersOf(words, used, reserved, allocated, seconds) {
  const stack = stackOver(used, reserved, allocated, seconds);
  const floor = used.at.map(() => 0);
  const known = stack.allocated.some((bytes) => bytes !== null);
  const unusedFrom = known ? stack.allocated : floor;
  return [
    ...(known ? [layer("allocated", words.t("torch.allocated"), floor, stack.allocated)] : []),
    layer("unused", words.t(known ? "torch.unused" : "torch.reserved"), unusedFrom, stack.reserved),
    { ...layer("rest", words.t("parts.over_time_rest"), stack.rest, stack.used), pattern: "", solid: 0.22 }, // calm: it is large
  ];
}

/** @param {import("../memory-parts.js").PartName} part @param {string} name @param {Column} low @param {Column} high @returns {Line} */
function layer(part, name, low, high) {
  const { colour, pattern } = PARTS[part];
  const whole = high.map((top, index) => (low[index] === null ? null : top));
  const bottom = low.map((edge, index) => (whole[index] === null ? null : edge));
  const told = inGib(heights(whole, bottom));
  return { name, y: inGib(whole), low: inGib(bottom), high: inGib(whole), told, colour, pattern, solid: 0.35, thin: true };
}

/** torch's figure out of log lines: points where there was a line. @param {Words} words @param {Series} reserved @returns {Line} */
function loggedLine(words, { at, mean }) {
  return { name: words.t("torch.reserved"), x: at, y: inGib(mean), colour: "second", dash: "dot", points: true };
}

/** @param {Words} words @param {import("../forecast.js").Forecast} forecast @param {number} at when it was said @returns {Line} */
export function forecastLine(words, forecast, at) {
  const fan = fanOf(forecast, at);
  const colour = forecast.severity === "info" ? "watch" : forecast.severity;
  return { name: words.t("chart.forecast"), x: fan.x, y: inGib(fan.y), low: inGib(fan.low), high: inGib(fan.high), colour, dash: "dash" };
}

/** A line or layer and its name, for the legend. @param {Line} line */
export function lineName({ name, colour, pattern, thin, dash }) {
  const look = thin ? `phase ${PATTERN_CLASS[pattern ?? ""] ?? ""}` : `line ${dash ?? ""}`;
  const swatch = h("i", { class: `swatch ${look}` });
  swatch.style.setProperty("--ink", `var(--${colour})`);
  return h("li", {}, swatch, name);
}
