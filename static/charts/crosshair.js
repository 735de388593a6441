/** One vertical line through all charts at the time under the pointer. */

import { MARGIN } from "./chart.js";
import { timeText } from "./ticks.js";

export class Crosshair {
  #grid;
  #range;
  #cards;
  #frame = null;
  #pointer = null;

  /** `grid` holds the charts; `cards` are those that read at the pointer. */
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
    if (share === null) return this.#cards.forEach((card) => card.readAt(null));
    this.#grid.style.setProperty("--cross", share.toFixed(4));
    const [from, to] = this.#range.bounds;
    const at = from + share * (to - from);
    const text = timeText(at, to - from < 60 ? 0.1 : 1);
    return this.#cards.forEach((card) => card.readAt(at, card.plot === plot ? text : ""));
  };
}

/** Where `clientX` lies on the plot's time axis, 0 to 1; null outside of it. */
function shareOf(plot, clientX) {
  const box = plot.getBoundingClientRect();
  const share = (clientX - box.left - MARGIN.l) / (box.width - MARGIN.l - MARGIN.r);
  return share >= 0 && share <= 1 ? share : null;
}
