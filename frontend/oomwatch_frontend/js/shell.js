// The frame of every view: top bar, the one sentence, notices, and the tab's title and icon.

import { fill, h, refill, setText, svg } from "./dom.js";
import { HeadlineWhy } from "./elements/headline-why.js";
import { missedNotice } from "./elements/missed-notice.js";
import { quoted } from "./elements/problem.js";
import { unbroken } from "./format.js";
import { headline, isCurrent, openCount } from "./headline.js";
import { isDemo } from "./judge.js";
import { GLYPHS, iconUrl, markIcon } from "./marks.js";
import { link } from "./router.js";
import { isUtc } from "./zone.js";

/** @typedef {import("./store.js").Store} Store */
/** @typedef {import("./i18n.js").Words} Words */
/** @typedef {import("./router.js").Route} Route */

/**
 * @typedef {object} ShellHandlers
 * @property {import("./theme.js").ThemeSwitch} theme
 * @property {() => void} retry
 * @property {() => void} settings
 * @property {() => void} help
 * @property {(language: import("./i18n.js").Language) => void} language
 */

/** Which tab of the bar a view belongs to. @type {Record<string, string>} */
const SECTION = { gpu: "fleet", node: "fleet", fleet: "fleet", run: "runs", runs: "runs", alerts: "alerts", silences: "alerts", channels: "alerts", incidents: "alerts", rules: "rules", doctor: "doctor" };

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

export class Shell {
  /** @param {ShellHandlers} handlers */
  constructor(handlers) {
    this.handlers = handlers;
    this.drawn = new Map();
    this.why = new HeadlineWhy(byId("why"));
  }

  /** @param {Store} store @param {Words} words @param {Route} route @param {import("./theme.js").Theme} theme */
  draw(store, words, route, theme) {
    const open = openCount(store.alerts.values());
    const { language } = words;
    this.#when("lang", [language], () => this.#drawLanguage(words));
    this.#when("nav", [language, route.view, open], () => this.#drawNav(words, route, open));
    this.#when(
      "tools",
      [language, theme, isUtc(), isDemo(store), store.connection.phase, store.connection.retryAtMs === null],
      () => this.#drawTools(store, words, theme),
    );
    this.#drawHeadline(store, words);
    this.why.draw(store, words, route.view !== "alerts");
    const { rules_error: rulesError = null } = store.server ?? {};
    // Of a channel only what the notice says: drawn anew it would be read out anew.
    const failed = store.channels.flatMap(({ name, health, last_error }) => (health === "failed" ? [[name, last_error]] : []));
    this.#when(
      "notices",
      [language, isUtc(), rulesError, failed, store.malformedFrames, store.unknownFrames, store.missed],
      () => this.#drawNotices(store, words, rulesError),
    );
  }

  /** Draws a part only when what it shows has changed. @param {string} part @param {unknown[]} state @param {() => void} draw */
  #when(part, state, draw) {
    const key = JSON.stringify(state);
    if (this.drawn.get(part) === key) return;
    this.drawn.set(part, key);
    draw();
  }

  /** @param {Words} words */
  #drawLanguage(words) {
    document.documentElement.lang = words.locale;
    setText(/** @type {Element} */ (document.querySelector(".skip")), words.t("nav.skip"));
    byId("nav").setAttribute("aria-label", words.t("nav.label"));
  }

  /** @param {Words} words @param {Route} route @param {number} open */
  #drawNav(words, route, open) {
    const current = SECTION[route.view] ?? "";
    const tabs = ["fleet", "runs", "alerts", "rules", "doctor"].map((name) => {
      const badge = name === "alerts" && open > 0 ? h("span", { class: "badge" }, String(open)) : null;
      const attributes = { href: link(name), "aria-current": current === name ? "page" : null };
      return h("a", attributes, words.t(`nav.${name}`), badge);
    });
    fill(byId("nav"), ...tabs);
  }

  /** @param {Store} store @param {Words} words @param {import("./theme.js").Theme} theme */
  #drawTools(store, words, theme) {
    const { phase, retryAtMs } = store.connection;
    const demo = isDemo(store) ? h("span", { class: "demo", title: words.t("demo.why") }, words.t("demo.badge")) : null;
    const state = h(
      "a",
      { class: `link link-${phase}`, href: link("server"), title: words.t("tools.server"), "data-focus": "server" },
      h("i", { class: "dot" }),
      h("span", { role: "status" }, words.t(`link.${phase}`)),
    );
    const retry =
      retryAtMs === null ? null : h("button", { type: "button", click: this.handlers.retry }, words.t("link.retry"));
    // The page's own address, for there the server asks who it is.
    const signIn =
      phase === "ended" ? h("button", { type: "button", class: "primary", click: () => location.reload() }, words.t("link.sign_in")) : null;
    const other = words.language === "en" ? "zh" : "en";
    const language = h(
      "button",
      {
        type: "button",
        class: "language",
        "data-focus": "language",
        title: words.t("tools.language"),
        click: () => this.handlers.language(other),
      },
      h("span", { class: words.language === "en" ? "on" : "", lang: "en" }, "EN"),
      h("span", { class: words.language === "zh" ? "on" : "", lang: "zh-CN" }, "中"),
    );
    const themes = h(
      "button",
      { type: "button", "data-focus": "theme", title: words.t("tools.theme"), click: () => this.handlers.theme.next() },
      themeIcon(),
      h("span", { class: "wide-only" }, words.t(`theme.${theme}`)),
    );
    const zone = isUtc() ? h("span", { class: "zone", title: words.t("settings.zone_utc") }, "UTC") : null;
    const settings = iconButton(words.t("settings.title"), "settings", GEAR, this.handlers.settings);
    const help = h(
      "button",
      {
        type: "button",
        class: "icon wide-only",
        "data-focus": "help",
        title: words.t("keys.title"),
        "aria-label": words.t("keys.title"),
        click: this.handlers.help,
      },
      "?",
    );
    refill(byId("tools"), demo, state, retry, signIn, zone, language, themes, settings, help);
  }

  /** @param {Store} store @param {Words} words */
  #drawHeadline(store, words) {
    const told = headline(store, words);
    const { mark, sentence, alert } = told;
    this.#when("headline", [mark, sentence, alert, words.language, isDemo(store)], () => {
      const demo = isDemo(store) ? h("span", { class: "demo wall-only" }, words.t("demo.badge")) : null;
      const label = h("strong", {}, words.t(`mark.${mark}`));
      const text =
        alert === null ? h("span", {}, unbroken(sentence)) : h("a", { href: link("alerts", [], { id: alert }) }, unbroken(sentence));
      byId("headline").className = `headline headline-${mark}`;
      fill(byId("headline"), demo, markIcon(mark), mark === "ok" ? null : label, text);
    });
    document.body.classList.toggle("offline", !isCurrent(store));
    const { phase, failed } = store.connection;
    document.body.classList.toggle("unfilled", phase === "connecting" && !failed);
    this.drawTab(store, words, told);
  }

  /** @param {Store} store @param {Words} words @param {string | null} rulesError */
  #drawNotices(store, words, rulesError) {
    /** @type {HTMLElement[]} */
    const notices = [];
    if (store.missed !== null) notices.push(missedNotice(words, store.missed, () => store.dismissMissed()));
    if (rulesError !== null) notices.push(notice(words.t("notice.rules"), quoted(words, "notice.rules_said", rulesError), link("rules", ["file"])));
    for (const { name, health, last_error } of store.channels) {
      if (health === "failed") notices.push(notice(words.t("notice.channel", { channel: name }), lastError(words, last_error), link("channels")));
    }
    if (store.malformedFrames > 0) {
      notices.push(notice(words.count("notice.malformed", store.malformedFrames), h("span", { lang: "en" }, store.malformedReason ?? "")));
    }
    if (store.unknownFrames > 0) notices.push(notice(words.count("notice.unknown", store.unknownFrames), null));
    refill(byId("notices"), ...notices);
  }

  /** @param {Store} store @param {Words} words @param {import("./headline.js").Headline} [told] where it was worked out already */
  drawTab(store, words, told = headline(store, words)) {
    const { mark, sentence } = told;
    const demo = isDemo(store) ? `${words.t("demo.badge")} · ` : "";
    this.#when("title", [mark, sentence, demo], () => {
      document.title = `${GLYPHS[mark]}${demo}${sentence} · oomwatch`;
    });
    // Another icon costs the browser some milliseconds: none is shown of a state that is over in a moment.
    const { phase, failed } = store.connection;
    if (phase === "connecting" && !failed) return;
    this.#when("icon", [mark], () => document.querySelector("link[rel=icon]")?.setAttribute("href", iconUrl(mark)));
  }
}

