// How a GPU looks on the map, as one number: what is the same number looks the same, and is not painted again. Pure.

/** @typedef {import("./judge.js").Level} Level */
/** @typedef {import("./judge.js").Data} Data */
/** @typedef {import("./judge.js").Sign} Sign */

/** Used share from which each colour of headroom applies; the first is for all below. */
export const BANDS = [0, 0.7, 0.85, 0.95];

/** @param {number} ratio @returns {number} index into BANDS */
export function bandOf(ratio) {
  let band = BANDS.length - 1;
  while (ratio < BANDS[band]) band -= 1;
  return band;
}

export const LEVEL_OF = /** @type {const} */ (["ok", "watch", "warning", "critical"]);
export const SIGN_OF = /** @type {const} */ (["none", "acknowledged", "muted"]);
const DATA_OF = /** @type {const} */ (["ok", "stale", "lost"]);

/** What alerts say of a GPU; it stays the same between them. @param {Level} level @param {Sign} sign @param {boolean} foreseen */
export const flagsOf = (level, sign, foreseen) =>
  LEVEL_OF.indexOf(level) | (SIGN_OF.indexOf(sign) << 2) | (foreseen ? 16 : 0);

const TENTHS_FROM = 0.99; // as format.js writes it: the last percent before full has a decimal

/**
 * 5 bits of flags, 2 of data, 2 of the band, 8 of the height in pixels, 11 of the share as it is written.
 * @param {number} flags @param {Data} data @param {number | null} ratio @param {number} size of the cell, px, at most 255
 */
export function lookOf(flags, data, ratio, size) {
  const known = data === "ok" && ratio !== null;
  const share = known ? Math.max(0, Math.min(1.2, ratio)) : 0;
  const height = Math.round(Math.min(1, share) * size);
  const written = !known ? 2047 : share >= TENTHS_FROM ? Math.floor(share * 1000) : Math.round(share * 100) * 10;
  return flags | (DATA_OF.indexOf(data) << 5) | ((known ? bandOf(share) : 0) << 7) | (height << 9) | (written << 17);
}

/** @param {number} look */
export const levelIn = (look) => LEVEL_OF[look & 3];
/** @param {number} look @returns {Sign} */
export const signIn = (look) => SIGN_OF[(look >> 2) & 3];
/** Whether it is foreseen to be full. @param {number} look */
export const isForeseenIn = (look) => (look & 16) !== 0;
/** @param {number} look @returns {Data} */
export const dataIn = (look) => DATA_OF[(look >> 5) & 3];
/** @param {number} look */
export const bandIn = (look) => (look >> 7) & 3;
/** Pixels. @param {number} look */
export const heightIn = (look) => (look >> 9) & 255;
/** The share, as exactly as it is written; null where it is not known. @param {number} look */
export const ratioIn = (look) => (look >> 17 === 2047 ? null : (look >> 17) / 1000);

/** For small cells the same without what only large ones show: their text. @param {number} look */
export const withoutText = (look) => look & 0x1ffff;
