// Which steps of a run are in view, and whether as a table: as the address says it. Pure.

/** @typedef {{ zoom: [number, number] | null, window: number | null, isTable: boolean }} Look zoom: between two steps; window: the last so many steps; both null: all */

/** What an address asks for; what makes no sense gives the usual. @param {Record<string, string>} query @returns {Look} */
export function readLook({ steps = "", view }) {
  const [, from, to] = (/^(\d+)-(\d+)$/.exec(steps) ?? []).map(Number);
  const last = /^[1-9]\d*$/.test(steps) ? Number(steps) : null;
  return { zoom: from <= to ? [from - 0.5, to + 0.5] : null, window: last, isTable: view === "table" };
}

/** For the address: "50" is the last fifty steps, "12-34" what was dragged across. @param {Look} look @returns {Record<string, string>} */
export function writeLook({ zoom, window, isTable }) {
  return { steps: zoom === null ? String(window ?? "") : wholeSteps(zoom), view: isTable ? "table" : "" };
}

/** @param {[number, number]} zoom */
function wholeSteps([low, high]) {
  const first = Math.max(0, Math.ceil(low));
  return `${first}-${Math.max(first, Math.floor(high))}`;
}
