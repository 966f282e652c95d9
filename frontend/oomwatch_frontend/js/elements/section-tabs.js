// What belongs to the alerts: the alerts themselves, the silences, and the channels that tell people of them.

import { Part, h } from "../dom.js";
import { markIcon } from "../marks.js";
import { link } from "../router.js";

/** @typedef {import("../main.js").App} App */

/** @param {App} app @param {"alerts" | "silences" | "channels" | "incidents"} current */
export function sectionTabs({ store, words }, current) {
  const part = new Part("nav", { class: "choice sections", "aria-label": words.t("nav.of_alerts") });
  const draw = () => {
    const failed = store.channels.some((channel) => channel.health === "failed");
    const counts = { alerts: null, silences: store.silences.length, channels: store.channels.length, incidents: null };
    part.draw([counts, failed], () =>
      Object.entries(counts).map(([view, count]) =>
        h(
          "a",
          { href: link(view), "aria-current": view === current ? "page" : null, "data-focus": view },
          words.t(`nav.${view}`),
          count === null ? null : h("span", { class: "count" }, String(count)),
          view === "channels" && failed ? markIcon("warning", words.t("channel.failed")) : null,
        ),
      ),
    );
  };
  draw();
  return { element: part.element, draw };
}
