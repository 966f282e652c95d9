// Silences: those in force and those to come, what each hides, and how to end or begin one.

import { fill, h, keyed } from "../dom.js";
import { sectionTabs } from "../elements/section-tabs.js";
import { openSilenceDialog } from "../elements/silence-dialog.js";
import { SilenceRow } from "../elements/silence-row.js";
import { WindowList } from "../elements/window-list.js";
import { nothing } from "../parts.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../wire.js").Silence} Silence */

const TOPICS = /** @type {const} */ (["silences", "alerts", "channels", "connection"]);

/** @type {import("../main.js").MakeView} */
export function silencesView(root, app, route) {
  const { words, store } = app;
  const tabs = sectionTabs(app, "silences");
  const none = nothing("");
  const windows = new WindowList(app);
  /** @type {WeakMap<HTMLElement, SilenceRow>} */
  const rows = new WeakMap();
  const lists = { now: h("ul", { class: "silences" }), later: h("ul", { class: "silences" }) };
  const later = h("section", {}, h("h2", {}, words.t("silence.upcoming")), lists.later);
  const add = h(
    "button",
    { type: "button", "data-focus": "new-silence", click: () => openSilenceDialog(app, []) },
    words.t("silence.new"),
  );
  const title = h("div", { class: "title-row" }, h("h1", {}, words.t("nav.silences")), add);
  root.append(h("div", { class: "detail-page" }, title, tabs.element, none, lists.now, later, windows.element));

  /** @param {HTMLElement} list @param {Silence[]} silences */
  const draw = (list, silences) => {
    list.hidden = silences.length === 0;
    const create = (/** @type {Silence} */ silence) => {
      const row = new SilenceRow(app, silence);
      rows.set(row.element, row);
      return row.element;
    };
    keyed(
      list,
      silences,
      (silence) => silence.id,
      create,
      (element, silence) => rows.get(element)?.draw(silence),
    );
  };
  let wanted = route.query.id ?? "";
  const update = () => {
    const now = store.now();
    tabs.draw();
    draw(
      lists.now,
      store.silences.filter((silence) => silence.starts_at <= now && silence.ends_at > now),
    );
    draw(
      lists.later,
      store.silences.filter((silence) => silence.starts_at > now),
    );
    later.hidden = lists.later.hidden;
    none.hidden = !(lists.now.hidden && lists.later.hidden);
    fill(none, words.t(store.connection.phase === "connecting" ? "state.connecting" : "silence.none"));
    const shown = wanted === "" ? null : document.getElementById(`silence-${wanted}`);
    if (shown === null) return;
    shown.classList.add("pointed-at");
    shown.scrollIntoView({ block: "center" });
    wanted = "";
  };
  update();
  windows.draw(true);
  return {
    // One that began or ended by the clock alone is not told of.
    update: (topics) => {
      if (TOPICS.some((topic) => topics.has(topic)) || topics.has("clock")) update();
      windows.draw(topics.has("rules") || (topics.has("connection") && store.connection.phase === "live"));
    },
    close: () => windows.close(),
  };
}
