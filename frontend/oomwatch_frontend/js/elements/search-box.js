// The search in the top bar: "/" goes there, arrow keys choose, Enter opens.

import { fill, h } from "../dom.js";
import { ask } from "../api.js";
import { entriesOf, partOfUuid, search } from "../search.js";
import { gpuKey } from "../store.js";
import { readGpus } from "../wire.js";

/** @typedef {import("../store.js").Store} Store */
/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../search.js").Entry} Entry */

const LIST = "search-list";
const UUIDS_MAX = 20; // a few more than are listed, which have to have the other words too

export class SearchBox {
  /** @param {Store} store @param {() => Words} words @param {() => boolean} hasKeys whether single keys are listened for */
  constructor(store, words, hasKeys) {
    this.store = store;
    this.words = words;
    /** What can be found, gathered when the search begins and kept until it ends. @type {Entry[] | null} */
    this.entries = null;
    /** Those that this search has asked for: no view shows them but that of one GPU. @type {import("../search.js").Uuids} */
    this.uuids = new Map();
    /** What was asked for last, and whether its answer is yet to come. */
    this.part = "";
    this.isAsking = false;
    /** @type {Entry[]} */
    this.found = [];
    this.chosen = -1;
    this.list = h("ul", { id: LIST, role: "listbox", hidden: true });
    this.input = h("input", {
      type: "search",
      role: "combobox",
      autocomplete: "off",
      spellcheck: "false",
      "aria-expanded": "false",
      "aria-controls": LIST,
      "aria-keyshortcuts": "/",
      input: () => this.#search(),
      focus: () => this.#search(),
      blur: () => this.#end(),
      keydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.element = h("div", { class: "search" }, this.input, h("kbd", { "aria-hidden": "true" }, "/"), this.list);
    addEventListener("keydown", (event) => hasKeys() && this.#hotkey(event));
    this.speak();
  }

  /** Puts its own words in the reader's language. */
  speak() {
    const words = this.words();
    this.input.placeholder = words.t("search.here");
    this.input.setAttribute("aria-label", words.t("search.label"));
    this.list.setAttribute("aria-label", words.t("search.found"));
    this.entries = null;
  }

  /** @param {KeyboardEvent} event */
  #hotkey(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = target.closest?.("input, textarea, select, dialog, [contenteditable]") !== null;
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.input.focus();
    this.input.select();
  }

  #search() {
    if (this.entries === null) {
      [this.uuids, this.part] = [new Map(), ""];
      this.#gather();
    }
    this.#find();
    void this.#askForUuids();
  }

  #gather() {
    this.entries = entriesOf(this.store, this.words(), this.uuids);
  }

  /** Those with what was typed in them, and no more than can be listed: all of a large fleet are megabytes. */
  async #askForUuids() {
    const part = partOfUuid(this.input.value);
    if (part === null || part === this.part || this.isAsking) return;
    [this.part, this.isAsking] = [part, true];
    try {
      const gpus = readGpus(await ask("GET", `gpus?${new URLSearchParams({ uuid: part, limit: String(UUIDS_MAX) })}`));
      for (const { node, gpu, uuid } of gpus) this.uuids.set(gpuKey(node, gpu), uuid);
    } catch {
      return; // they are found by all else
    } finally {
      this.isAsking = false;
    }
    if (this.entries === null) return; // the search is over
    this.#gather();
    if (this.found.length === 0) this.#find(); // what was found stays as it is while somebody looks at it
    void this.#askForUuids(); // more may have been typed meanwhile
  }

  #find() {
    const { found, more } = search(this.entries ?? [], this.input.value);
    this.found = found;
    this.chosen = found.length > 0 ? 0 : -1;
    this.#draw(more);
  }

  #end() {
    this.entries = null;
    this.#show(false);
  }

  /** @param {boolean} shown */
  #show(shown) {
    this.list.hidden = !shown;
    this.input.setAttribute("aria-expanded", String(shown));
    if (!shown) this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {number} more */
  #draw(more) {
    const words = this.words();
    const items = this.found.map((entry, index) => this.#item(entry, index));
    const asked = this.input.value.trim() !== "";
    const rest = items.length === 0 ? words.t("search.nothing") : more > 0 ? words.count("search.more", more) : null;
    fill(this.list, ...items, rest === null ? null : h("li", { class: "rest", role: "presentation" }, rest));
    this.#show(asked);
    this.#choose(this.chosen);
  }

  /** @param {Entry} entry @param {number} index */
  #item({ kind, title, note, href }, index) {
    return h(
      "li",
      {
        id: `search-${index}`,
        role: "option",
        // before the blur that a press brings, which would take the list away
        pointerdown: (/** @type {PointerEvent} */ event) => event.preventDefault(),
        click: () => this.#open(href),
      },
      h("span", { class: "kind" }, this.words().t(`search.${kind}`)),
      h("b", {}, title),
      h("span", { class: "note" }, note),
    );
  }

  /** @param {number} index */
  #choose(index) {
    this.chosen = index;
    [...this.list.querySelectorAll("[role=option]")].forEach((item, at) => {
      item.setAttribute("aria-selected", String(at === index));
      if (at === index) item.scrollIntoView({ block: "nearest" });
    });
    if (index >= 0) this.input.setAttribute("aria-activedescendant", `search-${index}`);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Escape") return this.#leave();
    if (event.isComposing || this.found.length === 0) return; // Enter and arrows belong to whoever writes Chinese
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      this.#choose((this.chosen + by + this.found.length) % this.found.length);
    }
    if (event.key === "Enter") this.#open(this.found[this.chosen].href);
  }

  #leave() {
    this.input.value = "";
    this.input.blur();
    document.getElementById("view")?.focus({ preventScroll: true });
  }

  /** @param {string} href */
  #open(href) {
    this.#leave();
    location.hash = href;
  }
}
