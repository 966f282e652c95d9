// Which alerts the reader wants to see: as the address says it, the same for the list, the timeline and the table. Pure.

/** @typedef {Record<string, string>} Filter state, severity, alert, run, node: as in the address */

export const STATES = ["all", "open", "ended"];

/**
 * @param {{ state: string, alert: string, severity: string, labels: Record<string, string> }} alert @param {Filter} filter
 * @returns {boolean}
 */
export function passes(alert, filter) {
  const ended = alert.state === "resolved";
  if (filter.state === "open" && ended) return false;
  if (filter.state === "ended" && !ended) return false;
  if (filter.severity && alert.severity !== filter.severity) return false;
  if (filter.alert && alert.alert !== filter.alert) return false;
  return ["run", "node"].every((label) => !filter[label] || alert.labels[label] === filter[label]);
}

/** Whether anything is left out. @param {Filter} filter */
export const isFiltered = (filter) => ["severity", "alert", "run", "node"].some((name) => filter[name]) || STATES.slice(1).includes(filter.state ?? "");
