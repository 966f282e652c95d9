import assert from "node:assert/strict";
import { test } from "node:test";

import { bandShape } from "../../frontend/oomwatch_frontend/js/chart-lines.js";
import { localStamp } from "../../frontend/oomwatch_frontend/js/ink.js";
import { emptySeries, extend, readSeries, stepFor, withGaps } from "../../frontend/oomwatch_frontend/js/history.js";
import { chooseLanguage } from "../../frontend/oomwatch_frontend/js/i18n.js";
import { headsOf, splitCode, stopOf } from "../../frontend/oomwatch_frontend/js/parts.js";
import { link, parseRoute } from "../../frontend/oomwatch_frontend/js/router.js";
import { LiveSocket, waitBefore } from "../../frontend/oomwatch_frontend/js/socket.js";
import { nextTheme, readTheme } from "../../frontend/oomwatch_frontend/js/theme.js";
import { chinese, english } from "./reading.js";

test("an address leads back to what it was made of, whatever the names hold", () => {
  const hash = link("gpu", ["a/b 100%", "3:1"], { span: "900", run: "" });
  assert.deepEqual(parseRoute(hash), { view: "gpu", args: ["a/b 100%", "3:1"], query: { span: "900" } });
});

test("no address is the fleet, and one that someone mistyped is no error", () => {
  assert.equal(parseRoute("").view, "fleet");
  assert.deepEqual(parseRoute("#/run/100%").args, ["100%"]);
});

test("the language is the chosen one, else the first that the browser prefers and the page speaks", () => {
  assert.equal(chooseLanguage("zh", ["en"]), "zh");
  assert.equal(chooseLanguage(null, ["fr", "zh-TW", "en"]), "zh");
  assert.equal(chooseLanguage("klingon", ["fr"]), "en");
});

test("a table is called by its heads, listed as the language does, and a column without one is left out", () => {
  assert.equal(headsOf(english, ["Rule", "", "State"]), "Rule, State");
  assert.equal(headsOf(chinese, ["规则", "", "状态"]), "规则、状态");
});

test("the theme goes round", () => {
  assert.deepEqual([nextTheme("system"), nextTheme("light"), nextTheme("dark")], ["light", "dark", "system"]);
  assert.equal(readTheme("mauve"), "system");
});

test("the wait grows to ten seconds, with a quarter at random on top", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 9].map((tries) => waitBefore(tries, () => 0)),
    [500, 1000, 2000, 4000, 8000, 10_000],
  );
  assert.equal(
    waitBefore(9, () => 1),
    12_500,
  );
});

/** A socket that a test opens and closes by hand. */
class FakeSocket {
  onopen = () => {};
  /** @param {{ code: number }} _ */
  onclose = (_) => {};
  /** @param {{ data: string }} _ */
  onmessage = (_) => {};
  closed = false;
  close() {
    this.closed = true;
  }
}

test("a closed connection is tried again, sooner once a frame has come", (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  /** @type {FakeSocket[]} */
  const made = [];
  /** @type {string[]} */
  const heard = [];
  const handlers = {
    opened: () => void heard.push("opened"),
    frame: (/** @type {string} */ text) => void heard.push(text),
    lost: () => void heard.push("lost"),
    ended: () => void heard.push("ended"),
  };
  const socket = new LiveSocket(() => "ws://x", handlers, () => {
    made.push(new FakeSocket());
    return /** @type {any} */ (made[made.length - 1]);
  });
  socket.connect();
  made[0].onclose({ code: 1006 });
  context.mock.timers.tick(700);
  made[1].onopen();
  made[1].onmessage({ data: "frame" });
  made[1].onclose({ code: 1012 });
  context.mock.timers.tick(700);
  assert.equal(made.length, 3);
  assert.deepEqual(heard, ["lost", "opened", "frame", "lost"]);
  made[2].onclose({ code: 4401 });
  context.mock.timers.tick(60_000);
  assert.deepEqual([made.length, heard.at(-1)], [3, "ended"]);
});

