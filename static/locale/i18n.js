/**
 * What the page says, in the viewer's language. The English text is the key: a text that nobody translated
 * is shown in English, and English needs no catalogue.
 */

const KEY = "torchvitals.language";
const FIELD = /\{(\w+)(![rs])?(:[^{}]*)?\}/g; // {name}; the hub's templates may carry Python's format with it

/** Languages: code → its own name. The page that the hub sends names those whose catalogues lie beside this file. */
const languages = () => ({ en: "English", ...JSON.parse(document.documentElement.dataset.languages || "{}") });

let current = "en";
let messages = {};
const listeners = new Set();

/** The text of `template` in the viewer's language, each `{name}` replaced by the parameter of that name. */
export function t(template, params = {}) {
  const text = Object.hasOwn(messages, template) ? messages[template] : template;
  return text.replace(FIELD, (field, name) => (Object.hasOwn(params, name) ? String(params[name]) : field));
}

/** Marks a text of a table for translation; it is translated where it is shown, with `t`. */
export function N(template) {
  return template;
}

/**
 * A text of the hub: `pair` is `[template, params]` where it can be translated, `text` the same in English.
 * Parameters may be such pairs themselves, or words that the catalogue knows.
 */
export function hubText(pair, text = "") {
  if (current === "en" || !Array.isArray(pair) || !Object.hasOwn(messages, pair[0])) return word(text);
  const params = Object.entries(pair[1] ?? {}).map(([name, value]) => [name, Array.isArray(value) ? hubText(value) : word(value)]);
  return t(pair[0], Object.fromEntries(params));
}

/** A word of the hub (a phase, a cause) in the viewer's language; as it came where nobody translated it. */
export function word(text) {
  return Object.hasOwn(messages, text) ? messages[text] : String(text);
}

/** Code of the language shown: "en", "zh-CN" … */
export function language() {
  return current;
}

/** The language that the button leads to: `{code, name}`. */
export function otherLanguage() {
  const known = languages();
  const codes = Object.keys(known);
  const code = codes[(codes.indexOf(current) + 1) % codes.length];
  return { code, name: known[code] };
}

/** `listener()` when another language is shown. */
export function onLanguage(listener) {
  listeners.add(listener);
}

/** Show the page in the language chosen before, else in the browser's. */
export function startLanguage() {
  return show(stored() ?? fromBrowser());
}

/** Show the page in the language `code`, here and at every later visit. */
export async function chooseLanguage(code) {
  try {
    localStorage.setItem(KEY, code);
  } catch {
    // A browser that keeps nothing still changes its language.
  }
  await show(code);
  for (const listener of listeners) listener();
}

/** The catalogue in use, for tests. */
export function useMessages(code, catalogue) {
  current = code;
  messages = catalogue;
}

async function show(code) {
  try {
    useMessages(code, code === "en" ? {} : await catalogue(code));
  } catch {
    useMessages("en", {}); // the hub is gone: English is here already
  }
  document.documentElement.lang = current;
}

async function catalogue(code) {
  const answer = await fetch(`static/locale/${code}.json`);
  if (!answer.ok) throw new Error(`no catalogue: ${answer.status}`);
  return (await answer.json()).messages;
}

function stored() {
  try {
    const code = localStorage.getItem(KEY);
    return Object.hasOwn(languages(), code) ? code : null;
  } catch {
    return null;
  }
}

/** The first of the browser's languages that we have; another region's is better than none. */
function fromBrowser() {
  const codes = Object.keys(languages());
  for (const wanted of navigator.languages ?? []) {
    const alike = codes.filter((code) => primary(code) === primary(wanted));
    if (alike.length > 0) return alike.find((code) => code.toLowerCase() === wanted.toLowerCase()) ?? alike[0];
  }
  return "en";
}

function primary(code) {
  return code.toLowerCase().split("-")[0];
}
