/** The list of keys. */

import { h } from "./dom.js";

const KEYS = [
  ["?", "this list"], ["l", "follow the newest data"], ["+  −", "zoom in, out"], ["←  →", "earlier, later"],
  ["j  k", "next, previous finding"], ["c", "copy its fix"], ["t", "theme: system, light, dark"], ["g r", "all runs"],
];
const MOUSE = [
  ["drag", "zoom all charts into a range"], ["shift + drag", "move the range"], ["double click", "follow the newest data"],
];

export class Help {
  element = h("dialog", { class: "help", "aria-labelledby": "help-title" });
  #close = h("button", { type: "submit" }, "Close");

  constructor() {
    const rows = (entries) => entries.map(([keys, what]) =>
      h("div", {}, h("dt", {}, ...keys.split("  ").map((key) => h("kbd", {}, key))), h("dd", {}, what)));
    this.element.append(
      h("h2", { id: "help-title" }, "Keys"), h("dl", {}, ...rows(KEYS)),
      h("h2", {}, "On the charts"), h("dl", {}, ...rows(MOUSE)),
      h("form", { method: "dialog" }, this.#close));
  }

  toggle = () => {
    if (this.element.open) this.element.close();
    else this.element.showModal();
  };
}
