// Which alerts are shown, and how: as a list, on a timeline or as a table. All of it is in the address.

import { Part, h } from "../dom.js";
import { STATES } from "../alertfilter.js";
import { link, parseRoute } from "../router.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../alertfilter.js").Filter} Filter */

const SEVERITIES = ["critical", "warning", "info"];
const SHOWN = /** @type {const} */ (["list", "timeline", "table"]);

export class AlertFilters {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.part = new Part("div", { class: "toolbar" });
    this.element = this.part.element;
  }

  /** @param {Filter} query all that the address says */
  draw(query) {
    const { store, words } = this.app;
    const { id: _id, ...filter } = query;
    const rules = [...new Set([...store.rules, ...store.alerts.values()].map(({ alert }) => alert))].sort();
    const [runs, nodes] = [[...store.runs.keys()].sort(), [...store.nodes.keys()].sort()];
    this.part.draw([filter, rules, runs, nodes], () => [
      this.#choice("show", words.t("alerts.show"), SHOWN, filter, (name) => words.t(`alerts.show_${name}`)),
      this.#choice("state", words.t("alerts.filter"), STATES, filter, (name) => words.t(`alerts.state_${name}`)),
      this.#select(words.t("alerts.any_severity"), SEVERITIES, filter, "severity", (name) => words.t(`severity.${name}`)),
      this.#select(words.t("alerts.any_rule"), rules, filter, "alert"),
      this.#select(words.t("alerts.any_run"), runs, filter, "run"),
      this.#select(words.t("alerts.any_node"), nodes, filter, "node"),
    ]);
  }

  /** @param {string} key of the address; its first value is the usual one @param {string} label @param {readonly string[]} values @param {Filter} filter @param {(name: string) => string} written */
  #choice(key, label, values, filter, written) {
    const current = filter[key] ?? values[0];
    const links = values.map((value, index) =>
      h(
        "a",
        { href: link("alerts", [], { ...filter, [key]: index === 0 ? "" : value }), "aria-current": value === current ? "true" : null, "data-focus": `${key}-${value}` },
        written(value),
      ),
    );
    return h("div", { class: "choice", role: "group", "aria-label": label }, ...links);
  }

  /** @param {string} label what it says of all @param {string[]} names @param {Filter} filter @param {string} key @param {(name: string) => string} [written] */
  #select(label, names, filter, key, written = (name) => name) {
    const chosen = filter[key] ?? "";
    const known = chosen === "" || names.includes(chosen) ? names : [...names, chosen];
    const change = (/** @type {Event} */ event) => {
      const { value } = /** @type {HTMLSelectElement} */ (event.target);
      const { id: _id, ...now } = parseRoute(location.hash).query; // it may have changed since this was drawn
      location.hash = link("alerts", [], { ...now, [key]: value });
    };
    const options = known.map((name) => h("option", { value: name, selected: name === chosen }, written(name)));
    return h("select", { "aria-label": label, "data-focus": key, change }, h("option", { value: "" }, label), ...options);
  }
}
