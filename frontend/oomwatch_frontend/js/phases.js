// The phases of a run: spans told by the server, put together, and how each is drawn. Pure.

/** @typedef {import("./wire.js").PhaseSpan} PhaseSpan */

const SPANS_KEPT = 4000; // as many as the server keeps

/**
 * How each phase is drawn, in the order in which they run. The colour alone tells none apart: each has a pattern too, and
 * its name where there is room. `colour` is one of the style sheet, `pattern` as plotly names it, `family` of swatches.
 * @type {Record<string, { colour: string, pattern: string }>}
 */
export const PHASES = {
  rollout: { colour: "phase-rollout", pattern: "" },
  reward: { colour: "phase-reward", pattern: "." },
  old_log_prob: { colour: "phase-log-prob", pattern: "-" },
  ref: { colour: "phase-log-prob", pattern: "|" },
  values: { colour: "phase-values", pattern: "-" },
  adv: { colour: "phase-values", pattern: "." },
  update_critic: { colour: "phase-update", pattern: "x" },
  update_actor: { colour: "phase-update", pattern: "/" },
  save_checkpoint: { colour: "phase-save", pattern: "|" },
  update_weights: { colour: "phase-weights", pattern: "\\" },
  validation: { colour: "phase-rollout", pattern: "+" },
  idle: { colour: "phase-idle", pattern: "" },
};

/** How to draw a phase, also one that a later server names. @param {string} phase */
export const lookOf = (phase) => PHASES[phase] ?? { colour: "phase-idle", pattern: "x" };

/**
 * What was told, with what is told now: from the first new span's start on the new ones hold.
 * @param {PhaseSpan[]} told @param {PhaseSpan[]} news oldest first; none of them changes nothing @returns {PhaseSpan[]}
 */
export function mergePhases(told, news) {
  if (news.length === 0) return told;
  const from = news[0].start_at;
  const before = told
    .filter((span) => span.start_at < from)
    .map((span) => (span.end_at === null || span.end_at > from ? { ...span, end_at: from } : span));
  return [...before, ...news].slice(-SPANS_KEPT);
}

/** Spans within a time, cut at its ends; one that lasts ends now. @param {PhaseSpan[]} spans @param {number} from @param {number} to */
export function phasesBetween(spans, from, to) {
  return spans
    .map((span) => ({ ...span, start_at: Math.max(from, span.start_at), end_at: Math.min(to, span.end_at ?? to) }))
    .filter((span) => span.end_at > span.start_at);
}
