// Alerts over time: those of a stretch of time on a timeline, or as a table, by the filters of the list.

import { AlertData } from "../alert-data.js";
import { isFiltered } from "../alertfilter.js";
import { h, setText } from "../dom.js";
import { AlertFilters } from "../elements/alert-filters.js";
import { AlertTable } from "../elements/alert-table.js";
import { AlertTimeline } from "../elements/alert-timeline.js";
import { sectionTabs } from "../elements/section-tabs.js";
import { TimeBar } from "../elements/time-bar.js";
import { nothing } from "../parts.js";
import { link } from "../router.js";
import { endsOf, holding, spanOf, writeRange } from "../timerange.js";

/** @typedef {import("../main.js").App} App */
/** @typedef {import("../router.js").Route} Route */

const DAY = 86_400; // seconds: what happened since yesterday, where nobody chose a time
const PIXELS = 600; // a live timeline moves on by pixels, and not every second
const LEAST_SECONDS = 5;

/** @type {import("../main.js").MakeView} */
export const alertTimesView = (root, app, route) => new AlertTimes(root, app, route);

class AlertTimes {
  /** @param {HTMLElement} root @param {App} app @param {Route} route */
  constructor(root, app, route) {
    this.app = app;
    this.query = { ...route.query };
    const { words } = app;
    this.tabs = sectionTabs(app, "alerts");
    this.filters = new AlertFilters(app);
    this.isChosen = ["span", "from", "to"].some((name) => name in route.query);
    this.time = new TimeBar(app, { ...route, query: { span: String(DAY), ...route.query } }, () => {
      this.isChosen = true;
      this.#show();
    });
    this.by = h("div", { class: "choice", role: "group", "aria-label": words.t("alertline.by") });
    this.shown = route.query.show === "table" ? new AlertTable(app) : new AlertTimeline(app, this.time);
    this.none = nothing("");
    this.none.setAttribute("role", "status");
    this.note = h("p", { class: "note", role: "status" });
    this.data = new AlertData(app, () => this.#answered());
    const bar = h("div", { class: "toolbar" }, this.time.element, this.by);
    root.append(
      h("div", { class: "detail-page alert-times" }, h("h1", {}, words.t("nav.alerts")), this.tabs.element, this.filters.element, bar, this.note, this.none, this.shown.element),
    );
    this.by.hidden = route.query.show === "table";
    this.drawnAt = 0;
    this.wasLive = app.store.connection.phase === "live";
    this.#fit();
    this.#show();
  }

  #answered() {
    this.#fit();
    this.#draw();
  }

  /** Shows the time that there is something in, where the address does not say which: of a day, from the first alert on. */
  #fit() {
    if (this.isChosen) return;
    const now = this.app.store.now();
    const starts = this.data.spans([now - DAY, Infinity], this.query).map((span) => span.started_at);
    this.time.fit(holding(starts.length === 0 ? null : now - Math.min(...starts)));
  }

  /** @param {Set<import("../store.js").Topic>} topics */
  update(topics) {
    const { store } = this.app;
    const live = store.connection.phase === "live";
    if (live && !this.wasLive) void this.#ask(); // what was missed
    this.wasLive = live;
    const moved = this.time.range.live && store.now() - this.drawnAt > Math.max(LEAST_SECONDS, spanOf(this.time.range) / PIXELS);
    if (topics.has("alerts") || topics.has("connection") || topics.has("channels") || topics.has("silences") || moved) this.#draw();
  }

  close() {
    this.data.close();
    this.shown.close();
  }

  /** Another stretch: what the address says of it goes with every link. */
  #show() {
    const { from: _from, to: _to, span: _span, ...others } = this.query;
    this.query = { ...others, ...(this.isChosen ? writeRange(this.time.range) : {}) };
    const { words } = this.app;
    const current = this.query.by === "node" ? "node" : "run";
    const links = /** @type {const} */ (["run", "node"]).map((by) =>
      h("a", { href: link("alerts", [], { ...this.query, by: by === "run" ? "" : by }), "aria-current": by === current ? "true" : null }, words.t(`alertline.by_${by}`)),
    );
    this.by.replaceChildren(...links);
    this.#draw();
    void this.#ask();
  }

  #ask() {
    const range = this.isChosen ? this.time.range : { live: /** @type {const} */ (true), span: DAY };
    return this.data.ask(endsOf(range, this.app.store.now()), this.query);
  }

  #draw() {
    const { store, words } = this.app;
    const now = store.now();
    const ends = endsOf(this.time.range, now);
    const spans = this.data.spans(this.time.range.live ? [ends[0], Infinity] : ends, this.query);
    this.drawnAt = now;
    this.tabs.draw();
    this.filters.draw(this.query);
    const by = this.query.by === "node" ? "node" : "run";
    this.shown.draw(spans, { ends, now, live: this.time.range.live, by, query: this.query });
    this.shown.element.hidden = spans.length === 0;
    this.shown.element.ariaBusy = String(this.data.busy);
    this.none.hidden = spans.length > 0;
    setText(this.none, spans.length > 0 ? "" : words.t(this.#whyNone()));
    setText(this.note, this.#note(spans.length));
  }

  #whyNone() {
    if (this.data.busy) return "alertline.loading";
    return isFiltered(this.query) ? "alertline.none_match" : "alertline.none";
  }

  /** @param {number} count */
  #note(count) {
    const { words } = this.app;
    if (this.data.problem !== "") return words.t("alertline.failed", { reason: this.data.problem });
    if (this.data.busy) return count === 0 ? "" : words.t("alertline.loading");
    const all = words.count("alertline.count", count);
    return this.data.complete ? all : words.t("alertline.incomplete", { count: all });
  }
}
