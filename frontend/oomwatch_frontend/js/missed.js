// What happened while there was no connection: how things stood before it broke against how they stand now. Pure.

/** @typedef {import("./wire.js").Alert} Alert */

/**
 * @typedef {object} Missed
 * @property {number} from when the last was heard; server's clock, Unix seconds
 * @property {number} to when there was a connection again
 * @property {Alert[]} fired
 * @property {Alert[]} ended one that came and went meanwhile is in both
 */

const SLACK_SECONDS = 60; // an alert bears its data's time, which is a little older than when it is told

/**
 * @param {Map<string, Alert>} before @param {Iterable<Alert>} after
 * @param {number} from @param {number} to
 * @returns {Missed | null} null: nothing that a person would have been told
 */
export function missedBetween(before, after, from, to) {
  const since = from - SLACK_SECONDS;
  const raised = [...after].filter((alert) => alert.fired_at !== null);
  const known = (/** @type {Alert} */ alert) => (before.get(alert.id)?.fired_at ?? null) !== null;
  const fired = raised.filter((alert) => !known(alert) && (alert.ended_at === null || alert.ended_at >= since));
  const ended = raised.filter(
    (alert) => alert.state === "resolved" && (known(alert) ? before.get(alert.id)?.state !== "resolved" : fired.includes(alert)),
  );
  return fired.length + ended.length === 0 ? null : { from, to, fired, ended };
}

/** Two breaks that nobody has looked at yet, as one. @param {Missed | null} first @param {Missed | null} second @returns {Missed | null} */
export function together(first, second) {
  if (first === null || second === null) return second ?? first;
  return {
    from: first.from,
    to: second.to,
    fired: latestOfEach([...first.fired, ...second.fired]),
    ended: latestOfEach([...first.ended, ...second.ended]),
  };
}

/** @param {Alert[]} alerts */
const latestOfEach = (alerts) => [...new Map(alerts.map((alert) => [alert.id, alert])).values()];
