/** How the heat map is looked at: phases or waiting, a few ranks or all, worst first or by number. */

import { h, setText } from "../app/dom.js";
import { count } from "../app/format.js";
import { N, t } from "../locale/i18n.js";
import { FEW } from "./feed.js";

const CHOICES = {
  mode: { label: N("What the cells show"), of: [["phase", N("Phase")], ["wait", N("Waiting")]] },
  scope: { label: N("How many ranks"), of: [["few", N("Worst {few}")], ["all", N("All {known}")]] },
  order: { label: N("Order of the ranks"), of: [["worst", N("Worst first")], ["number", N("By number")]] },
};

export class RanksLook {
  element = h("div", { class: "rangebar ranks-look" });
  /** What is chosen: `{mode, scope, order}`. */
  chosen = { mode: "phase", scope: "few", order: "worst" };
  #onChange;
  #groups = {};

  constructor(onChange) {
    this.#onChange = onChange;
    for (const [name, { label, of }] of Object.entries(CHOICES)) {
      const buttons = of.map(([value]) => h("button", { type: "button", "data-choice": name, "data-value": value }));
      this.#groups[name] = h("div", { class: "segments", role: "group", "aria-label": t(label) }, ...buttons);
    }
    this.element.append(...Object.values(this.#groups));
    this.show(0);
  }

  connect() {
    this.element.addEventListener("click", this.#clicked);
  }

  disconnect() {
    this.element.removeEventListener("click", this.#clicked);
  }

  /** `known`: how many ranks there are; few of them need no choice of how many. */
  show(known) {
    this.#groups.scope.hidden = known <= FEW;
    for (const [name, { of }] of Object.entries(CHOICES)) {
      [...this.#groups[name].children].forEach((button, i) => {
        const [value, text] = of[i];
        setText(button, t(text, { few: FEW, known: count(known) }));
        button.setAttribute("aria-pressed", String(this.chosen[name] === value));
      });
    }
    this.known = known;
  }

  #clicked = (event) => {
    const { choice, value } = event.target.closest("button")?.dataset ?? {};
    if (choice === undefined || this.chosen[choice] === value) return;
    this.chosen = { ...this.chosen, [choice]: value };
    this.show(this.known);
    this.#onChange();
  };
}
