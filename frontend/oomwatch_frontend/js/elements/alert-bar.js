// One bar of the timeline of alerts: how it looks, where it is and what it says. Its mark tells how grave it is, its outline
// what became of it: dashed while it waits, open at the right while it goes on, hatched where nobody is sent word of it.

import { Part, h } from "../dom.js";
import { clockTime, duration, moment } from "../format.js";
import { markIcon, signIcon } from "../marks.js";
import { link } from "../router.js";
import { toldValue } from "./alert-figures.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../alertline.js").Bar} Bar */

const PRESSED_PX = 24; // as wide as a finger needs, however short it was

/** What became of a bar, as a key of the catalogue. @param {Bar} bar */
export const standingOf = ({ firedAt, to, muted, acknowledged }) =>
  to !== null ? "ended" : firedAt === null ? "pending" : muted ? "muted" : acknowledged ? "acknowledged" : "firing";

/** What a bar is of, in short. @param {Words} words @param {Bar} bar */
export function barTitle(words, { spans }) {
  const [worst] = spans;
  const name = words.t("text.labelled", { label: words.t(`severity.${worst.severity}`), text: worst.summary });
  return spans.length === 1 ? name : words.t("alertline.of_many", { n: spans.length, worst: name });
}

/** All that is known of a bar, in lines. @param {Words} words @param {Bar} bar @param {number} now @returns {string[]} */
export function barLines(words, bar, now) {
  const [worst] = bar.spans;
  const end = bar.to ?? now;
  const times = [
    words.t("alertline.from", { time: moment(words, bar.from) }),
    bar.firedAt === null || bar.firedAt - bar.from < 1 ? "" : words.t("alertline.fired", { time: clockTime(words, bar.firedAt) }),
    bar.to === null ? "" : words.t("alertline.to", { time: moment(words, bar.to) }),
    words.t("alertline.lasted", { duration: duration(words, Math.max(0, end - bar.from)) }),
  ];
  const value = toldValue(words, { ...worst, facts: {} });
  const states = [
    words.t(`alertline.is_${standingOf(bar)}`),
    bar.happened ? words.t("outcome.happened") : worst.outcome === null ? "" : words.t(`outcome.${worst.outcome}`),
    value === null ? "" : words.t("alertline.value", { value }),
    worst.acknowledged_by === null ? "" : words.t("ack.tag", { by: worst.acknowledged_by }),
  ];
  return [barTitle(words, bar), told(times), told(states)];
}

/** @param {string[]} parts */
const told = (parts) => parts.filter((part) => part !== "").join(" · ");

export class AlertBar {
  /** @param {Words} words */
  constructor(words) {
    this.words = words;
    this.inside = new Part("span", { class: "alert-bar-inside" });
    this.element = h("a", { tabindex: -1, href: "#" }, this.inside.element);
    /** @type {Bar | null} */
    this.bar = null;
    this.now = 0;
    this.element.addEventListener("focus", () => this.label(true));
    this.element.addEventListener("blur", () => this.label(false));
  }

  /** In full for the one that has the focus: to write the times of a thousand takes a second. @param {boolean} inFull */
  label(inFull) {
    if (this.bar === null) return;
    const { element, words } = this;
    const label = inFull ? barLines(words, this.bar, this.now).join(". ") : barTitle(words, this.bar);
    if (element.getAttribute("aria-label") !== label) element.setAttribute("aria-label", label);
  }

  /** @param {Bar} bar @param {[number, number]} ends @param {number} now @param {import("../alertfilter.js").Filter} query */
  draw(bar, ends, now, query) {
    this.bar = bar;
    const { element, words } = this;
    const [worst] = bar.spans;
    const standing = standingOf(bar);
    const open = Math.min(bar.to ?? now, ends[1]);
    const left = share(bar.from, ends);
    element.className = `alert-bar alert-bar-${bar.level} alert-bar-${standing}${bar.from < ends[0] ? " alert-bar-before" : ""}`;
    element.style.left = `min(${left}%, 100% - ${PRESSED_PX}px)`;
    element.style.width = `max(${share(open, ends) - left}%, ${PRESSED_PX}px)`;
    element.style.setProperty("--wait", `${waited(bar, Math.max(bar.from, ends[0]), open)}%`);
    const { show: _show, ...rest } = query;
    element.setAttribute("href", link("alerts", [], { ...rest, id: worst.id }));
    this.now = now;
    this.label(document.activeElement === element);
    const count = bar.spans.length;
    this.inside.draw([bar.level, standing, count, bar.happened], () => [
      h("i", { class: "wait" }),
      markIcon(bar.happened ? "lost" : bar.level),
      standing === "muted" ? signIcon("muted") : standing === "acknowledged" ? signIcon("acknowledged") : null,
      count === 1 ? null : h("span", {}, `×${words.integer.format(count)}`),
    ]);
  }
}

/** @param {number} at @param {[number, number]} ends @returns {number} percent */
const share = (at, [from, to]) => Math.min(100, Math.max(0, ((at - from) / (to - from)) * 100));

/** How much of what is shown it waited, in percent. @param {Bar} bar @param {number} from @param {number} to */
const waited = ({ firedAt }, from, to) => (firedAt === null ? 100 : share(firedAt, [from, Math.max(to, from + 1)]));
