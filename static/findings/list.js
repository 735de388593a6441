/** The list of findings, those that are over, and what was checked besides. A range of time narrows it. */

import { h, setText } from "../app/dom.js";
import { isOver } from "../app/status.js";
import { overlaps } from "../charts/selection.js";
import { t } from "../locale/i18n.js";
import { FindingCard } from "./card.js";
import { Checks } from "./checks.js";

const MAX_SHOWN = 60; // findings on the page, the gravest ones

export class Findings {
  element = h("section", { class: "findings", "aria-labelledby": "findings-title" });
  #count = h("span", { class: "count" });
  #list = h("ol", { class: "finding-list" });
  #none = h("p", { class: "nothing" });
  #clearedTitle = h("summary");
  #clearedList = h("ol", { class: "finding-list" });
  #cleared = h("details", { class: "cleared", hidden: true }, this.#clearedTitle, this.#clearedList);
  #elsewhere = h("button", { type: "button", class: "elsewhere", hidden: true });
  #checks = new Checks();
  #cards = new Map(); // id → FindingCard
  #source;
  #update = {};

  /** `source`: `{selection, range, span(finding), tracks}`, see Selection, TimeRange and StepTimes. */
  constructor(source) {
    this.#source = source;
    const title = h("h2", { id: "findings-title" }, t("Findings"), this.#count);
    this.element.append(title, this.#none, this.#list, this.#elsewhere, this.#cleared, this.#checks.element);
  }

  connect() {
    this.#source.selection.connect(this.#selected);
    this.#source.range.connect(this.#moved);
    this.#elsewhere.addEventListener("click", this.#everywhere);
  }

  disconnect() {
    this.#source.selection.disconnect(this.#selected);
    this.#source.range.disconnect(this.#moved);
    this.#elsewhere.removeEventListener("click", this.#everywhere);
    for (const card of this.#cards.values()) card.disconnect();
    this.#cards.clear();
  }

  /** Codes of all checks that the hub has. */
  known(checks) {
    this.#checks.known(checks);
  }

  update(update) {
    this.#update = update;
    this.#source.selection.update(update.findings ?? []);
    this.#checks.update(update);
    this.refresh();
  }

  /** Show what lies in the range, of what is known. */
  refresh = () => {
    const { findings = [], steps } = this.#update;
    const all = findings.slice(0, MAX_SHOWN);
    const order = all.filter(this.#isHere);
    const [over, active] = [order.filter(isOver), order.filter((finding) => !isOver(finding))];
    this.#forget(new Set(all.map(({ id }) => id)));
    this.#fill(this.#list, active);
    this.#fill(this.#clearedList, over);
    setText(this.#count, active.length > 0 ? String(active.length) : "");
    this.#none.hidden = active.length > 0;
    const nothing = this.#source.range.following ? t("Nothing found so far.") : t("Nothing found in this range.");
    setText(this.#none, steps > 0 ? nothing : t("Waiting for the first steps."));
    this.#elsewhere.hidden = order.length === all.length;
    setText(this.#elsewhere, t("Outside this range: {count}", { count: all.length - order.length }));
    this.#cleared.hidden = over.length === 0;
    setText(this.#clearedTitle, t("Resolved ({count})", { count: over.length }));
  };

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

  #isHere = (finding) =>
    this.#source.range.following || overlaps(this.#source.span(finding), this.#source.range.bounds);

  #everywhere = () => this.#source.range.follow(Infinity);
  #selected = () => this.refresh();
  #moved = (moved) => moved && this.refresh();

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
    const { id } = finding;
    if (!this.#cards.has(id)) {
      const card = new FindingCard(this.#source);
      card.connect();
      this.#cards.set(id, card);
    }
    const card = this.#cards.get(id);
    card.update(finding);
    return card;
  }
}
