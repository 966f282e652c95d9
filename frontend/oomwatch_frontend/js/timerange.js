// Which stretch of time a page shows: the last so many seconds, which go on, or one that stands still. Pure.

/** @typedef {{ live: true, span: number } | { live: false, from: number, to: number }} Range Unix seconds */

export const SPANS = [600, 3600, 21_600, 86_400, 604_800]; // seconds: 10 min, 1 h, 6 h, 24 h, 7 d
const LEAST = 10; // seconds: some readings
const MOST = 31 * 86_400;
const NEARLY = 0.02; // of a span from now: whoever goes back and forth is where they were
const WHOLE = 1e12; // as wire.UnixSeconds

/** @param {string | undefined} text */
const secondsOf = (text) => (text === undefined || text.trim() === "" ? NaN : Number(text));

/** @param {number} span */
const allowed = (span) => Math.min(MOST, Math.max(LEAST, Math.round(span)));

/** What an address asks for; what makes no sense gives the usual. @param {Record<string, string>} query @returns {Range} */
export function readRange(query) {
  const [from, to, span] = [query.from, query.to, query.span].map(secondsOf);
  if (from >= 0 && to <= WHOLE && to - from >= LEAST && to - from <= MOST) return { live: false, from, to };
  return { live: true, span: span > 0 ? allowed(span) : SPANS[0] };
}

/** For the address. @param {Range} range @returns {Record<string, string>} */
export function writeRange(range) {
  return range.live ? { span: String(range.span) } : { from: String(range.from), to: String(range.to) };
}

const DAY = 86_400;

/** The usual span that holds what began so long ago, a day at most; a day where there is nothing. @param {number | null} seconds */
export const holding = (seconds) => Math.min(DAY, SPANS.find((span) => seconds !== null && span >= seconds) ?? DAY);

/** @param {Range} range @param {number} now @returns {[number, number]} */
export const endsOf = (range, now) => (range.live ? [now - range.span, now] : [range.from, range.to]);

/** @param {Range} range */
export const spanOf = (range) => (range.live ? range.span : range.to - range.from);

/**
 * A stretch that a person picked. It ends now at the latest, and is wide enough to see something.
 * @param {number} from @param {number} to @param {number} now @returns {Range}
 */
export function between(from, to, now) {
  const end = Math.min(Math.ceil(to), Math.ceil(now));
  const span = allowed(end - Math.floor(from));
  const start = Math.max(0, end - span);
  return { live: false, from: start, to: start + span };
}

/**
 * Closer (a factor below 1) or further off: about the middle, and what goes on stays with now.
 * @param {Range} range @param {number} factor @param {number} now @returns {Range}
 */
export function zoomed(range, factor, now) {
  if (range.live) return { live: true, span: allowed(range.span * factor) };
  const middle = (range.from + range.to) / 2;
  const half = allowed(spanOf(range) * factor) / 2;
  return between(middle - half, middle + half, now);
}

/**
 * Earlier (a share below 0) or later by a share of its width; what reaches now goes on with it.
 * @param {Range} range @param {number} share @param {number} now @returns {Range}
 */
export function panned(range, share, now) {
  const span = spanOf(range);
  const to = Math.round(endsOf(range, now)[1] + share * span);
  return to >= now - span * NEARLY ? { live: true, span: allowed(span) } : between(to - span, to, now);
}
