/** Keyboard: single keys and two-key sequences, silent while something is being typed, and what they do. */

import { N, t } from "../locale/i18n.js";
import { h } from "./dom.js";

const SEQUENCE_MS = 900; // longest pause between the keys of a sequence

export class Keys {
  #actions;
  #before = { key: "", atMs: -Infinity };

  /** `actions`: "t" or "g r" → function. */
  constructor(actions) {
    this.#actions = actions;
  }

  connect() {
    document.addEventListener("keydown", this.#pressed);
  }

  disconnect() {
    document.removeEventListener("keydown", this.#pressed);
  }

  #pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") !== null && event.key !== "?") return;
    const sequence = event.timeStamp - this.#before.atMs < SEQUENCE_MS ? `${this.#before.key} ${event.key}` : "";
    const action = this.#actions[sequence] ?? this.#actions[event.key];
    this.#before = { key: event.key, atMs: event.timeStamp };
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
}

function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

const KEYS = [
  ["?", N("this list")],
  ["l", N("follow the newest data")],
  ["+  −", N("zoom in, out")],
  ["←  →", N("earlier, later")],
  ["j  k", N("next, previous finding")],
  ["c", N("copy its fix")],
  ["Enter", N("mark its steps in the charts")],
  ["Esc", N("mark nothing")],
  ["d", N("details and downloads")],
  ["t", N("theme: system, light, dark")],
  ["g r", N("all runs")],
  ["/", N("search the list of runs")],
];
const MOUSE = [
  [N("drag"), N("zoom all charts into a range")],
  [N("shift + drag"), N("move the range")],
  [N("double click"), N("follow the newest data")],
];

export class Help {
  element = h("dialog", { class: "help", "aria-labelledby": "help-title" });
  #close = h("button", { type: "submit" }, t("Close"));

  constructor() {
    const rows = (entries) => entries.map(([keys, what]) =>
      h("div", {}, h("dt", {}, ...keys.split("  ").map((key) => h("kbd", {}, t(key)))), h("dd", {}, t(what))));
    this.element.append(
      h("h2", { id: "help-title" }, t("Keys")), h("dl", {}, ...rows(KEYS)),
      h("h2", {}, t("On the charts")), h("dl", {}, ...rows(MOUSE)),
      h("form", { method: "dialog" }, this.#close));
  }

  toggle = () => {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  };
}
