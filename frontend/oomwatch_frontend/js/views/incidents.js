// Incidents: the report of everything that ran out of memory, to read and to keep.

import { ApiError, ask } from "../api.js";
import { fill, h } from "../dom.js";
import { sectionTabs } from "../elements/section-tabs.js";
import { WireError, readIncidents } from "../wire.js";
import { incidentList } from "./run-history.js";

/** @type {import("../main.js").MakeView} */
export function incidentsView(root, app) {
  const { words } = app;
  const tabs = sectionTabs(app, "incidents");
  const list = h("div", { class: "incidents", "aria-live": "polite" }, incidentList(words, null, ""));
  const leaving = new AbortController();
  const what = h("p", { class: "muted" }, words.t("incidents.what"));
  root.append(h("div", { class: "detail-page" }, h("h1", {}, words.t("nav.incidents")), tabs.element, what, list));
  tabs.draw();

  const load = async () => {
    try {
      const all = readIncidents(await ask("GET", "incidents", undefined, leaving.signal));
      fill(list, incidentList(words, all, "", words.t("incidents.none")));
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (!leaving.signal.aborted) fill(list, incidentList(words, null, error.message));
    }
  };
  let fatal = "";
  const update = () => {
    tabs.draw();
    // A report is written some seconds after the alert that tells of it.
    const told = JSON.stringify([...app.store.alerts.values()].flatMap(({ facts }) => facts.incident ?? []));
    if (told === fatal) return;
    fatal = told;
    void load();
  };
  void load();
  return {
    update: (topics) => (topics.has("alerts") || topics.has("connection") || topics.has("silences") || topics.has("channels") ? update() : undefined),
    close: () => leaving.abort(),
  };
}
