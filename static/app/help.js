/** The list of keys. */

import { h } from "./dom.js";
import { N, t } from "../locale/i18n.js";

const KEYS = [
  ["?", N("this list")], ["l", N("follow the newest data")], ["+  −", N("zoom in, out")], ["←  →", N("earlier, later")],
  ["j  k", N("next, previous finding")], ["c", N("copy its fix")], ["Enter", N("mark its steps in the charts")], ["Esc", N("mark nothing")], ["d", N("details and downloads")], ["t", N("theme: system, light, dark")], ["g r", N("all runs")], ["/", N("search the list of runs")],
];
const MOUSE = [
  [N("drag"), N("zoom all charts into a range")], [N("shift + drag"), N("move the range")], [N("double click"), N("follow the newest data")],
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
