// The guide of a server that no agent has ever connected to: what to start where, as commands to copy.

import { h } from "../dom.js";
import { copyButton } from "../parts.js";

/** @typedef {import("../i18n.js").Words} Words */

const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** @param {Location | URL} page @returns {{ server: string, onlyHere: boolean }} how agents reach the server that this page came from */
export function serverOf(page) {
  const path = page.pathname.replace(/\/$/, ""); // behind a proxy it may lie below a folder
  const server = page.protocol === "https:" ? `${page.origin}${path}` : `${page.host}${path}`;
  return { server, onlyHere: LOOPBACK.includes(page.hostname) };
}

/** @param {Words} words */
export function firstRun(words) {
  const { server, onlyHere } = serverOf(location);
  const agent = `oomwatch-agent --server ${server}`;
  const port = location.port === "" ? "8642" : location.port;
  return h(
    "section",
    { class: "welcome" },
    h("h2", {}, words.t("start.title")),
    h("p", {}, words.t("start.what")),
    h(
      "ol",
      {},
      step(words.t("start.agent"), command(words, `pip install oomwatch\n${agent}`), h("p", { class: "muted" }, words.t("start.token"))),
      onlyHere
        ? step(words.t("start.elsewhere"), command(words, `oomwatch serve --listen 0.0.0.0:${port} --token ${words.t("start.your_token")} --reader-token ${words.t("start.your_token")}`))
        : null,
      step(words.t("start.log"), command(words, `${agent} --run my-run --log driver.log`)),
      step(words.t("start.ray"), command(words, `${agent} --ray ${words.t("start.ray_folder")}`)),
      step(words.t("start.check"), command(words, `${agent} --check`)),
    ),
    h("p", { class: "waiting", role: "status" }, h("i", { class: "dot" }), words.t("start.waiting")),
    h("h3", {}, words.t("start.demo")),
    command(words, `${agent} --simulate demo`),
  );
}

/** @param {string} what @param {...(HTMLElement | null)} how */
const step = (what, ...how) => h("li", {}, h("p", {}, what), ...how);

/** @param {Words} words @param {string} text */
const command = (words, text) => h("div", { class: "command" }, h("pre", {}, text), copyButton(words, text));