test("a connection that was replaced is closed and says nothing any more", () => {
  /** @type {FakeSocket[]} */
  const made = [];
  const fail = () => assert.fail("it spoke");
  const socket = new LiveSocket(() => "ws://x", { opened: fail, frame: fail, lost: fail, ended: fail }, () => {
    made.push(new FakeSocket());
    return /** @type {any} */ (made[made.length - 1]);
  });
  socket.connect();
  socket.connect();
  assert.ok(made[0].closed);
  assert.equal(made[0].onclose, null);
});

test("settings in a text are set as code, and sentences stay sentences", () => {
  assert.deepEqual(splitCode("Lower actor.rollout.n (by 1), or set data.x_y=True."), [
    "Lower ",
    "actor.rollout.n",
    " (by 1), or set ",
    "data.x_y=True",
    ".",
  ]);
  assert.deepEqual(splitCode("Start with VERL_LOGGING_LEVEL=DEBUG; see `--ray DIR`."), [
    "Start with ",
    "VERL_LOGGING_LEVEL=DEBUG",
    "; see ",
    "--ray DIR",
    ".",
  ]);
  assert.deepEqual(splitCode("It took 1.5 s. Then it ended."), ["It took 1.5 s. Then it ended."]);
  assert.deepEqual(splitCode("调低 data.max_response_length。"), ["调低 ", "data.max_response_length", "。"]);
});

test("a full stop stays at its setting, before the button that copies it", () => {
  assert.deepEqual([".", "). Then it", "。", "; see ", " (by 1)", ""].map(stopOf), [".", ").", "。", ";", "", ""]);
});

test("live readings that share a point of the history are put together in it", () => {
  const series = emptySeries();
  for (const [at, value] of /** @type {[number, number | null][]} */ ([
    [600, null],
    [601, 4],
    [603, 8],
    [604, 3],
    [604, 9],
    [700, 1],
  ])) {
    extend(series, at, value, 60_000); // points of 100 s
  }
  assert.deepEqual(
    [series.at, series.min, series.max, series.mean],
    [
      [600, 700],
      [3, 1],
      [8, 1],
      [5, 1],
    ],
  );
});

test("a series grows by what is new and lets go of what left the window", () => {
  const series = emptySeries();
  for (const at of [10, 11, 11, 12, 20]) extend(series, at, at, 9);
  assert.deepEqual(series.at, [11, 12, 20]);
  assert.deepEqual(series.mean, series.at);
  assert.equal(stepFor(900), 2);
  assert.equal(stepFor(60), 1);
});

test("history with columns of different lengths is refused", () => {
  assert.throws(() => readSeries({ at: [1], min: [], max: [1], mean: [1] }), /one length/);
  assert.throws(() => readSeries(null), /one length/);
});

test("a band has one closed shape for each stretch without a gap", () => {
  const shape = bandShape([1, 2, 3, 4], [1, null, 3, 4], [2, null, 5, 6]);
  assert.deepEqual(shape.x, [1, 1, null, 3, 4, 4, 3, null]);
  assert.deepEqual(shape.y, [2, 1, null, 5, 6, 4, 3, null]);
  assert.deepEqual(shape.at, [0, 0, null, 2, 3, 3, 2, null]);
});

test("a chart's times are written in the reader's zone", () => {
  const date = new Date(2026, 10, 29, 14, 3, 9);
  assert.equal(localStamp(date.getTime() / 1000), "2026-11-29 14:03:09.000");
});

test("where nothing came for long there is a gap, and none between readings that are on time", () => {
  const series = { ...emptySeries(), at: [0, 10, 100, 105], mean: [1, 2, 3, null] };
  assert.deepEqual(withGaps(series, 60), { at: [0, 10, 70, 100, 105], mean: [1, 2, null, 3, null] });
});
