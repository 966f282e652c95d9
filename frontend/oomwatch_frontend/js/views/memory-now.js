// Where the memory of a GPU is now: a bar of its parts, and the same as a table.

import { h } from "../dom.js";
import { gib, percent } from "../format.js";
import { PARTS, partsNow } from "../memory-parts.js";
import { PATTERN_CLASS, aged, nothing, prose, row, table } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../store.js").GpuView} GpuView */
/** @typedef {import("../memory-parts.js").PartName} PartName */

/**
 * @param {Words} words @param {GpuView} card
 * @param {import("../wire.js").Sample | null} sample the last that listed processes, all of one moment; or the latest there is
 * @returns {import("../dom.js").Child[]}
 */
export function memoryNow(words, card, sample) {
  const told = sample?.gpus.find((one) => one.gpu === card.facts.gpu);
  if (sample === null || told === undefined || told.used_bytes === null) return [nothing(words.t("parts.none"))];
  const probes = sample.torch.filter((probe) => probe.gpu === card.facts.gpu);
  const { whole, earlier, parts } = partsNow(told.used_bytes, told.processes, probes);
  const usable = Math.max(card.usableBytes, whole);
  const rows = parts.map(({ name, bytes }) =>
    row([named(words, name), gib(words, bytes), percent(words, bytes / usable), why(words, name)], [1, 2]),
  );
  rows.push(row([h("b", {}, words.t("parts.whole")), h("b", {}, gib(words, whole)), percent(words, whole / usable), ""], [1, 2]));
  const heads = [words.t("parts.part"), words.t("processes.memory"), words.t("parts.share"), words.t("parts.what")];
  return [
    stackBar(words, parts, usable),
    table(words, heads, [1, 2], h("tbody", {}, ...rows)),
    h("p", { class: "hint" }, aged(words, "processes.read", sample.at), earlier ? ` ${words.t("parts.earlier")}` : null),
  ];
}

/** @param {Words} words @param {PartName} name */
const why = (words, name) => h("span", { class: "hint" }, prose(words, words.t(`parts.${name}_why`)));

/** @param {Words} words @param {PartName} name */
function named(words, name) {
  return h("span", { class: "name" }, swatch(name), words.t(`parts.${name}`));
}

/** @param {PartName} name */
function swatch(name) {
  const { colour, pattern } = PARTS[name];
  const element = h("i", { class: `swatch phase ${PATTERN_CLASS[pattern] ?? ""}` });
  element.style.setProperty("--ink", `var(--${colour})`);
  return element;
}

/** @param {Words} words @param {{ name: PartName, bytes: number }[]} parts @param {number} usable */
function stackBar(words, parts, usable) {
  const pieces = parts.map(({ name, bytes }) => {
    const piece = swatch(name);
    piece.title = `${words.t(`parts.${name}`)} ${gib(words, bytes)}`;
    piece.style.width = `${(bytes / usable) * 100}%`;
    return piece;
  });
  return h("div", { class: "stack-bar", "aria-hidden": "true" }, ...pieces);
}
