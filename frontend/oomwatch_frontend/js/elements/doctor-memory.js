// Memory phase by phase, as bars against what a card has; of the phase that is pointed at, what it is made of.

import { MARKS, scaleOf, sharesOf } from "../doctor-bars.js";
import { h } from "../dom.js";
import { gib, gibNumber, percent } from "../format.js";
import { markIcon } from "../marks.js";
import { row, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").PhaseMemory} PhaseMemory */
/** @typedef {import("../doctorwire.js").HostMemory} HostMemory */
/** @typedef {import("../doctorwire.js").MemoryPart} MemoryPart */

/**
 * @param {Words} words @param {PhaseMemory[]} phases @param {string | null} peak the phase whose parts are shown first
 * @param {(phase: string) => void} chosen
 */
export function phaseMemory(words, phases, peak, chosen) {
  const scale = scaleOf(phases);
  const panels = new Map(phases.map((one) => [one.phase, panel(words, one)]));
  /** @type {Map<string, HTMLElement>} */
  const buttons = new Map();
  const show = (/** @type {string} */ phase) => {
    for (const [name, element] of panels) element.classList.toggle("shown", name === phase);
    for (const [name, button] of buttons) button.setAttribute("aria-pressed", String(name === phase));
    chosen(phase);
  };
  const rows = phases.map((one) => {
    const pick = () => show(one.phase);
    const label = h("span", { class: "phase-name" }, markIcon(MARKS[one.verdict]), one.label);
    const figures = h("span", { class: "figures-line" }, need(words, one), " · ", words.t(`doctor.verdict_${one.verdict}`), " · ", left(words, one));
    const trouble = one.trouble === null ? null : h("span", { class: "detail" }, one.trouble);
    const attributes = { type: "button", class: `memory-row verdict-${one.verdict}`, "aria-controls": panelId(one.phase), "data-focus": `phase-${one.phase}`, click: pick, focus: pick, mouseenter: pick };
    const button = h("button", attributes, label, memoryBar(one, scale), figures, trouble);
    buttons.set(one.phase, button);
    return button;
  });
  show(phases.some(({ phase }) => phase === peak) ? /** @type {string} */ (peak) : phases[0].phase);
  return h(
    "div",
    { class: "doctor-memory" },
    h("p", { class: "hint" }, words.t("doctor.memory_hint", { capacity: gib(words, phases[0].capacity_bytes) })),
    h("div", { class: "memory-rows" }, ...rows),
    h("div", { class: "memory-panels" }, ...panels.values()),
  );
}

/** @param {string} phase */
const panelId = (phase) => `doctor-parts-${phase}`;

/** What is expected, how sure it is, and what there is. It is decoration: the figures stand beside it. @param {import("../doctor-bars.js").Sizes} sizes @param {number} scale */
export function memoryBar(sizes, scale) {
  const { low, expected, high, capacity } = sharesOf(sizes, scale);
  const piece = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) => {
    const element = h("i", { class: name });
    element.style.left = `${100 * from}%`;
    element.style.width = `${100 * Math.max(0, to - from)}%`;
    return element;
  };
  const line = capacity === null ? null : piece("capacity", capacity, capacity);
  return h("span", { class: "memory-bar", "aria-hidden": "true" }, piece("expected", 0, expected), piece("interval", low, high), line);
}

/** @param {Words} words @param {import("../doctor-bars.js").Sizes} sizes @returns {string} "92.4 GiB (83.1 to 101.6)" */
export const need = (words, { expected_bytes, low_bytes, high_bytes }) =>
  words.t("doctor.need", { expected: gib(words, expected_bytes), low: gibNumber(words, low_bytes), high: gibNumber(words, high_bytes) });

/** @param {Words} words @param {PhaseMemory} phase */
const left = (words, { margin_bytes, capacity_bytes }) =>
  margin_bytes >= 0
    ? words.t("doctor.left", { share: percent(words, margin_bytes / capacity_bytes) })
    : words.t("doctor.lacks", { size: gib(words, -margin_bytes) });

/** @param {Words} words @param {PhaseMemory} phase */
function panel(words, phase) {
  const title = words.t("doctor.parts_of", { phase: phase.label, moment: phase.moment });
  return h("div", { class: "memory-parts", id: panelId(phase.phase) }, h("h3", {}, title), partTable(words, phase.parts));
}

/** What a size is made of, with the formula and where that is from. @param {Words} words @param {MemoryPart[]} parts */
export function partTable(words, parts) {
  const most = Math.max(1, ...parts.map(({ bytes }) => bytes));
  const rows = parts.map(({ label, bytes, formula, source }) => {
    const bar = h("i", { class: "part-bar", "aria-hidden": "true" });
    bar.style.width = `${(100 * bytes) / most}%`;
    const how = h("div", { class: "how" }, formula, h("div", { class: "muted" }, words.t("doctor.source", { source })));
    return row([h("div", { class: "part-name" }, label, bar), gib(words, bytes), how], [1]);
  });
  return table(words, [words.t("doctor.part"), words.t("doctor.size"), words.t("doctor.formula")], [1], h("tbody", {}, ...rows));
}

/** The same as numbers. @param {Words} words @param {PhaseMemory[]} phases */
export function memoryTable(words, phases) {
  const numeric = [1, 2, 3, 4, 5];
  const rows = phases.map((one) =>
    row(
      [one.label, gib(words, one.low_bytes), gib(words, one.expected_bytes), gib(words, one.high_bytes), gib(words, one.capacity_bytes), gib(words, one.margin_bytes), words.t(`doctor.verdict_${one.verdict}`)],
      numeric,
    ),
  );
  const heads = ["phase", "low", "expected", "high", "capacity", "margin", "verdict"].map((name) => words.t(`doctor.head_${name}`));
  return h("details", { class: "chart-table" }, h("summary", {}, words.t("chart.table")), table(words, heads, numeric, h("tbody", {}, ...rows)));
}

/** @param {Words} words @param {HostMemory} host */
export function hostMemory(words, host) {
  const verdict = host.verdict === null ? null : h("b", {}, markIcon(MARKS[host.verdict]), words.t(`doctor.verdict_${host.verdict}`));
  const capacity = host.capacity_bytes === null ? words.t("doctor.host_untold") : words.t("doctor.host_of", { size: gib(words, host.capacity_bytes) });
  const line = h("p", { class: "host-line" }, need(words, host), " ", h("span", { class: "muted" }, capacity), " ", verdict);
  return h("div", {}, line, h("div", { class: `memory-row still verdict-${host.verdict ?? "fits"}` }, memoryBar(host, scaleOf([host]))), partTable(words, host.parts));
}

