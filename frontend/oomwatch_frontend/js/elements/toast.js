// One sentence at the foot of the page after something was done, with a way to undo it. It stays while it is pointed at or
// holds the focus.

import { ApiError } from "../api.js";
import { fill, h } from "../dom.js";
import { remedyOf } from "./problem.js";

/** @typedef {import("../i18n.js").Words} Words */

const SHOWN_MS = 12_000;

/** @type {ReturnType<typeof setTimeout> | undefined} */
let leaving;

/** @param {Words} words @param {string} sentence @param {() => Promise<unknown>} [undo] */
export function toast(words, sentence, undo) {
  const host = /** @type {HTMLElement} */ (document.getElementById("toasts"));
  const said = h("span", {}, sentence);
  const close = () => fill(host);
  const stay = () => clearTimeout(leaving);
  const leave = () => {
    clearTimeout(leaving);
    leaving = setTimeout(close, SHOWN_MS);
  };
  const takeBack = undo === undefined ? null : h("button", { type: "button" }, words.t("toast.undo"));
  takeBack?.addEventListener("click", async () => {
    takeBack.hidden = true;
    said.textContent = await outcome(words, /** @type {() => Promise<unknown>} */ (undo));
    leave();
  });
  const dismiss = h(
    "button",
    { type: "button", class: "quiet", "aria-label": words.t("toast.close"), click: close },
    "×",
  );
  const box = h(
    "div",
    { class: "toast", mouseenter: stay, mouseleave: leave, focusin: stay, focusout: leave },
    said,
    takeBack,
    dismiss,
  );
  fill(host, box);
  leave();
}

/** @param {Words} words @param {() => Promise<unknown>} undo */
async function outcome(words, undo) {
  try {
    await undo();
    return words.t("toast.undone");
  } catch (error) {
    if (error instanceof ApiError) return `${remedyOf(words, error)} ${error.message}`;
    throw error;
  }
}
