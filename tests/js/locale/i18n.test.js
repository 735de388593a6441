import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

import {
  hubText, language, N, otherLanguage, startLanguage, t, useMessages, word,
} from "../../../static/locale/i18n.js";

const STATIC = new URL("../../../static/", import.meta.url);
const sources = readdirSync(STATIC, { recursive: true }).filter((name) => name.endsWith(".js"));
// What the hub says, what its report says, and that nothing is translated in vain: test_translations.py.
const locales = readdirSync(new URL("locale/", STATIC)).filter((name) => name.endsWith(".json"));
const messagesOf = (name) => JSON.parse(readFileSync(new URL(`locale/${name}`, STATIC), "utf8")).messages;
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

test("every text of the page is translated into every language", () => {
  assert.ok(locales.includes("zh-CN.json") && texts.size > 300);
  for (const name of locales) {
    const messages = messagesOf(name);
    assert.deepEqual([...texts].filter((text) => !Object.hasOwn(messages, text)), [], name);
  }
});

test("a translation has exactly the parameters of its original", () => {
  for (const name of locales) {
    for (const [text, translated] of Object.entries(messagesOf(name)))
      assert.deepEqual(fields(translated), fields(text), text);
  }
});

const FOUND = { ok: true, json: async () => ({ messages: { Runs: "运行列表" } }) };

/** Stand-ins for what only a browser has; gives the addresses that were asked for. */
function browserIn(t_, wanted, { answer = FOUND, kept = null } = {}) {
  const asked = [];
  const stand = {
    document: { documentElement: { dataset: { languages: '{"zh-CN": "简体中文", "fr": "Français"}' }, lang: "" } },
    navigator: { languages: wanted },
    localStorage: { getItem: () => kept, setItem: () => {} },
    fetch: async (address) => (asked.push(address), answer),
  };
  for (const [name, value] of Object.entries(stand)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
    t_.after(() => (before ? Object.defineProperty(globalThis, name, before) : delete globalThis[name]));
  }
  t_.after(() => useMessages("en", {}));
  return asked;
}

const CHOICES = [
  [["zh-CN"], "zh-CN"], [["zh-TW"], "zh-CN"], [["de", "fr-CA", "en"], "fr"], [["en-GB", "zh"], "en"], [["de"], "en"],
];
for (const [wanted, code] of CHOICES) {
  test(`a browser that wants ${wanted} sees ${code}, of the languages that the hub's page names`, async (t_) => {
    const asked = browserIn(t_, wanted);
    await startLanguage();
    assert.equal(language(), code);
    assert.equal(document.documentElement.lang, code);
    assert.deepEqual(asked, code === "en" ? [] : [`static/locale/${code}.json`]);
    assert.equal(t("Runs"), code === "en" ? "Runs" : "运行列表");
  });
}

test("what was chosen before wins, and the button leads through all languages", async (t_) => {
  browserIn(t_, ["de"], { kept: "zh-CN" });
  await startLanguage();
  assert.equal(language(), "zh-CN");
  assert.deepEqual(otherLanguage(), { code: "fr", name: "Français" });
});

test("without its catalogue the page is English, and says so", async (t_) => {
  browserIn(t_, ["zh-CN"], { answer: { ok: false, status: 404 } });
  await startLanguage();
  assert.equal(document.documentElement.lang, "en");
});
