/** The words beside the pointer: which rank, when, and what it did there. */

import { h } from "../app/dom.js";
import { t } from "../locale/i18n.js";
import { cellText, ODD, oddText } from "./words.js";
import { timeText } from "../charts/ticks.js";

const AWAY_PX = 14; // from the pointer

export class Tip {
  element = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });

  hide() {
    this.element.hidden = true;
  }

  /** Show `rank` and its `cell` `{phase, stepMs, commMs, at}` beside `spot` `{x, y}` inside `box`; the same as one text. */
  show(rank, cell, nowS, { x, y }, box) {
    const who = rank.host ? t("rank {rank} on {host}", { rank: rank.rank, host: rank.host }) : t("rank {rank}", { rank: rank.rank });
    const when = timeText(cell.at, 0.1);
    const { head, detail } = oddText(rank, nowS);
    const odd = ODD[rank.worst] ? [head, detail].filter((text) => text !== "").join(t(", ")) : "";
    const rows = cellText(cell);
    if (rows.length === 0) rows.push([t("no step finished here"), ""]);
    this.element.replaceChildren(
      h("p", { class: "tip-head" }, h("strong", {}, who), h("span", {}, when)),
      h("dl", {}, ...rows.map(([what, value]) => h("div", {}, h("dt", {}, what), h("dd", {}, value)))),
      ...(odd === "" ? [] : [h("p", { class: "tip-odd", "data-tone": ODD[rank.worst].tone }, odd)]));
    this.element.hidden = false;
    this.#place(x, y, box);
    return [who, when, ...rows.map(([what, value]) => `${what} ${value}`.trim()), odd].filter((text) => text !== "").join(t(", "));
  }

  #place(x, y, box) {
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = x + AWAY_PX + width > box.clientWidth ? Math.max(0, x - AWAY_PX - width) : x + AWAY_PX;
    const top = Math.max(0, Math.min(y + AWAY_PX, box.clientHeight - height));
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}
