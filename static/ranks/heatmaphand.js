/** Pointer and keys on a heat map: pointing, picking a row, dragging a stretch of time, moving a cursor. */

import { h } from "../app/dom.js";
import { timeText } from "../app/format.js";
import { t } from "../locale/i18n.js";
import { cellText, ODD, oddText } from "./words.js";

const CLICK_PX = 4; // a pointer that moved less has clicked
const PAGE_ROWS = 10; // that Page Up and Page Down move

export class Hand {
  /** `{row, column}` where the keys stand; null while they do not. */
  cursor = null;
  #field;
  #on;
  #pressed = null;

  /**
   * `on`: `place()` the geometry, `columns()` middles of columns, `bounds()`, `pointed(spot)`,
   * `chosen(row)`, `dragged(from, to)`, `reset()`, `moved()` when the cursor must be drawn anew.
   */
  constructor(field, on) {
    this.#field = field;
    this.#on = on;
  }

  connect() {
    for (const [name, listener] of this.#listeners()) this.#field.addEventListener(name, listener);
  }

  disconnect() {
    for (const [name, listener] of this.#listeners()) this.#field.removeEventListener(name, listener);
  }

  #listeners() {
    return [
      ["pointermove", this.#move], ["pointerleave", this.#leave], ["pointerdown", this.#down], ["pointerup", this.#up],
      ["dblclick", this.#on.reset], ["keydown", this.#key], ["blur", this.#blur],
    ];
  }

  #spot({ clientX, clientY }) {
    const place = this.#on.place();
    if (place === null) return null;
    const box = this.#field.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    const [row, at] = [place.rowAt(y), place.timeAt(x)];
    return { x, y, row, at };
  }

  #move = (event) => {
    const spot = this.#spot(event);
    const onCell = spot !== null && spot.row !== null && spot.at !== null;
    this.#field.style.cursor = spot !== null && spot.row !== null ? "pointer" : "";
    this.#on.pointed(onCell ? spot : null);
  };

  #leave = () => this.#on.pointed(null);

  #down = (event) => {
    if (event.button === 0) this.#pressed = this.#spot(event);
  };

  #up = (event) => {
    const [start, end] = [this.#pressed, this.#spot(event)];
    this.#pressed = null;
    if (start === null || end === null) return;
    if (Math.hypot(end.x - start.x, end.y - start.y) < CLICK_PX) {
      if (end.row !== null) this.#on.chosen(end.row);
    } else if (event.pointerType === "mouse" && start.at !== null && Math.abs(end.x - start.x) >= CLICK_PX) {
      const to = end.at ?? this.#on.bounds()[end.x < start.x ? 0 : 1];
      this.#on.dragged(Math.min(start.at, to), Math.max(start.at, to));
    }
  };

  #key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = this.#keys()[event.key];
    if (act === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // the page's own arrow keys move the time range
    act();
  };

  #keys() {
    const step = (rows, columns) => () => this.#go(rows, columns);
    return {
      ArrowUp: step(-1, 0), ArrowDown: step(1, 0), ArrowLeft: step(0, -1), ArrowRight: step(0, 1),
      PageUp: step(-PAGE_ROWS, 0), PageDown: step(PAGE_ROWS, 0), Home: step(0, -Infinity), End: step(0, Infinity),
      Enter: this.#choose, " ": this.#choose, Escape: () => this.#field.blur(),
    };
  }

  #choose = () => {
    if (this.cursor === null) this.#go(0, 0);
    else this.#on.chosen(this.cursor.row);
  };

  // The first key puts the cursor on the newest column of the top row; the others move it.
  #go(rows, columns) {
    const place = this.#on.place();
    const shown = this.#shown();
    if (place === null || shown.length === 0 || place.high === 0) return;
    const [first, last] = [shown[0], shown.at(-1)];
    const before = this.cursor ?? { row: 0, column: last };
    const moved = this.cursor === null ? before : { row: before.row + rows, column: before.column + columns };
    this.cursor = { row: clamp(moved.row, 0, place.high / place.rowPx - 1), column: clamp(moved.column, first, last) };
    const at = this.#on.columns()[this.cursor.column];
    this.#on.moved();
    this.#on.pointed({
      row: this.cursor.row, at, x: place.x(at), y: place.y(this.cursor.row) + place.rowPx, keys: true,
    });
  }

  #shown() {
    const [from, to] = this.#on.bounds();
    return this.#on.columns().flatMap((at, i) => (at >= from && at <= to ? [i] : []));
  }

  #blur = () => {
    if (this.cursor === null) return;
    this.cursor = null;
    this.#on.pointed(null);
    this.#on.moved();
  };
}

function clamp(value, least, most) {
  return Math.min(Math.max(value, least), most);
}

const AWAY_PX = 14; // from the pointer

export class Tip {
  element = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });

  hide() {
    this.element.hidden = true;
  }

  /** Show `rank` and its `cell` `{phase, stepMs, commMs, at}` beside `spot` `{x, y}` inside `box`; all as one text. */
  show(rank, cell, nowS, { x, y }, box) {
    const who = rank.host
      ? t("rank {rank} on {host}", { rank: rank.rank, host: rank.host })
      : t("rank {rank}", { rank: rank.rank });
    const when = timeText(cell.at, 0.1);
    const { head, detail } = oddText(rank, nowS);
    const odd = ODD[rank.worst] ? [head, detail].filter((text) => text !== "").join(t(", ")) : "";
    const rows = cellText(cell);
    if (rows.length === 0) rows.push([t("no step finished here"), ""]);
    this.element.replaceChildren(
      h("p", { class: "tip-head" }, h("strong", {}, who), h("span", {}, when)),
      h("dl", {}, ...rows.map(([what, value]) => h("div", {}, h("dt", {}, what), h("dd", {}, value)))),
      ...(odd === "" ? [] : [h("p", { class: "tip-odd", "data-tone": ODD[rank.worst].tone }, odd)]),
    );
    this.element.hidden = false;
    this.#place(x, y, box);
    return [who, when, ...rows.map(([what, value]) => `${what} ${value}`.trim()), odd]
      .filter((text) => text !== "")
      .join(t(", "));
  }

  #place(x, y, box) {
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = x + AWAY_PX + width > box.clientWidth ? Math.max(0, x - AWAY_PX - width) : x + AWAY_PX;
    const top = Math.max(0, Math.min(y + AWAY_PX, box.clientHeight - height));
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }
}
