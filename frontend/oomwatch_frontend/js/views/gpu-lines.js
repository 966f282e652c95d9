// What is drawn of a GPU's memory over time: the layers of the stack, the line of all that is in use, and what is foretold.

import { h } from "../dom.js";
import { GIB } from "../format.js";
import { fanOf } from "../forecast.js";
import { emptySeries, isSteady } from "../history.js";
import { levelOfRule } from "../judge.js";
import { PARTS, stackOver } from "../memory-parts.js";
import { PATTERN_CLASS } from "../parts.js";

/** @typedef {import("../charts.js").Line} Line */
/** @typedef {import("../history.js").Series} Series */
/** @typedef {import("../memory-parts.js").Told} Told */
/** @typedef {import("../memory-parts.js").Layer} Layer */
/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {(number | null)[]} Column */

/** @param {Column} column bytes @returns {Column} GiB */
export const inGib = (column) => column.map((bytes) => (bytes === null ? null : bytes / GIB));

/** @param {Column} upper @param {Column} lower @returns {Column} */
const heights = (upper, lower) => upper.map((top, index) => (top === null ? null : top - (lower[index] ?? 0)));

/**
 * @param {Words} words @param {Series} used @param {Told} told
 * @param {number} probeSeconds the pace of a probe: so long its word holds @param {number} listSeconds that of lists of processes
 * @returns {Line[]} from the back to the front
 */
export function memoryLines(words, used, told, probeSeconds, listSeconds) {
  const isProbed = isSteady(told.reserved, probeSeconds);
  const believed = isProbed ? told : { ...told, reserved: emptySeries(), allocated: emptySeries() };
  const layers = stackOver(used, believed, probeSeconds, listSeconds).map((one) => layer(words, one, told));
  const line = {
    name: words.t("gpu.used"),
    y: inGib(used.mean),
    low: inGib(used.min),
    high: inGib(used.max),
    colour: "accent",
  };
  return [...layers, line, ...(isProbed || told.reserved.at.length === 0 ? [] : [loggedLine(words, told.reserved)])];
}

const CALM = { pattern: "", solid: 0.22 }; // what nobody tells may be large

/** @param {Words} words @param {Layer} layer @param {Told} told @returns {Line} */
function layer(words, { name, low, high }, told) {
  const heightsInGib = inGib(heights(high, low));
  const look = { ...PARTS[name], solid: 0.35, ...(name === "rest" ? CALM : {}) };
  return { name: layerName(words, name, told), y: inGib(high), low: inGib(low), high: inGib(high), told: heightsInGib, ...look, thin: true };
}

/** @param {Words} words @param {import("../memory-parts.js").PartName} name @param {Told} told */
function layerName(words, name, told) {
  if (name === "unused" && told.allocated.at.length === 0) return words.t("torch.reserved");
  if (name === "rest" && told.engine.at.length === 0) return words.t("parts.over_time_rest");
  return words.t(`parts.${name}`);
}

/** torch's figure out of log lines: points where there was a line. @param {Words} words @param {Series} reserved @returns {Line} */
function loggedLine(words, { at, mean }) {
  return { name: words.t("torch.reserved"), x: at, y: inGib(mean), colour: "second", dash: "dot", points: true };
}

/** @param {Words} words @param {import("../forecast.js").Forecast} forecast @param {number} at when it was said @returns {Line} */
export function forecastLine(words, forecast, at) {
  const fan = fanOf(forecast, at);
  const colour = levelOfRule(forecast);
  return { name: words.t("chart.forecast"), x: fan.x, y: inGib(fan.y), low: inGib(fan.low), high: inGib(fan.high), colour, dash: "dash" };
}

/** A line or layer and its name, for the legend. @param {Line} line */
export function lineName({ name, colour, pattern, thin, dash }) {
  const look = thin ? `phase ${PATTERN_CLASS[pattern ?? ""] ?? ""}` : `line ${dash ?? ""}`;
  const swatch = h("i", { class: `swatch ${look}` });
  swatch.style.setProperty("--ink", `var(--${colour})`);
  return h("li", {}, swatch, name);
}
