// A run beside another: which one, and in which settings they differ.

import { h } from "../dom.js";
import { nothing, row, table } from "../parts.js";
import { differences } from "../run-differences.js";
import { link, parseRoute } from "../router.js";
import { valueOf } from "./run-facts.js";
import { UNKNOWN } from "../format.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Run} Run */

/**
 * A list of the other runs; choosing one leads to the two beside one another.
 * @param {Words} words @param {string} name @param {string[]} others those seen last come first @param {string} chosen "": none
 */
export function runChoice(words, name, others, chosen) {
  const options = ["", ...others].map((other) =>
    h("option", { value: other, selected: other === chosen }, other === "" ? words.t("run.compare_none") : other),
  );
  const select = h(
    "select",
    {
      change: (/** @type {Event} */ event) => {
        const { query } = parseRoute(location.hash);
        location.hash = link("run", [name], { ...query, with: /** @type {HTMLSelectElement} */ (event.target).value });
      },
    },
    ...options,
  );
  return h("label", { class: "run-choice" }, h("span", {}, words.t("run.compare")), select);
}

/** @param {Words} words @param {Run} run @param {Run} other */
export function differenceTable(words, run, other) {
  const [known, otherKnown] = [run, other].map(({ config }) => Object.keys(config).length > 0);
  if (!known || !otherKnown) return nothing(words.t("run.differ_unknown", { run: known ? other.run : run.run }));
  const found = differences(run.config, other.config);
  if (found.length === 0) return nothing(words.t("run.differ_none"));
  const rows = found.map(({ key, a, b }) =>
    row([h("code", {}, key), ...[a, b].map((value) => (value === null ? UNKNOWN : valueOf(value)))], [1, 2]),
  );
  return h(
    "div",
    { class: "config" },
    table(words, [words.t("config.key"), run.run, other.run], [1, 2], h("tbody", {}, ...rows)),
  );
}
