// What happened to a run before: the reports of what ran out of memory, and what its warnings came to.

import { h, since } from "../dom.js";
import { markIcon } from "../marks.js";
import { became } from "../elements/alert-figures.js";
import { aged, nothing } from "../parts.js";
import { link } from "../router.js";

/** @typedef {import("../i18n.js").Words} Words */
/** @typedef {import("../wire.js").Incident} Incident */
/** @typedef {import("../wire.js").AlertRow} AlertRow */

/**
 * @param {Words} words @param {Incident[] | null} incidents newest first; null: not known yet @param {string} problem why not
 * @param {string} [none] what is said of none
 */
export function incidentList(words, incidents, problem, none = words.t("run.incidents_none")) {
  if (problem !== "") return nothing(words.t("run.incidents_failed", { reason: problem }));
  if (incidents === null) return nothing(words.t("run.incidents_asked"));
  if (incidents.length === 0) return nothing(none);
  const items = incidents.map(({ id, at, summary, alerts }) => {
    const page = `api/v1/incidents/${id}.html?lang=${words.language}`;
    return h(
      "li",
      {},
      markIcon("lost"),
      h(
        "div",
        {},
        h("a", { href: page, target: "_blank", rel: "noopener" }, words.said(summary, id)),
        aged(words, "age.ago", at),
        h("a", { href: page, download: `${id}.html`, class: "download" }, words.t("run.download")),
        alerts.length === 0 ? "" : h("a", { href: link("alerts", [], { id: alerts[0] }) }, words.count("incidents.alerts", alerts.length)),
      ),
    );
  });
  return h("ul", { class: "run-past" }, ...items);
}

/**
 * What the warnings came to: those of one rule that came to the same are one line, however many GPUs they were of.
 * @param {Words} words @param {AlertRow[]} alerts newest first
 */
export function verdictList(words, alerts) {
  const groups = judgedTogether(alerts);
  if (groups.length === 0) return nothing(words.t("run.verdicts_none"));
  const items = groups.map(([{ id, severity, summary, outcome, fired_at, started_at }, ...more]) =>
    h(
      "li",
      {},
      markIcon(outcome.verdict === "happened" ? "lost" : outcome.verdict === "false" ? "stale" : "ok"),
      h(
        "div",
        {},
        h("a", { href: link("alerts", [], { id }) }, words.t("text.labelled", { label: words.t(`severity.${severity}`), text: summary })),
        more.length === 0 ? "" : h("span", { class: "muted" }, words.t("run.verdict_more", { n: more.length })),
        h("b", {}, became(words, outcome)),
        since(fired_at ?? started_at),
      ),
    ),
  );
  return h("ul", { class: "run-past" }, ...items);
}

/** @typedef {AlertRow & { outcome: import("../wire.js").Outcome }} Judged */

const TOGETHER_SECONDS = 60; // judged within so long by the same failure

/** @param {AlertRow[]} alerts @returns {Judged[][]} the one that warned first comes first in each */
function judgedTogether(alerts) {
  /** @type {Map<string, Judged[]>} */
  const groups = new Map();
  for (const alert of alerts) {
    const { outcome } = alert;
    if (outcome === null) continue;
    const when = Math.round(outcome.at / TOGETHER_SECONDS);
    const key = JSON.stringify([alert.alert, alert.severity, outcome.verdict, when]);
    groups.set(key, [...(groups.get(key) ?? []), { ...alert, outcome }]);
  }
  const lead = (/** @type {Judged} */ one) => one.outcome.lead_seconds ?? 0;
  return [...groups.values()].map((group) => group.sort((a, b) => lead(b) - lead(a)));
}
