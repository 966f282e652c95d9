// The doctor's report, section by section; one that has nothing to say is not there.

import { Part, h } from "../dom.js";
import { section } from "../parts.js";
import { adviceList, largestTable, planBox } from "./doctor-advice.js";
import { hostMemory, memoryTable, phaseMemory } from "./doctor-memory.js";
import { problemList, shadowedList, unknownList } from "./doctor-problems.js";
import { DoctorSettings } from "./doctor-settings.js";
import { doctorVerdict } from "./doctor-verdict.js";
import { workingTable } from "./doctor-working.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").Report} Report */
/** @typedef {import("./doctor-problems.js").Ways} Ways */

const MAIN = ["problems", "plan", "memory", "advice", "host"];
const BESIDE = ["shadowed", "unknown", "largest", "working"];

export class DoctorReport {
  /** @param {Words} words @param {Ways} ways @param {{ all: boolean, wantAll: (all: boolean) => void, download: () => void }} wishes */
  constructor(words, ways, { all, wantAll, download }) {
    this.words = words;
    this.ways = ways;
    /** @type {Report | null} */
    this.shown = null;
    this.phase = ""; // whose parts a person looks at
    this.verdict = new Part("div", { "aria-live": "polite" });
    /** @type {Map<string, Part>} */
    this.parts = new Map([...MAIN, ...BESIDE].map((name) => [name, new Part("div", { class: `doctor-${name}-part` })]));
    this.settings = new DoctorSettings(words, all, wantAll);
    const columnOf = (/** @type {string[]} */ names) => names.map((name) => /** @type {Part} */ (this.parts.get(name)).element);
    const save = h("button", { type: "button", click: download }, words.t("doctor.download"));
    this.element = h(
      "div",
      { class: "doctor-report", hidden: true },
      this.verdict.element,
      h("div", { class: "doctor-columns" }, h("div", {}, ...columnOf(MAIN)), h("div", {}, ...columnOf(BESIDE))),
      section(words.t("doctor.settings"), this.settings.element),
      h("p", {}, save),
    );
  }

  /** Whether the text has changed since. @param {boolean} outdated */
  mark(outdated) {
    this.element.classList.toggle("outdated", outdated);
    this.element.setAttribute("aria-busy", String(outdated));
  }

  /** @param {Report} report */
  show(report) {
    const { words } = this;
    this.shown = report;
    this.element.hidden = false;
    const { verdict, headline, missing, model, card, version } = report;
    this.verdict.draw([verdict, headline, missing, model, card, version, report.derived.gpus], () => [doctorVerdict(words, report)]);
    for (const [name, part] of this.parts) {
      part.draw(this.#stateOf(name, report), () => {
        const content = this.#contentOf(name, report);
        return content === null ? [] : [section(words.t(`doctor.title_${name}`), ...content)];
      });
    }
    this.settings.show(report.settings);
  }

  /** All that a section depends on. @param {string} name @param {Report} report */
  #stateOf(name, report) {
    return name === "plan" ? report.plan : name === "memory" ? [report.memory, report.assumed] : /** @type {any} */ (report)[name];
  }

  /** @param {string} name @param {Report} report @returns {import("../dom.js").Child[] | null} null: nothing to say */
  #contentOf(name, report) {
    const { words, ways } = this;
    const some = (/** @type {HTMLElement | null} */ element) => (element === null ? null : [element]);
    if (name === "problems") return some(problemList(words, report.problems, ways));
    if (name === "shadowed") return some(shadowedList(words, report, ways));
    if (name === "unknown") return some(unknownList(words, report, ways));
    if (name === "plan") return report.plan === null ? null : [planBox(words, report.plan, ways)];
    if (name === "advice") return some(adviceList(words, report, ways));
    if (name === "memory") return report.memory.length === 0 ? null : this.#memory(report);
    if (name === "host") return report.host === null ? null : [hostMemory(words, report.host)];
    if (name === "largest") return report.largest.length === 0 ? null : [largestTable(words, report)];
    return report.working.length === 0 ? null : [workingTable(words, report.working)];
  }

  /** @param {Report} report */
  #memory(report) {
    const { words } = this;
    const known = report.memory.some(({ phase }) => phase === this.phase);
    const bars = phaseMemory(words, report.memory, known ? this.phase : report.peak_phase, (phase) => {
      this.phase = phase;
    });
    const assumed = report.assumed.map((text) => h("p", { class: "hint" }, text));
    return [bars, ...assumed, memoryTable(words, report.memory)];
  }
}
