// Small pieces that several views show.

import { toClipboard } from "./clipboard.js";
import { h, since } from "./dom.js";
import { clockTime, moment, unbroken } from "./format.js";
import { isAcknowledged, openGroups, titleOf } from "./groups.js";
import { quoted } from "./elements/problem.js";
import { levelOf } from "./judge.js";
import { markIcon, signIcon } from "./marks.js";
import { PHASES, lookOf } from "./phases.js";
import { link } from "./router.js";

/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {import("./wire.js").Alert} Alert */

/** A section of a view under a heading. @param {string} title @param {...import("./dom.js").Child} children */
export function section(title, ...children) {
  return h("section", {}, h("h2", {}, title), ...children);
}

/** What a section says when it has nothing to show. @param {string} text */
export const nothing = (text) => h("p", { class: "nothing" }, text);

/** What a table tells, by its heads. @param {Words} words @param {string[]} heads */
export const headsOf = (words, heads) => heads.filter((head) => head !== "").join(words.t("text.and"));

/** A table; `numeric` columns are right-aligned. @param {Words} words @param {string[]} heads @param {number[]} numeric @param {HTMLElement} body */
export function table(words, heads, numeric, body) {
  const cells = heads.map((head, index) =>
    // A column of bars has no name, and a cell without one is no header.
    head === "" ? h("td") : h("th", { scope: "col", class: numeric.includes(index) ? "number" : null }, head),
  );
  // By keyboard only what can have the focus can be scrolled.
  const reach = { tabindex: 0, role: "group", "aria-label": headsOf(words, heads) };
  return h("div", { class: "scroll", ...reach }, h("table", {}, h("thead", {}, h("tr", {}, ...cells)), body));
}

/** A table's row. @param {import("./dom.js").Child[]} cells @param {number[]} numeric @param {string | null} [key] which it is, where rows come and go */
export function row(cells, numeric, key = null) {
  return h(
    "tr",
    { "data-key": key },
    ...cells.map((cell, index) => h("td", { class: numeric.includes(index) ? "number" : null }, cell)),
  );
}

