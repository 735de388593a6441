/** What the viewer points at in the charts: the time under the pointer, and the finding that is selected. */

import { timeText } from "../app/format.js";
import { MARGIN } from "./chart.js";

export class Selection {
  #listeners = new Set();
  #id = null;
  #finding = null;
  #wanted;

  /** `code`: of the finding that the address names; it is selected once it is there. */
  constructor(code = null) {
    this.#wanted = code;
  }

  /** `listener(finding)`; null when none is selected any more. */
  connect(listener) {
    this.#listeners.add(listener);
  }

  disconnect(listener) {
    this.#listeners.delete(listener);
  }

  get finding() {
    return this.#finding;
  }

  /** Whether it is this one. */
  has(finding) {
    return this.#id !== null && this.#id === finding.id;
  }

  /** Select it, or let go of it when it is selected. */
  toggle(finding) {
    this.#set(this.has(finding) ? null : finding);
  }

  clear() {
    if (this.#id !== null) this.#set(null);
  }

  /** The findings there are now: the selected one is renewed, or let go of when it is gone. */
  update(findings) {
    if (this.#wanted !== null) {
      const named = findings.find(({ code }) => code === this.#wanted);
      if (named === undefined) return;
      this.#wanted = null;
      this.#set(named);
    } else if (this.#id !== null) {
      this.#finding = findings.find(({ id }) => id === this.#id) ?? null;
      if (this.#finding === null) this.clear();
    }
  }

  #set(finding) {
    this.#wanted = null;
    this.#finding = finding;
    this.#id = finding === null ? null : finding.id;
    for (const listener of this.#listeners) listener(finding);
  }
}

export class Marks {
  #grid;
  #range;
  #selection;
  #span;

  /** `grid` holds the charts; `span(finding)` gives its `[from, to]` in seconds since start. */
  constructor(grid, range, selection, span) {
    this.#grid = grid;
    this.#range = range;
    this.#selection = selection;
    this.#span = span;
  }

  connect() {
    this.#range.connect(this.show);
    this.#selection.connect(this.show);
  }

  disconnect() {
    this.#range.disconnect(this.show);
    this.#selection.disconnect(this.show);
  }

  /** Place the band anew. */
  show = () => {
    const { finding } = this.#selection;
    const shares = finding === null ? null : sharesOf(this.#span(finding), this.#range.bounds);
    this.#grid.classList.toggle("marked", shares !== null);
    if (shares === null) return;
    this.#grid.dataset.mark = finding.severity;
    this.#grid.style.setProperty("--mark-from", shares[0].toFixed(4));
    this.#grid.style.setProperty("--mark-to", shares[1].toFixed(4));
  };
}

/** Where a span of time lies in the range shown, both ends as shares of its width; null outside of it. */
export function sharesOf([start, end], [from, to]) {
  if (!(to > from) || end < from || start > to) return null;
  const share = (time) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return [share(start), share(end)];
}

/** Whether two spans of time have anything in common. */
export function overlaps([start, end], [from, to]) {
  return start <= to && end >= from;
}

export class Crosshair {
  #grid;
  #range;
  #cards;
  #frame = null;
  #pointer = null;

  /** `grid` holds the charts; `cards()` are those that read at the pointer. */
  constructor(grid, range, cards) {
    this.#grid = grid;
    this.#range = range;
    this.#cards = cards;
  }

  connect() {
    this.#grid.addEventListener("pointermove", this.#moved);
    this.#grid.addEventListener("pointerleave", this.#left);
  }

  disconnect() {
    this.#grid.removeEventListener("pointermove", this.#moved);
    this.#grid.removeEventListener("pointerleave", this.#left);
    cancelAnimationFrame(this.#frame);
  }

  #moved = (event) => {
    this.#pointer = event;
    this.#frame ??= requestAnimationFrame(this.#show);
  };

  #left = () => {
    this.#pointer = null;
    this.#frame ??= requestAnimationFrame(this.#show);
  };

  #show = () => {
    this.#frame = null;
    const plot = this.#pointer?.target.closest?.(".plot");
    const share = plot ? shareOf(plot, this.#pointer.clientX) : null;
    this.#grid.classList.toggle("crossed", share !== null);
    if (share === null) return this.#cards().forEach((card) => card.readAt(null));
    this.#grid.style.setProperty("--cross", share.toFixed(4));
    const [from, to] = this.#range.bounds;
    const at = from + share * (to - from);
    const text = timeText(at, to - from < 60 ? 0.1 : 1);
    return this.#cards().forEach((card) => card.readAt(at, card.plot === plot ? text : ""));
  };
}

/** Where `clientX` lies on the plot's time axis, 0 to 1; null outside of it. */
function shareOf(plot, clientX) {
  const box = plot.getBoundingClientRect();
  const share = (clientX - box.left - MARGIN.l) / (box.width - MARGIN.l - MARGIN.r);
  return share >= 0 && share <= 1 ? share : null;
}