/** What went wrong in the receiver's own words, said to be that. @param {Words} words @param {string | null} error */
const lastError = (words, error) => (error === null ? null : quoted(words, "notice.channel_said", error));

const GEAR =
  "M6.8 1.8h2.4l.4 1.7 1.1.5 1.5-.9 1.7 1.7-.9 1.5.5 1.1 1.7.4v2.4l-1.7.4-.5 1.1.9 1.5-1.7 1.7-1.5-.9-1.1.5-.4 1.7H6.8l-.4-1.7-1.1-.5-1.5.9-1.7-1.7.9-1.5-.5-1.1-1.7-.4V7.8l1.7-.4.5-1.1-.9-1.5 1.7-1.7 1.5.9 1.1-.5ZM8 6.3a2.2 2.2 0 1 0 0 4.4 2.2 2.2 0 0 0 0-4.4Z";

/** @param {string} label @param {string} name @param {string} path @param {() => void} click */
function iconButton(label, name, path, click) {
  const shape = svg("path", { d: path, class: "filled", "fill-rule": "evenodd" });
  const icon = svg("svg", { viewBox: "0 0 16 17", class: "mark", "aria-hidden": "true" }, shape);
  return h("button", { type: "button", class: "icon", "data-focus": name, title: label, "aria-label": label, click }, icon);
}

function themeIcon() {
  const half = svg("path", { d: "M8 2a6 6 0 0 1 0 12Z", class: "filled" });
  return svg(
    "svg",
    { viewBox: "0 0 16 16", class: "mark", "aria-hidden": "true" },
    svg("circle", { cx: 8, cy: 8, r: 6, class: "stroked" }),
    half,
  );
}

/** @param {string} what @param {HTMLElement | null} detail @param {string} [href] where more is told */
function notice(what, detail, href) {
  const rest = detail === null ? null : h("pre", {}, detail);
  const said = href === undefined ? h("span", {}, what) : h("a", { href }, what);
  return h("div", { class: "notice", role: "alert" }, markIcon("warning"), said, rest);
}
