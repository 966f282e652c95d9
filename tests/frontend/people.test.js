// What concerns all views: keys, choices, zones, breaks of the connection, and news.

import assert from "node:assert/strict";
import { test } from "node:test";

import { serverOf } from "../../frontend/oomwatch_frontend/js/elements/first-run.js";
import { clockTime, moment } from "../../frontend/oomwatch_frontend/js/format.js";
import { localStamp } from "../../frontend/oomwatch_frontend/js/ink.js";
import { KEYS, Presses } from "../../frontend/oomwatch_frontend/js/keys.js";
import { missedBetween, together } from "../../frontend/oomwatch_frontend/js/missed.js";
import { News, claim, nameOf } from "../../frontend/oomwatch_frontend/js/news.js";
import { readPreferences } from "../../frontend/oomwatch_frontend/js/preferences.js";
import { openOf } from "../../frontend/oomwatch_frontend/js/rulewatch.js";
import { readMistakes } from "../../frontend/oomwatch_frontend/js/rulewire.js";
import { setZone } from "../../frontend/oomwatch_frontend/js/zone.js";
import { english } from "./reading.js";

/** @typedef {import("../../frontend/oomwatch_frontend/js/wire.js").Alert} Alert */

/** @param {Partial<Alert>} parts @returns {Alert} one that fires since second 1000 */
const alert = (parts) =>
  /** @type {Alert} */ ({
    ...{ id: "a", alert: "gpu_memory_high", severity: "critical", state: "firing", labels: {}, started_at: 970 },
    ...{ fired_at: 1000, ended_at: null, muted: [], acknowledged: null, texts: {}, lowered_from: null },
    ...parts,
  });

/** @param {...Alert} alerts */
const known = (...alerts) => new Map(alerts.map((one) => [one.id, one]));

// ---------------------------------------------------------------- keys

test("g and a letter after it are one key, and each stands for one thing", () => {
  const presses = new Presses();
  assert.equal(presses.take("g", 0), null);
  assert.equal(presses.take("a", 300)?.does, "alerts");
  assert.equal(presses.take("a", 400), null);
  assert.equal(new Set(KEYS.map(({ keys }) => keys)).size, KEYS.length);
});

test("a letter long after g, or after a wrong one, is what it is alone", () => {
  const presses = new Presses();
  presses.take("g", 0);
  assert.equal(presses.take("u", 5000)?.does, "zone");
  presses.take("g", 6000);
  assert.equal(presses.take("x", 6100), null);
  assert.equal(presses.take("?", 6200)?.does, "help");
});

test("g twice still waits for its letter", () => {
  const presses = new Presses();
  presses.take("g", 0);
  presses.take("g", 100);
  assert.equal(presses.take("g", 200), null);
  assert.equal(presses.take("r", 300)?.does, "runs");
});

// ---------------------------------------------------------------- choices, zones

test("choices that were kept are read, and what is odd in them is as usual", () => {
  const usual = { zone: "local", keys: true, notify: false, sound: false };
  assert.deepEqual(readPreferences(null), usual);
  assert.deepEqual(readPreferences("{"), usual);
  assert.deepEqual(readPreferences("[1]"), usual);
  assert.deepEqual(readPreferences('{"zone":"mars","keys":"no","notify":true}'), { ...usual, notify: true });
  assert.equal(readPreferences('{"zone":"utc"}').zone, "utc");
});

test("in UTC every time says so, and charts agree with the text", () => {
  const at = Date.UTC(2026, 10, 30, 23, 30) / 1000;
  setZone("utc");
  try {
    assert.equal(clockTime(english, at, at), "23:30\u00a0UTC");
    assert.match(clockTime(english, at, at + 3600), /Nov 30, 23:30\u00a0UTC/);
    assert.match(moment(english, at), /23:30:00 UTC$/);
    assert.equal(localStamp(at), "2026-11-30 23:30:00.000");
  } finally {
    setZone("local");
  }
});

// ---------------------------------------------------------------- the guide

test("agents are told the address that the page came from, whatever lies before it", () => {
  assert.deepEqual(serverOf(new URL("http://127.0.0.1:8642/")), { server: "127.0.0.1:8642", onlyHere: true });
  assert.deepEqual(serverOf(new URL("http://[::1]:8642/")), { server: "[::1]:8642", onlyHere: true });
  assert.deepEqual(serverOf(new URL("https://ops.example/oomwatch/")), {
    server: "https://ops.example/oomwatch",
    onlyHere: false,
  });
});

// ---------------------------------------------------------------- breaks of the connection

test("nothing is missed where the same fires before and after", () => {
  assert.equal(missedBetween(known(alert({})), [alert({})], 1100, 1200), null);
});

