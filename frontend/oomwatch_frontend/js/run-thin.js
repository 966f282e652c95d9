// A run of ten thousand steps on a screen of a thousand pixels: what is in view, in columns of some steps each. Pure.

/** @typedef {import("./charts.js").Row} Row */
/** @typedef {import("./charts.js").Line} Line */
/** @typedef {{ from: number, to: number }} Group places in the columns, `to` excluded */

/**
 * Groups of equal length over what is in view, and one beyond it on either side. Their borders stay where they are
 * while steps are added.
 * @param {number[]} x ascending @param {[number, number]} range @param {number} most groups
 * @returns {Group[]}
 */
export function groupsOf(x, [low, high], most) {
  let first = x.findIndex((value) => value >= low);
  let last = x.findLastIndex((value) => value <= high);
  if (first === -1 || last < first) return [];
  first = Math.max(0, first - 1);
  last = Math.min(x.length - 1, last + 1);
  const size = Math.max(1, Math.ceil((last - first + 1) / most));
  /** @type {Group[]} */
  const groups = [];
  for (let from = Math.floor(first / size) * size; from <= last; from += size) {
    groups.push({ from, to: Math.min(x.length, from + size) });
  }
  return groups;
}

/** The middle of each group. @param {number[]} x @param {Group[]} groups */
export const middles = (x, groups) => groups.map(({ from, to }) => (x[from] + x[to - 1]) / 2);

/**
 * A row with one value a group: the mean, with the lowest and the highest behind it; of what must not be hidden the
 * highest. Rows whose groups are single steps stay as they are.
 * @param {Row} row @param {Group[]} groups @returns {Row}
 */
export const thinned = (row, groups) => ({ ...row, lines: row.lines.map((line) => thinnedLine(line, groups)) });

/** @param {Line} line @param {Group[]} groups @returns {Line} */
function thinnedLine(line, groups) {
  const many = groups.some(({ from, to }) => to - from > 1);
  const { y, low, high, about } = line;
  const of = (/** @type {(number | null)[]} */ column, /** @type {Reduce} */ reduce) =>
    groups.map(({ from, to }) => reduce(column, from, to));
  const spread = many && line.stack !== true && low === undefined;
  return {
    ...line,
    y: of(y, line.peak === true ? most : mean),
    ...(about === undefined ? {} : { about: groups.map(({ from, to }) => about[placeOfMost(y, from, to)] ?? null) }),
    ...(low === undefined ? {} : { low: of(low, least) }),
    ...(high === undefined ? {} : { high: of(high, most) }),
    ...(spread ? { low: of(y, least), high: of(y, most) } : {}),
  };
}

/** @typedef {(column: (number | null)[], from: number, to: number) => number | null} Reduce */

/** @param {(number | null)[]} column @param {number} from @param {number} to */
const known = (column, from, to) => column.slice(from, to).filter((value) => value !== null);

/** @type {Reduce} */
const mean = (column, from, to) => {
  if (to - from === 1) return column[from];
  const values = known(column, from, to);
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
};

/** @type {Reduce} */
const most = (column, from, to) => {
  const values = known(column, from, to);
  return values.length === 0 ? null : Math.max(...values);
};

/** @type {Reduce} */
const least = (column, from, to) => {
  const values = known(column, from, to);
  return values.length === 0 ? null : Math.min(...values);
};

/** @param {(number | null)[]} column @param {number} from @param {number} to */
function placeOfMost(column, from, to) {
  const value = most(column, from, to);
  const found = column.indexOf(value, from);
  return found === -1 || found >= to ? from : found;
}
