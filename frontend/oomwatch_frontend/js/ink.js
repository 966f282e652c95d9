// How times, texts and colours are written for plotly.

import { aheadMs, isUtc } from "./zone.js";

/** A time as it is written in the reader's zone, as a stamp. @param {number} at Unix seconds */
export const localStamp = (at) => new Date(plotTime(at)).toISOString().slice(0, 23).replace("T", " ");

/**
 * plotly writes times in UTC, so it is given those that read there as they do in the reader's zone: as numbers, for a
 * text each point would cost it a search through that text.
 * @param {number} at Unix seconds @returns {number} milliseconds
 */
export function plotTime(at) {
  const date = new Date(at * 1000);
  return date.getTime() + aheadMs(date);
}

/** The moment that a stamp of plotly means, in the reader's zone. @param {string} stamp "2026-11-29 23:10" @returns {number} Unix seconds */
export function fromStamp(stamp) {
  const [day, time = "00:00"] = stamp.split(" ");
  return new Date(`${day}T${time}${isUtc() ? "Z" : ""}`).getTime() / 1000;
}

/** plotly reads a little markup in texts; names may hold anything. @param {string} text */
export const escapeMarkup = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** @param {string} hex #rrggbb @param {number} alpha */
export function fade(hex, alpha) {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  return `rgba(${red},${green},${blue},${alpha})`;
}
