// Which alerts a person at this browser is to be told of at once: new ones that fire, that nobody takes care of and nobody
// has muted. Pure.

/** @typedef {import("./wire.js").Alert} Alert */

const GRAVITY = { info: 0, warning: 1, critical: 2 };
const TOLD_KEPT = 500;

/** @param {Alert} alert */
const isWorthAWord = (alert) =>
  alert.state === "firing" && alert.severity !== "info" && alert.muted.length === 0 && alert.acknowledged === null;

/** One that becomes graver is new again. @param {Alert} alert */
export const nameOf = ({ id, severity }) => `${id}/${severity}`;

export class News {
  constructor() {
    /** How grave each alert was that is known of; null: nothing was looked at yet. @type {Map<string, number> | null} */
    this.known = null;
  }

  /** What is new since the last time. What stood there at the first look is no news. @param {Iterable<Alert>} alerts @returns {Alert[]} */
  of(alerts) {
    const worthy = [...alerts].filter(isWorthAWord);
    const before = this.known;
    this.known = new Map(worthy.map(({ id, severity }) => [id, Math.max(GRAVITY[severity], before?.get(id) ?? 0)]));
    return before === null ? [] : worthy.filter(({ id, severity }) => GRAVITY[severity] > (before.get(id) ?? 0));
  }
}

/**
 * Of some names those that no tab of this browser has told of, and what all have told of then.
 * @param {string[]} told @param {string[]} names @returns {{ mine: string[], told: string[] }}
 */
export function claim(told, names) {
  const mine = names.filter((name) => !told.includes(name));
  return { mine, told: [...told, ...mine].slice(-TOLD_KEPT) };
}
