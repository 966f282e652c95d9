// The page as files: every sentence is in the catalogue, nothing is left over, and nothing comes from elsewhere.

import assert from "node:assert/strict";
import { test } from "node:test";

import { catalogue, chinese, english, pageFile, scripts } from "./reading.js";

const sources = scripts();
const everything = [...sources.values()].join("\n");
const OTHERS = ["notify.", "figure.", "fact.", "coverage.problem.", "because.", "cause.", "evidence.", "remedy.", "incident.", "hides.", "plan.", "doctor.ask.", "doctor.read.", "doctor.report.", "doctor.text."]; // the server's own
const ours = Object.keys(catalogue).filter((key) => !OTHERS.some((space) => key.startsWith(space)));

/** Keys as scripts write them; "x.${y}" stands for every key that begins with "x.". */
function usedKeys() {
  const exact = new Set([...everything.matchAll(/["'`]([a-z]+\.[a-z_0-9]+)["'`]/g)].map((match) => match[1]));
  const families = [...everything.matchAll(/`((?:[a-z]+\.)+(?:[a-z_]*))\$\{/g)].map((match) => match[1]);
  return { exact, families };
}

test("every key has both languages with the same placeholders", () => {
  for (const [key, sentences] of Object.entries(catalogue)) {
    assert.deepEqual(Object.keys(sentences).sort(), ["en", "zh"], key);
    const names = Object.values(sentences).map((sentence) =>
      [...sentence.matchAll(/\{(\w+)\}/g)].map((match) => match[1]).sort(),
    );
    assert.deepEqual(names[0], names[1], key);
  }
});

test("brackets and colons between texts are the catalogue's, for Chinese has its own", () => {
  const speechless = ["js/i18n.js", "js/wire.js"]; // an expression over keys, and what is said of a defect of ours
  const written = [...sources].filter(([name, source]) => !speechless.includes(name) && / \(\$\{|\}: (\$\{|`)/.test(source));
  assert.deepEqual(written.map(([name]) => name), []);
});

test("every sentence of the page is used, and every one used is there", () => {
  const { exact, families } = usedKeys();
  const stem = (/** @type {string} */ key) => key.replace(/\.(one|other)$/, "");
  const unused = ours.filter((key) => !exact.has(stem(key)) && !families.some((family) => key.startsWith(family)));
  assert.deepEqual(unused, []);
  const spaces = new Set(ours.map((key) => key.split(".")[0]));
  const known = new Set([...Object.keys(catalogue), ...ours.map(stem)]);
  const missing = [...exact].filter(
    (key) => spaces.has(key.split(".")[0]) && !known.has(key) && !sources.has(`js/${key}`),
  );
  assert.deepEqual(missing, []);
});

test("a key that is not there is shown as itself", () => {
  assert.equal(english.t("no.such"), "no.such");
});

test("placeholders are filled once, and numbers in the reader's way", () => {
  assert.equal(english.count("fleet.gpus", 1), "1 GPU");
  assert.equal(english.count("fleet.gpus", 10_000), "10,000 GPUs");
  assert.equal(chinese.count("fleet.gpus", 10_000), "10,000 块 GPU");
  assert.equal(english.t("name.gpu", { gpu: "{n}" }), "GPU {n}");
});

/** The scripts that one needs before it runs. @param {string} path @param {Set<string>} [found] */
function needs(path, found = new Set()) {
  if (found.has(path)) return found;
  found.add(path);
  const wanted = (sources.get(path) ?? "").matchAll(/^(?:import|export)\s[^;]*?from\s+"(\.[^"]+)"/gm);
  for (const [, name] of wanted) needs(new URL(name, `file:///${path}`).pathname.slice(1), found);
  return found;
}

test("a view that is not the first one is fetched when it is wanted", () => {
  const first = needs("js/main.js");
  const fetched = [...(sources.get("js/views.js") ?? "").matchAll(/import\("\.\/(views\/[^"]+)"\)/g)].map((match) => `js/${match[1]}`);
  assert.ok(fetched.length > 5);
  for (const path of fetched) assert.ok(sources.has(path) && !first.has(path), path);
  const reached = new Set([...first, ...fetched.flatMap((path) => [...needs(path)])]);
  assert.deepEqual([...sources.keys()].filter((path) => !reached.has(path)), []); // nothing is left over
});

test("no script sets markup, styles from strings or evaluates text", () => {
  for (const [path, source] of sources) {
    assert.doesNotMatch(source, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, path);
  }
  assert.doesNotMatch(pageFile("index.html"), /<style|style="| on\w+="|<script(?![^>]*src=)/);
});

test("the page asks no other host for anything", () => {
  const files = new Map([...sources, ["index.html", pageFile("index.html")], ["style.css", pageFile("style.css")]]);
  for (const [path, source] of files) {
    const addresses = [...source.matchAll(/https?:\/\/[^\s"'`)]+/g)]
      .map((match) => match[0])
      .filter((address) => address !== "http://www.w3.org/2000/svg");
    assert.deepEqual(addresses, [], path);
  }
});

test("only plotly.js loads plotly", () => {
  const knowing = [...sources].filter(([, source]) => /\bPlotly\b/.test(source)).map(([path]) => path);
  assert.deepEqual(knowing, ["js/plotly.js"]);
});
