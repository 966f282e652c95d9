// The two pages of the rules: the rules themselves, and the file that they stand in.

import { h } from "../dom.js";
import { link } from "../router.js";

/** @param {import("../i18n.js").Words} words @param {"list" | "file"} current */
export function ruleTabs(words, current) {
  const tabs = /** @type {const} */ ([["list", link("rules")], ["file", link("rules", ["file"])]]);
  const links = tabs.map(([name, href]) => h("a", { href, "aria-current": name === current ? "page" : null }, words.t(`rules.tab_${name}`)));
  return h("nav", { class: "choice sections", "aria-label": words.t("rules.tabs") }, ...links);
}
