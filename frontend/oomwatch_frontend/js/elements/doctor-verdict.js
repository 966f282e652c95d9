// What the doctor says in one sentence, and of what: the configuration as it was read, its model and its cards.

import { MARKS } from "../doctor-bars.js";
import { h } from "../dom.js";
import { gib } from "../format.js";
import { markIcon } from "../marks.js";
import { prose } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../doctorwire.js").Report} Report */

/** @param {Words} words @param {Report} report */
export function doctorVerdict(words, report) {
  const mark = MARKS[report.verdict];
  const sentence = report.verdict === "unknown" ? unknown(words, report) : report.headline;
  return h(
    "div",
    { class: `doctor-verdict verdict-${report.verdict}` },
    h("p", { class: "said" }, markIcon(mark, words.t(`doctor.verdict_${report.verdict}`)), prose(words, sentence)),
    h("p", { class: "muted" }, about(words, report)),
    ...report.missing.filter(() => report.verdict !== "unknown").map((one) => h("p", {}, missing(words, one))),
  );
}

/** What is missing before it can be told whether it fits. @param {Words} words @param {Report} report */
const unknown = (words, report) => [words.t("doctor.not_refused"), ...report.missing.map((one) => missing(words, one))].join(" ");

/** As it is told on the page, where there are fields for it. @param {Words} words @param {Report["missing"][number]} one */
const missing = (words, { what, message }) => (what === "phases" ? message : words.t(`doctor.missing_${what}`));

/** "8 × H100 80GB (79.1 GiB usable)". @param {Words} words @param {NonNullable<Report["card"]>} card @param {unknown} gpus */
const cardOf = (words, card, gpus) =>
  words.t("text.noted", {
    text: typeof gpus === "number" ? `${gpus} × ${card.name}` : card.name,
    note: words.t("doctor.usable", { size: gib(words, card.usable_bytes) }),
  });

/** @param {Words} words @param {Report} report */
function about(words, { kind, version, strategy, model, card, derived }) {
  const size = (/** @type {number} */ count) => words.t("doctor.parameters", { count: words.decimal1.format(count / 1e9) });
  const parts = [
    words.t(`doctor.kind_${kind}`),
    words.t(`doctor.version_${version.how}`, { version: version.value }),
    strategy,
    model === null ? null : words.t("text.noted", { text: model.name, note: size(model.parameters) }),
    card === null ? null : cardOf(words, card, derived.gpus),
  ];
  return parts.filter((part) => part !== null).join(" · ");
}
