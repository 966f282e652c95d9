// An address that names no page: said, with the pages that there are.

import { h } from "../dom.js";
import { absent } from "../elements/absent.js";
import { link } from "../router.js";

const PAGES = ["fleet", "runs", "alerts", "rules", "doctor"];

/** @type {import("../main.js").MakeView} */
export function nowhereView(root, { words }, { view, args }) {
  const ways = PAGES.map((name) => /** @type {[string, string]} */ ([words.t(`nav.${name}`), link(name)]));
  const address = `#/${[view, ...args].join("/")}`;
  root.append(h("div", { class: "detail-page" }, absent(words.t("page.nowhere", { address }), words.t("page.nowhere_next"), ways)));
  return { update: () => {}, close: () => {} };
}
