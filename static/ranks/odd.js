/** Ranks that stand out, each with an icon, a word and what is known; pressing one shows it. */

import { h } from "../app/dom.js";
import { count } from "../app/format.js";
import { t } from "../locale/i18n.js";
import { icon } from "../app/icons.js";
import { ODD, oddOnes, oddText } from "./words.js";

const MOST = 6; // named; of the rest their number

export class RanksOdd {
  element = h("ul", { class: "ranks-odd" });
  #shown = "";
  #onSelect;

  /** `onSelect(rank)` when one is pressed. */
  constructor(onSelect) {
    this.#onSelect = onSelect;
  }

  connect() {
    this.element.addEventListener("click", this.#clicked);
  }

  disconnect() {
    this.element.removeEventListener("click", this.#clicked);
  }

  /** `data`: the hub's answer, worst first; `selected`: the rank whose phases are shown, or null. */
  show(data, selected) {
    const odd = oddOnes(data.ranks);
    const named = odd.slice(0, MOST).map((rank) => ({ ...rank, ...oddText(rank, data.now_s) }));
    const shown = JSON.stringify([named.map(({ rank, head, detail }) => [rank, head, detail]), odd.length, selected, data.known]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const focused = document.activeElement?.closest?.(".ranks-odd button")?.dataset.rank;
    this.element.replaceChildren(...named.map((rank) => chip(rank, selected)), ...rest(data, odd.length));
    if (focused !== undefined) this.element.querySelector(`[data-rank="${CSS.escape(focused)}"]`)?.focus();
  }

  #clicked = (event) => {
    const rank = event.target.closest("button")?.dataset.rank;
    if (rank !== undefined) this.#onSelect(Number(rank));
  };
}

function chip({ rank, worst, head, detail }, selected) {
  const odd = ODD[worst];
  const about = detail === "" ? [] : [h("span", { class: "about" }, detail)];
  const button = h("button", { type: "button", "data-rank": rank, "data-tone": odd.tone, title: t(odd.means), "aria-pressed": String(rank === selected) },
    icon(odd.icon), h("strong", {}, head), ...about);
  return h("li", {}, button);
}

function rest(data, odd) {
  if (odd > MOST) return [h("li", { class: "more" }, t("and {more} more", { more: count(odd - MOST) }))];
  if (odd > 0 || data.known === 0) return [];
  return [h("li", { class: "fine" }, icon("ok"), t("No rank stands out."))];
}
