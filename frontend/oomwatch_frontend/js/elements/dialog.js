// A form in a window of its own: Escape closes it, the focus stays inside and goes back to where it came from.

import { ApiError } from "../api.js";
import { h } from "../dom.js";
import { Problem } from "./problem.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../dom.js").Child} Child */

export class Dialog {
  /**
   * @param {Words} words @param {string} title
   * @param {() => Promise<void>} submit what goes wrong in it as an ApiError is shown; nothing else may
   */
  constructor(words, title, submit) {
    this.words = words;
    this.problem = new Problem();
    this.action = h("button", { type: "submit", class: "primary" });
    this.content = h("div", { class: "dialog-content" });
    this.cancel = h("button", { type: "button", click: () => this.close() }, words.t("dialog.cancel"));
    const form = h(
      "form",
      { novalidate: true, submit: (/** @type {Event} */ event) => this.#submit(event, submit) },
      h("h2", { id: "dialog-title" }, title),
      this.content,
      this.problem.element,
      h("div", { class: "dialog-foot" }, this.cancel, this.action),
    );
    this.element = h("dialog", { "aria-labelledby": "dialog-title", close: () => this.#leave() }, form);
    this.busy = false;
    this.leaving = new AbortController(); // aborted when it closes
  }

  /** @param {HTMLElement} first what gets the focus */
  open(first) {
    this.opener = document.activeElement;
    this.place = this.opener?.parentElement ?? null;
    document.body.append(this.element);
    addEventListener("hashchange", () => this.close(), { signal: this.leaving.signal });
    this.element.showModal();
    first.focus();
  }

  close() {
    this.element.close();
  }

  #leave() {
    this.leaving.abort();
    this.element.remove();
    // The button that opened it may be gone: what was done with it is done. Then to what stands there now.
    const beside = this.place?.isConnected ? this.place.querySelector("button") : null;
    const next = this.opener?.isConnected ? this.opener : (beside ?? document.getElementById("view"));
    if (next instanceof HTMLElement) next.focus();
  }

  /** @param {Event} event @param {() => Promise<void>} submit */
  async #submit(event, submit) {
    event.preventDefault();
    if (this.busy) return;
    this.#setBusy(true);
    this.problem.clear();
    try {
      await submit();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.problem.show(this.words, error);
    } finally {
      this.#setBusy(false);
    }
  }

  /** @param {boolean} busy */
  #setBusy(busy) {
    this.busy = busy;
    this.action.setAttribute("aria-disabled", String(busy)); // "disabled" would lose the focus
  }
}

/** One in which there is nothing to submit: its one button closes it. @param {Words} words @param {string} title */
export function readOnlyDialog(words, title) {
  /** @type {Dialog} */
  const dialog = new Dialog(words, title, async () => dialog.close());
  dialog.cancel.remove();
  dialog.action.textContent = words.t("dialog.close");
  return dialog;
}

/** A labelled field. @param {string} label @param {HTMLElement} input @param {string} [hint] */
export function field(label, input, hint = "") {
  const below = hint === "" ? null : h("span", { class: "hint" }, hint);
  return h("label", { class: "field" }, h("span", {}, label), input, below);
}
