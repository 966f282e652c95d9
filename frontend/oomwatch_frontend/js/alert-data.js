// The alerts of a stretch of time: what the server remembers of it, and what is live. A question that fails is told, and
// what is live is shown.

import { ApiError, ask } from "./api.js";
import { spanOf, together } from "./alertline.js";
import { readSpans } from "./alertwire.js";
import { passes } from "./alertfilter.js";
import { WireError } from "./wire.js";

/** @typedef {import("./main.js").App} App */
/** @typedef {import("./alertwire.js").Span} Span */

export class AlertData {
  /** @param {App} app @param {() => void} changed */
  constructor(app, changed) {
    this.app = app;
    this.changed = changed;
    /** @type {Span[]} */
    this.asked = [];
    this.complete = true;
    this.busy = true;
    this.problem = "";
    this.abort = new AbortController();
  }

  close() {
    this.abort.abort();
  }

  /** @param {[number, number]} ends Unix seconds @param {import("./alertfilter.js").Filter} filter */
  async ask(ends, { run = "", node = "", alert = "" }) {
    this.abort.abort(); // an answer to an older question is dropped
    const { signal } = (this.abort = new AbortController());
    this.busy = true;
    const chosen = Object.entries({ run, node, alert }).filter(([, value]) => value !== "");
    const lang = this.app.words.language;
    const search = new URLSearchParams({ from: String(Math.floor(ends[0])), to: String(Math.ceil(ends[1])), lang, ...Object.fromEntries(chosen) });
    try {
      const { alerts, complete } = readSpans(await ask("GET", `alerts/timeline?${search}`, undefined, signal));
      Object.assign(this, { asked: alerts, complete, problem: "" });
    } catch (error) {
      if (!(error instanceof ApiError || error instanceof WireError)) throw error;
      if (signal.aborted) return;
      Object.assign(this, { asked: [], complete: true, problem: error.message || "HTTP" });
    }
    this.busy = false;
    this.changed();
  }

  /**
   * Those that pass, as of now.
   * @param {[number, number]} ends whose end is Infinity where time goes on: what has just begun may be ahead of this clock
   * @param {import("./alertfilter.js").Filter} filter @returns {Span[]}
   */
  spans(ends, filter) {
    const { store, words } = this.app;
    const live = new Map([...store.alerts.values()].map((alert) => [alert.id, spanOf(alert, words.pick(alert.texts).summary)]));
    return together(this.asked, live, ends).filter((span) => passes(span, filter));
  }
}
