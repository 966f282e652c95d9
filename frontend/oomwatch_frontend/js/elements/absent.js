// What an address names and nobody knows: said in place of the view, with what to do next.

import { h } from "../dom.js";

/** @typedef {import("../i18n.js").Words} Words */

/**
 * @param {string} sentence what is not there @param {string} next what to do about it
 * @param {[string, string][]} ways name and address of where to go on
 */
export function absent(sentence, next, ways) {
  const links = ways.map(([name, href]) => h("li", {}, h("a", { href }, name)));
  const list = links.length === 0 ? null : h("ul", { class: "ways" }, ...links);
  return h("div", { class: "absent", role: "status" }, h("p", {}, h("b", {}, sentence)), h("p", {}, next), list);
}
