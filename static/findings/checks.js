/** What was looked for and not found, and what could not be looked for: collapsed, for who wants to know. */

import { h, setText } from "../app/dom.js";
import { isOver } from "../app/status.js";
import { hubText, t } from "../locale/i18n.js";

export class Checks {
  element = h("div", { class: "checks" });
  #all = [];
  #newest = {};
  #shown = "";
  #passedTitle = h("summary");
  #passedList = h("ul");
  #passed = h("details", { class: "passed", hidden: true }, this.#passedTitle, this.#passedList);
  #uncheckedTitle = h("summary");
  #uncheckedList = h("ul");
  #unchecked = h("details", { class: "unchecked", hidden: true }, this.#uncheckedTitle, this.#uncheckedList);

  constructor() {
    this.element.append(this.#passed, this.#unchecked);
  }

  /** Codes of all checks that the hub has: told with the snapshot, which may come after the first update. */
  known(codes) {
    this.#all = codes;
    this.update(this.#newest);
  }

  update(update) {
    this.#newest = update;
    const { findings = [], not_checked: unchecked = [] } = update;
    const found = new Set(findings.filter((finding) => !isOver(finding)).map(({ code }) => code));
    const absent = new Set(unchecked.map(({ code }) => code));
    const passed = this.#all.filter((code) => !found.has(code) && !absent.has(code));
    const json = JSON.stringify([passed, unchecked]);
    if (json === this.#shown) return;
    this.#shown = json;
    this.#passed.hidden = passed.length === 0;
    setText(this.#passedTitle, t("Passed ({count})", { count: passed.length }));
    this.#passedList.replaceChildren(...passed.map((code) => h("li", {}, h("code", {}, code))));
    this.#unchecked.hidden = unchecked.length === 0;
    setText(this.#uncheckedTitle, t("Not checked ({count})", { count: unchecked.length }));
    this.#uncheckedList.replaceChildren(...unchecked.map(({ code, why, i18n }) =>
      h("li", {}, h("code", {}, String(code)), " ", h("span", {}, hubText(i18n, why)))));
  }
}
