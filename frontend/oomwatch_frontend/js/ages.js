// Keeps every <time data-since> on the page current: how long ago as its text, the moment itself on hover.

import { setText } from "./dom.js";
import { age, moment } from "./format.js";
import { isUtc } from "./zone.js";

/** @param {ParentNode} root @param {import("./i18n.js").Words} words @param {number} now server's clock, Unix seconds */
export function refreshAges(root, words, now) {
  for (const element of root.querySelectorAll("time[data-since]")) {
    const at = Number(element.getAttribute("data-since"));
    setText(element, age(words, now - at));
    const told = `${at} ${words.locale} ${isUtc()}`; // to write out a moment is dear, and a thousand may be shown
    if (element.getAttribute("data-told") === told) continue;
    element.setAttribute("data-told", told);
    element.setAttribute("title", moment(words, at));
  }
}
