import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import { hubText, N, t, useMessages, word } from "../../../static/locale/i18n.js";
import { MESSAGES } from "../../../static/locale/zh.js";
import { REPORT } from "../../../static/locale/zh-report.js";

const STATIC = new URL("../../../static/", import.meta.url);
// What the hub says, and its report: test_translations.py and test_language.py hold these.
const HUB = ["locale/zh-findings.js", "locale/zh-gpu.js", "locale/zh-report.js"];
// The hub sends charts with their titles; tests/diagnosis/test_translations.py holds that these are translated.
const PANELS = readFileSync(new URL("../monitor/panels.py", STATIC), "utf8");
const keysIn = (name) =>
  [...readFileSync(new URL(name, STATIC), "utf8").matchAll(/^ {2}("(?:[^"\\]|\\.)*"):/gm)].map((match) =>
    JSON.parse(match[1]),
  );
const files = readdirSync(STATIC, { recursive: true }).filter((name) => name.endsWith(".js"));
const sources = files.filter((name) => !name.startsWith("locale/zh"));
const catalogues = files.filter((name) => name.startsWith("locale/zh-"));
const fields = (text) =>
  [...new Set([...text.matchAll(/\{(\w+)(?:![rs])?(?::[^{}]*)?\}/g)].map((match) => match[1]))].sort();

/** Every text in the sources that is handed to t() or N(), and calls of t() that are handed none. */
function used() {
  const texts = new Set();
  for (const name of sources) {
    const source = readFileSync(new URL(name, STATIC), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
    const found = source.matchAll(/(?<![\w$.])[tN]\(\s*"((?:[^"\\]|\\.)*)"/g);
    for (const [, text] of found) texts.add(JSON.parse(`"${text}"`));
    const strange = source.match(/(?<![\w$.])[tN]\(\s*[`'].*/);
    assert.equal(strange, null, `${name}: a text to translate stands in double quotes: ${strange?.[0]}`);
  }
  return texts;
}

const texts = used();
const charts = new Set([...PANELS.matchAll(/"([^"\n]+)"/g)].map(([, text]) => text));

function in_(code, catalogue, act) {
  useMessages(code, catalogue);
  try {
    act();
  } finally {
    useMessages("en", {});
  }
}

test("English is the key and needs no catalogue", () => {
  assert.equal(t("at step {step}", { step: 7 }), "at step 7");
  assert.equal(t(N("Runs")), "Runs");
});

test("a translation takes the same parameters, in its own order", () => {
  in_("zh-CN", { "{a} before {b}": "{b}后于{a}" }, () => assert.equal(t("{a} before {b}", { a: 1, b: 2 }), "2后于1"));
});

test("a text that nobody translated is shown in English, and no parameter is invented", () => {
  in_("zh-CN", {}, () => assert.equal(t("{a} and {b}", { a: "x" }), "x and {b}"));
  assert.equal(t("{constructor}", {}), "{constructor}");
});

test("a parameter is text: braces in it are not filled in, and no pattern of replace works in it", () => {
  assert.equal(t("{a}{b}", { a: "{b}", b: "$&" }), "{b}$&");
});

test("the hub's texts are translated by template, nested ones and known words too", () => {
  const catalogue = { "slower {phase}": "{phase}变慢", forward: "前向", "{title}: {n:.1f} ms": "{title}：{n} 毫秒" };
  in_("zh-CN", catalogue, () => {
    assert.equal(hubText(["slower {phase}", { phase: "forward" }], "slower forward"), "前向变慢");
    const pair = ["{title}: {n:.1f} ms", { title: ["slower {phase}", { phase: "forward" }], n: "3.2" }];
    assert.equal(hubText(pair, "slower forward: 3.2 ms"), "前向变慢：3.2 毫秒");
    assert.equal(word("train.py"), "train.py");
  });
});

test("the hub's own English stands where there is no template, and whoever reads English sees exactly that", () => {
  assert.equal(hubText(["{n:.1f} ms", { n: "9" }], "3.2 ms"), "3.2 ms");
  in_("zh-CN", {}, () => assert.equal(hubText(["unknown {n}", { n: 1 }], "as the hub said"), "as the hub said"));
  assert.equal(hubText(undefined, "old"), "old");
});

test("every text of the page has a Chinese translation", () => {
  assert.deepEqual([...texts].filter((text) => !Object.hasOwn(MESSAGES, text)), []);
});

test("every Chinese text of the page is used", () => {
  const own = catalogues.filter((name) => !HUB.includes(name)).flatMap(keysIn);
  assert.deepEqual(own.filter((text) => !texts.has(text) && !charts.has(text)), []);
});

test("a translation has exactly the parameters of its original", () => {
  for (const [text, chinese] of Object.entries({ ...MESSAGES, ...REPORT }))
    assert.deepEqual(fields(chinese), fields(text), text);
});

test("no English text stands in a catalogue twice", () => {
  const keys = catalogues.flatMap(keysIn);
  assert.deepEqual(keys.filter((key, i) => keys.indexOf(key) !== i), []);
  assert.equal(new Set(keys).size, Object.keys(MESSAGES).length + Object.keys(REPORT).length);
});