test("what fired, what ended, and what came and went during a break is missed", () => {
  const over = /** @type {const} */ ({ state: "resolved", ended_at: 1150 });
  const before = known(alert({ id: "old" }), alert({ id: "pending", state: "pending", fired_at: null }));
  const after = [
    alert({ id: "old", ...over }),
    alert({ id: "pending", fired_at: 1120 }),
    alert({ id: "new", fired_at: 1130 }),
    alert({ id: "brief", fired_at: 1110, ...over }),
    alert({ id: "waiting", state: "pending", fired_at: null }),
  ];
  const missed = missedBetween(before, after, 1100, 1200);
  assert.deepEqual(missed?.fired.map(({ id }) => id), ["pending", "new", "brief"]);
  assert.deepEqual(missed?.ended.map(({ id }) => id), ["old", "brief"]);
});

test("what had ended long before the break is none of it", () => {
  const over = alert({ id: "ancient", state: "resolved", ended_at: 500 });
  assert.equal(missedBetween(known(), [over], 1100, 1200), null);
});

test("two breaks that nobody looked at are told as one", () => {
  const first = missedBetween(known(), [alert({ id: "a" })], 1000, 1010);
  const second = missedBetween(known(alert({ id: "a" })), [alert({ id: "a", state: "resolved", ended_at: 1050 })], 1040, 1060);
  const both = together(first, second);
  assert.deepEqual([both?.from, both?.to, both?.fired.length, both?.ended.length], [1000, 1060, 1, 1]);
  assert.equal(together(first, null), first);
});

// ---------------------------------------------------------------- news

test("what fires when the page is opened is no news, and what fires later is, once", () => {
  const news = new News();
  assert.deepEqual(news.of([alert({ id: "a" })]), []);
  assert.deepEqual(news.of([alert({ id: "a" }), alert({ id: "b" })]).map(({ id }) => id), ["b"]);
  assert.deepEqual(news.of([alert({ id: "a" }), alert({ id: "b" })]), []);
});

test("one is told of again when it becomes graver, and not when it becomes milder", () => {
  const news = new News();
  news.of([]);
  assert.equal(news.of([alert({ severity: "warning" })]).length, 1);
  assert.equal(news.of([alert({ severity: "critical" })]).length, 1);
  assert.equal(news.of([alert({ severity: "warning" })]).length, 0);
  assert.equal(news.of([alert({ severity: "critical" })]).length, 0);
});

test("nobody is told of what is pending, informs, is muted or taken care of; one whose mute ends is news", () => {
  const news = new News();
  news.of([]);
  const mute = { kind: /** @type {const} */ ("silence"), by: "s", until: null, note: null };
  assert.deepEqual(
    news.of([
      alert({ id: "p", state: "pending" }),
      alert({ id: "i", severity: "info" }),
      alert({ id: "m", muted: [mute] }),
      alert({ id: "t", acknowledged: { by: "wei", at: 1, note: null } }),
    ]),
    [],
  );
  assert.deepEqual(news.of([alert({ id: "m" })]).map(({ id }) => id), ["m"]);
});

test("of two tabs the second one finds nothing left to tell", () => {
  const names = [alert({ id: "a" }), alert({ id: "b" })].map(nameOf);
  const first = claim([], names);
  assert.deepEqual(first.mine, names);
  assert.deepEqual(claim(first.told, [...names, "c/warning"]), { mine: ["c/warning"], told: [...names, "c/warning"] });
});

test("of what was told the latest is kept", () => {
  const many = Array.from({ length: 501 }, (_, index) => `${index}/warning`);
  assert.deepEqual(claim(["old/warning"], many), { mine: many, told: many.slice(1) });
});

// ---------------------------------------------------------------- rules

test("a rule's open alerts are its own, those that were lowered with them", () => {
  const rule = { alert: "gpu_memory_high", severity: "warning" };
  const alerts = [
    alert({ id: "own", severity: "warning" }),
    alert({ id: "lowered", severity: "info", lowered_from: "warning" }),
    alert({ id: "graver", severity: "critical" }),
    alert({ id: "over", severity: "warning", state: "resolved" }),
    alert({ id: "other", alert: "host_memory_high", severity: "warning" }),
  ];
  assert.deepEqual(openOf(alerts, rule).map(({ id }) => id), ["own", "lowered"]);
});

test("mistakes are read from a refusal, and from none where it has none", () => {
  const mistakes = [{ line: 3, column: 5, message: "unknown metric" }];
  assert.deepEqual(readMistakes({ error: "the file has 1 mistake", mistakes }), mistakes);
  assert.deepEqual(readMistakes({ error: "no" }), []);
  assert.deepEqual(readMistakes(null), []);
});