/** Names and values side by side. @param {[string, import("./dom.js").Child][]} facts those without a value are left out */
export function facts(facts) {
  const known = facts.filter(([, value]) => value !== null);
  return h("dl", {}, ...known.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Where an alert is: its node, GPU and run, each leading there. @param {Words} words @param {Record<string, string>} labels */
export function places(words, labels) {
  const { node, gpu, run, ...rest } = labels;
  /** @type {HTMLElement[]} */
  const parts = [];
  if (run !== undefined) parts.push(h("a", { href: link("run", [run]) }, run));
  if (node !== undefined) parts.push(h("a", { href: link("node", [node]) }, node));
  if (node !== undefined && gpu !== undefined) {
    parts.push(h("a", { href: link("gpu", [node, gpu]) }, words.t("name.gpu", { gpu })));
  }
  parts.push(...Object.entries(rest).map(([name, value]) => h("span", {}, `${name} ${value}`)));
  return h("span", { class: "places" }, ...parts);
}

/** Where an alert is, as plain text. @param {Words} words @param {Record<string, string>} labels @returns {string} "gpu-02 · GPU 3" */
export function placeName(words, { node, gpu, run }) {
  const card = gpu === undefined ? null : words.t("name.gpu", { gpu });
  return [node ?? run ?? null, card].filter((part) => part !== null).join(" · ");
}

/** The open alerts that concern something, one line for each group, leading to its worst. @param {Words} words @param {Alert[]} alerts */
export function alertLines(words, alerts) {
  const groups = openGroups(alerts);
  if (groups.length === 0) return nothing(words.t("alerts.none_here"));
  const lines = groups.map((group) => {
    const [worst] = group.alerts;
    const level = levelOf(worst);
    return h(
      "li",
      { class: group.standing === "muted" ? "calm" : null },
      markIcon(level, words.t(`mark.${level}`)),
      h("a", { href: link("alerts", [], { id: worst.id }) }, unbroken(titleOf(words, group))),
      groupSign(words, group),
    );
  });
  return h("ul", { class: "alert-lines" }, ...lines);
}

/** What people did about all of a group. @param {Words} words @param {import("./groups.js").Group} group */
export function groupSign(words, group) {
  if (group.standing === "muted") return signIcon("muted", words.t("mute.tag"));
  const { acknowledged } = group.alerts[0];
  if (acknowledged === null || !isAcknowledged(group)) return null;
  return signIcon("acknowledged", words.t("ack.tag", { by: acknowledged.by }));
}

/** Names of runs, each leading there. @param {string[]} runs */
export function runLinks(runs) {
  return h("span", { class: "places" }, ...runs.map((run) => h("a", { href: link("run", [run]) }, run)));
}

/** A phase's name; one of a later server by its own. @param {Words} words @param {string} phase */
export const phaseName = (words, phase) => (Object.hasOwn(PHASES, phase) ? words.t(`phase.${phase}`) : phase);

/** Classes of the style sheet that look like plotly's patterns. @type {Record<string, string>} */
export const PATTERN_CLASS = {
  "/": "slash",
  "\\": "backslash",
  x: "crosses",
  "-": "rows",
  "|": "columns",
  "+": "grid",
  ".": "dots",
};

/** The looks of the phases shown, in the order in which they run. @param {Words} words @param {{ phase: string }[]} shown */
export function phaseLegend(words, shown) {
  const order = Object.keys(PHASES);
  const phases = [...new Set(shown.map(({ phase }) => phase))].sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const items = phases.map((phase) => {
    const { colour, pattern } = lookOf(phase);
    const swatch = h("i", { class: `swatch phase ${PATTERN_CLASS[pattern] ?? ""}` });
    swatch.style.setProperty("--ink", `var(--${colour})`);
    return h("li", {}, swatch, phaseName(words, phase));
  });
  return h("ul", { class: "legend phases", "aria-label": words.t("phases.title"), hidden: items.length === 0 }, ...items);
}

/**
 * How a line of a chart looks, for the legend beside it.
 * @param {{ colour: string, dash?: string, stack?: boolean, pattern?: string, low?: unknown }} line
 */
export function swatchOf({ colour, dash, stack, pattern, low }) {
  const look = stack === true ? `phase ${PATTERN_CLASS[pattern ?? ""] ?? ""}` : `line ${dash ?? "solid"}${low === undefined ? "" : " band"}`;
  const swatch = h("i", { class: `swatch ${look}` });
  swatch.style.setProperty("--ink", `var(--${colour})`);
  return swatch;
}

/**
 * When something was, to the second; date and zone on hovering.
 * @param {Words} words @param {number} at Unix seconds @returns {HTMLElement} "14:30:05", "30 Nov, 09:00:12"
 */
export function exactTime(words, at) {
  return h("time", { title: moment(words, at), datetime: new Date(at * 1000).toISOString() }, clockTime(words, at, undefined, true));
}

/** A sentence with a {age} in it that goes on counting. @param {Words} words @param {string} key @param {number} at Unix seconds */
export function aged(words, key, at) {
  const [before, after = ""] = words.t(key).split("{age}");
  return h("span", { class: "when" }, before, since(at), after);
}

/** The state of each source of a node, with the reason where one gives nothing. @param {Words} words @param {import("./wire.js").SourceFacts[]} sources */
export function sourceList(words, sources) {
  if (sources.length === 0) return nothing(words.t("sources.none"));
  const items = sources.map(({ name, state, detail }) =>
    h(
      "li",
      { class: `source-${state}` },
      markIcon(state === "ok" ? "ok" : state === "waiting" ? "stale" : "warning"),
      h("b", {}, name),
      h("span", {}, words.t(`sources.${state}`)),
      detail === null ? null : h("span", { class: "detail" }, quoted(words, "sources.said", detail)),
      remedyOf(words, name, state),
    ),
  );
  return h("ul", { class: "sources" }, ...items);
}

/** The source of a name and what helps, by its first word. @type {Record<string, string>} */
const FIXES = { nvml: "card", "nvidia-smi": "card", amdsmi: "card", host: "host", ray: "ray", log: "log", probe: "probe", engine: "engine" };

/** What a person can do about a source that gives nothing. @param {Words} words @param {string} name @param {import("./wire.js").SourceFacts["state"]} state */
function remedyOf(words, name, state) {
  if (state === "ok") return null;
  const family = FIXES[name.split(" ")[0]];
  if (state !== "hung" && family === undefined) return null;
  return h("span", { class: "fix" }, prose(words, words.t(`sources.fix_${state === "hung" ? "hung" : family}`)));
}

/** The way back up. @param {[string, string][]} steps name and address of each level above @param {string} here */
export function crumbs(steps, here) {
  const above = steps.map(([name, href]) => h("a", { href }, name));
  return h("h1", { class: "crumbs" }, ...above, h("span", {}, here));
}

/** Names of settings and metrics as trainers write them: a.b_c, a.b=True, LEVEL=DEBUG, timing_s/gen; or what stands in `...`. */
const CODE =
  /`([^`]+)`|((?:[a-z][\w]*\.)+[a-z]\w*(?:=[\w-]+(?:\.\d+)?)?|[A-Z][A-Z_]+=\w+|[a-z]+_s\/[\w/]*\w|[a-z]\w*_\w+=[\w.]*\w)/g;

/**
 * A text with its settings set as code, and a button that copies those that can be pasted into a command.
 * @param {Words} words @param {string} text
 */
export function prose(words, text) {
  const pieces = splitCode(text);
  const element = h("span");
  pieces.forEach((piece, index) => {
    if (index % 2 === 0) return element.append(index === 0 ? piece : piece.slice(stopOf(piece).length));
    element.append(h("code", {}, piece), stopOf(pieces[index + 1]));
    if (piece.includes("=")) element.append(copyButton(words, piece));
  });
  return element;
}

/** What ends a sentence or a clause at the beginning of a text: it stays at the word before. @param {string} text */
export const stopOf = (text) => /^[.,;:!?)。，；：！？）]*/.exec(text)?.[0] ?? "";

/** Prose and code in turn, prose first. @param {string} text @returns {string[]} */
export function splitCode(text) {
  /** @type {string[]} */
  const pieces = [];
  let from = 0;
  for (const match of text.matchAll(CODE)) {
    pieces.push(text.slice(from, match.index), match[1] ?? match[2]);
    from = match.index + match[0].length;
  }
  return [...pieces, text.slice(from)];
}

/** Copies a text. @param {Words} words @param {string} text */
export function copyButton(words, text) {
  const button = h("button", { type: "button", class: "copy" }, words.t("copy.do"));
  button.addEventListener("click", async () => {
    button.textContent = words.t((await toClipboard(text, button)) ? "copy.done" : "copy.failed");
  });
  return button;
}
