/** The ranks in words: those that stand out, and the worst as a table. */

import { h, icon } from "../app/dom.js";
import { count, percent, withUnit } from "../app/format.js";
import { N, t, word } from "../locale/i18n.js";
import { endText, ODD, oddOnes, oddText, stateWord } from "./words.js";

const MOST_NAMED = 6; // named; of the rest their number

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
    const named = odd.slice(0, MOST_NAMED).map((rank) => ({ ...rank, ...oddText(rank, data.now_s) }));
    const shown = JSON.stringify([
      named.map(({ rank, head, detail }) => [rank, head, detail]), odd.length, selected, data.known,
    ]);
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
  const button = h(
    "button",
    {
      type: "button", "data-rank": rank, "data-tone": odd.tone, title: t(odd.means),
      "aria-pressed": String(rank === selected),
    },
    icon(odd.icon),
    h("strong", {}, head),
    ...about,
  );
  return h("li", {}, button);
}

function rest(data, odd) {
  if (odd > MOST_NAMED) return [h("li", { class: "more" }, t("and {more} more", { more: count(odd - MOST_NAMED) }))];
  if (odd > 0 || data.known === 0) return [];
  return [h("li", { class: "fine" }, icon("ok"), t("No rank stands out."))];
}

const MOST_ROWS = 64; // rows; the worst come first

/** Columns: heading, and what stands there; null is "not measured". */
const COLUMNS = [
  [N("state"), (rank) => state(rank)],
  [N("host"), (rank) => rank.host],
  [N("steps"), (rank) => count(rank.steps)],
  [N("step time"), (rank) => withUnit(rank.step_ms, "ms")],
  [N("waiting"), (rank) => withUnit(rank.comm_ms, "ms")],
  [N("waiting, share"), (rank) => share(rank.comm_share)],
  [N("came last"), (rank) => share(rank.last_share)],
  [N("now in"), (rank) => (rank.ended ? endText(rank.ended) || "–" : rank.phase === null ? null : word(rank.phase))],
];

export class RanksTable {
  element = h("details", { class: "ranks-table" });
  #title = h("summary");
  #body = h("tbody");
  #onSelect;
  #data = null;

  /** `onSelect(rank)` when a rank's number is pressed. */
  constructor(onSelect) {
    this.#onSelect = onSelect;
    const head = h(
      "tr", {}, h("th", { scope: "col" }, t("rank")),
      ...COLUMNS.map(([title]) => h("th", { scope: "col" }, t(title))),
    );
    const table = h(
      "table", {}, h("caption", { class: "offscreen" }, t("Ranks, worst first")), h("thead", {}, head), this.#body,
    );
    this.element.append(
      this.#title,
      h("div", { class: "ranks-scroll", tabindex: 0, role: "group", "aria-label": t("Ranks, worst first") }, table),
    );
  }

  connect() {
    this.element.addEventListener("toggle", this.#build);
    this.#body.addEventListener("click", this.#clicked);
  }

  disconnect() {
    this.element.removeEventListener("toggle", this.#build);
    this.#body.removeEventListener("click", this.#clicked);
  }

  /** `data`: the hub's answer, worst first. */
  show(data) {
    this.#data = data;
    const shown = Math.min(data.ranks.length, MOST_ROWS);
    this.#title.textContent =
      shown < data.known ? t("The worst {shown} ranks as a table", { shown }) : t("Ranks as a table");
    this.#build();
  }

  // A closed table costs nothing.
  #build = () => {
    if (!this.element.open || this.#data === null) return;
    const focused = document.activeElement?.closest?.(".ranks-table button")?.dataset.rank;
    this.#body.replaceChildren(...this.#data.ranks.slice(0, MOST_ROWS).map(row));
    if (focused !== undefined) this.#body.querySelector(`[data-rank="${CSS.escape(focused)}"]`)?.focus();
  };

  #clicked = (event) => {
    const rank = event.target.closest("button")?.dataset.rank;
    if (rank !== undefined) this.#onSelect(Number(rank));
  };
}

function row(rank) {
  const button = h(
    "button",
    { type: "button", "data-rank": rank.rank, "aria-label": t("Show rank {rank}", { rank: rank.rank }) },
    String(rank.rank),
  );
  return h("tr", {}, h("th", { scope: "row" }, button), ...COLUMNS.map(([, of]) => cell(of(rank))));
}

function cell(value) {
  if (value === null || value === undefined) return h("td", { class: "none", title: t("not measured") }, "–");
  return h("td", {}, value);
}

function state(rank) {
  const odd = ODD[rank.worst];
  if (odd === undefined) return stateWord(rank);
  return h("span", { class: "rank-state", "data-tone": odd.tone }, icon(odd.icon), stateWord(rank));
}

function share(value) {
  const text = percent(value);
  return text === null ? null : `${text} %`;
}
