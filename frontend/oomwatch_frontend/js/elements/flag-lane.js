// Alerts above a timeline: a mark at the step of each, which leads to it, and a line down through the rows.

import { fill, h } from "../dom.js";
import { clockTime } from "../format.js";
import { LEVELS } from "../judge.js";
import { markIcon } from "../marks.js";
import { link } from "../router.js";

/** @typedef {import("../run-flags.js").Flag} Flag */
/** @typedef {Flag & { summary: string }} Flagged */

const MARK_PX = 28; // nearer to one another they are one

export class FlagLane {
  /** @param {import("../i18n.js").Words} words */
  constructor(words) {
    this.words = words;
    this.drawn = "";
    this.element = h("div", { class: "flag-lane", role: "group", "aria-label": words.t("run.flags") });
  }

  /** @param {Flagged[]} flags in the order of the steps @param {(step: number) => number} left px */
  draw(flags, left) {
    const places = together(flags, left);
    const state = JSON.stringify(places);
    if (state === this.drawn) return;
    this.drawn = state;
    this.element.hidden = places.length === 0;
    fill(this.element, ...places.map((place) => this.#mark(place)));
  }

  /** @param {{ px: number, worst: Flagged, count: number }} place */
  #mark({ px, worst, count }) {
    const { words } = this;
    const { kind, level } = worst;
    const when = clockTime(words, worst.at);
    const about = words.t(`run.flag_${kind}`, { when, summary: worst.summary });
    const label = count === 1 ? about : words.t("run.flag_more", { about, n: count });
    const mark = h(
      "a",
      { class: `flag flag-${kind} flag-${level}`, href: link("alerts", [], { id: worst.id }), title: label, "aria-label": label },
      markIcon(kind === "oom" ? "lost" : level),
      count === 1 ? null : h("span", {}, String(count)),
    );
    mark.style.left = `${px}px`;
    return mark;
  }
}

/** @param {Flagged[]} flags @param {(step: number) => number} left */
function together(flags, left) {
  /** @type {{ px: number, worst: Flagged, count: number }[]} */
  const places = [];
  for (const flag of flags) {
    const px = Math.round(left(flag.x));
    const last = places[places.length - 1];
    if (last === undefined || px - last.px >= MARK_PX) places.push({ px, worst: flag, count: flag.count });
    else {
      last.count += flag.count;
      if (gravity(flag) > gravity(last.worst)) last.worst = flag;
    }
  }
  return places;
}

/** @param {Flag} flag */
const gravity = ({ kind, level }) => (kind === "oom" ? LEVELS.length : LEVELS.indexOf(level));
