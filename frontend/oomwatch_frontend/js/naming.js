// The order of names as people count: "gpu-2" stands before "gpu-10". Pure.
// Intl.Collator would do as well, but to make the first one takes a browser some of the time until the first paint.

const PARTS = /\d+|\D+/g;

/** @param {string} part */
const isNumber = (part) => part >= "0" && part < ":";

/** @typedef {{ name: string, parts: string[] }} Parted */

/** @param {string} a @param {string} b parts of two names */
function comparePart(a, b) {
  const apart = isNumber(a) && isNumber(b) ? Number(a) - Number(b) : 0;
  return apart || (a < b ? -1 : a > b ? 1 : 0);
}

/** @param {Parted} a @param {Parted} b */
function compare(a, b) {
  const shared = Math.min(a.parts.length, b.parts.length);
  for (let place = 0; place < shared; place += 1) {
    const order = comparePart(a.parts[place], b.parts[place]);
    if (order !== 0) return order;
  }
  return a.parts.length - b.parts.length || (a.name < b.name ? -1 : 1);
}

/** Names in their order; small and capital letters are alike. @param {Iterable<string>} names @returns {string[]} */
export function inOrder(names) {
  const parted = [...names].map((name) => ({ name, parts: name.toLowerCase().match(PARTS) ?? [] }));
  return parted.sort(compare).map(({ name }) => name);
}
