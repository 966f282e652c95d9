// In what two runs differ. Pure.

/** @typedef {Record<string, string | number | boolean>} Config */
/** @typedef {import("./doctorwire.js").WorkingLine} WorkingLine */

/**
 * The settings in which two runs differ.
 * @param {Config} a @param {Config} b @returns {{ key: string, a: string | number | boolean | null, b: string | number | boolean | null }[]} null: not told
 */
export function differences(a, b) {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort();
  return keys
    .map((key) => ({ key, a: a[key] ?? null, b: b[key] ?? null }))
    .filter((one) => one.a !== one.b);
}

/**
 * Each number of a run beside the same of another; those that the other alone has come last.
 * @param {WorkingLine[]} lines @param {WorkingLine[]} others @returns {{ line: WorkingLine, own: number | null, other: number | null }[]} null: not known, or not there
 */
export function besideOne(lines, others) {
  const byName = new Map(others.map((one) => [nameOf(one), one.value]));
  const known = new Set(lines.map(nameOf));
  const own = lines.map((line) => ({ line, own: line.value, other: byName.get(nameOf(line)) ?? null }));
  const foreign = others
    .filter((one) => !known.has(nameOf(one)))
    .map((one) => ({ line: { ...one, formula: "", assumed: [], missing: [] }, own: null, other: one.value }));
  return [...own, ...foreign];
}

/** @param {WorkingLine} line */
const nameOf = ({ name, phase }) => `${phase ?? ""} ${name}`;
