/** The list of findings, those that are over, and what could not be checked. */

import { h, setText } from "./dom.js";
import { FindingCard } from "./finding.js";
import { hubText, t } from "./i18n.js";
import { identity, isCleared, ranked } from "./ranking.js";

const MAX_SHOWN = 60; // findings on the page; there are 42 codes

export class Findings {
  element = h("section", { class: "findings", "aria-labelledby": "findings-title" });
  #count = h("span", { class: "count" });
  #list = h("ol", { class: "finding-list" });
  #none = h("p", { class: "nothing" });
  #clearedTitle = h("summary");
  #clearedList = h("ol", { class: "finding-list" });
  #cleared = h("details", { class: "cleared", hidden: true }, this.#clearedTitle, this.#clearedList);
  #uncheckedTitle = h("summary");
  #uncheckedList = h("ul");
  #unchecked = h("details", { class: "unchecked", hidden: true }, this.#uncheckedTitle, this.#uncheckedList);
  #cards = new Map(); // identity → FindingCard
  #uncheckedShown = "";

  constructor() {
    const title = h("h2", { id: "findings-title" }, t("Findings"), this.#count);
    this.element.append(title, this.#none, this.#list, this.#cleared, this.#unchecked);
  }

  disconnect() {
    for (const card of this.#cards.values()) card.disconnect();
    this.#cards.clear();
  }

  update({ findings = [], not_checked: unchecked = [], steps }) {
    const order = ranked(findings).slice(0, MAX_SHOWN);
    const [over, active] = [order.filter(isCleared), order.filter((finding) => !isCleared(finding))];
    this.#forget(new Set(order.map(identity)));
    this.#fill(this.#list, active);
    this.#fill(this.#clearedList, over);
    setText(this.#count, active.length > 0 ? String(active.length) : "");
    this.#none.hidden = active.length > 0;
    setText(this.#none, steps > 0 ? t("Nothing found so far.") : t("Waiting for the first steps."));
    this.#cleared.hidden = over.length === 0;
    setText(this.#clearedTitle, t("Resolved ({count})", { count: over.length }));
    this.#showUnchecked(unchecked);
  }

  /** Focus the next (`by` 1) or previous (−1) finding. */
  step(by) {
    const items = [...this.#list.children];
    if (items.length === 0) return;
    const at = items.indexOf(document.activeElement?.closest(".finding"));
    const next = at < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + by));
    items[next].focus();
    items[next].scrollIntoView({ block: "nearest" });
  }

  /** Copy the fix of the focused finding, else of the first. */
  copyFix() {
    const element = document.activeElement?.closest(".finding") ?? this.#list.firstElementChild;
    [...this.#cards.values()].find((card) => card.element === element)?.copyFix();
  }

  #forget(known) {
    for (const [id, card] of this.#cards) {
      if (known.has(id)) continue;
      card.disconnect();
      this.#cards.delete(id);
    }
  }

  // Moving a focused element takes the focus from it, so elements stay where they are when the order holds.
  #fill(list, findings) {
    const elements = findings.map((finding) => this.#card(finding).element);
    if (elements.some((element, i) => list.children[i] !== element)) list.replaceChildren(...elements);
  }

  #card(finding) {
    const id = identity(finding);
    if (!this.#cards.has(id)) {
      const card = new FindingCard();
      card.connect();
      this.#cards.set(id, card);
    }
    const card = this.#cards.get(id);
    card.update(finding);
    return card;
  }

  #showUnchecked(unchecked) {
    this.#unchecked.hidden = unchecked.length === 0;
    const json = JSON.stringify(unchecked);
    if (json === this.#uncheckedShown) return;
    this.#uncheckedShown = json;
    setText(this.#uncheckedTitle, t("Not checked ({count})", { count: unchecked.length }));
    this.#uncheckedList.replaceChildren(...unchecked.map(({ code, why, i18n }) =>
      h("li", {}, h("code", {}, String(code)), " ", h("span", {}, hubText(i18n, why)))));
  }
}
