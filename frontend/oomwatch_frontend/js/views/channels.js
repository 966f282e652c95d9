// Channels: how alerts reach people, and which of the ways is broken.

import { fill, h, keyed } from "../dom.js";
import { ChannelRow } from "../elements/channel-row.js";
import { sectionTabs } from "../elements/section-tabs.js";
import { nothing } from "../parts.js";

/** @type {import("../main.js").MakeView} */
export function channelsView(root, app) {
  const { words, store } = app;
  const tabs = sectionTabs(app, "channels");
  const none = nothing("");
  const list = h("ul", { class: "channels" });
  /** @type {WeakMap<HTMLElement, ChannelRow>} */
  const rows = new WeakMap();
  const since = h("p", { class: "muted" }, words.t("channel.counted"));
  root.append(
    h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.channels")), tabs.element, none, list, since),
  );
  const update = () => {
    tabs.draw();
    keyed(
      list,
      store.channels,
      (channel) => channel.name,
      (channel) => {
        const row = new ChannelRow(app, channel);
        rows.set(row.element, row);
        return row.element;
      },
      (element, channel) => rows.get(element)?.draw(channel),
    );
    since.hidden = list.hidden = store.channels.length === 0;
    none.hidden = store.channels.length > 0;
    fill(none, words.t(store.connection.phase === "connecting" ? "state.connecting" : "channel.none"));
  };
  update();
  return {
    update: (topics) =>
      topics.has("channels") || topics.has("silences") || topics.has("connection") ? update() : undefined,
    close: () => undefined,
  };
}
