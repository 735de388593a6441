/** Which stretch of time is shown, and the way back to the newest data. */

import { h, setText } from "../app/dom.js";
import { N, t } from "../locale/i18n.js";
import { timeText } from "./ticks.js";

const SPANS = [[120, N("2 min")], [900, N("15 min")], [3600, N("1 h")], [Infinity, N("all")]]; // seconds

export class RangeBar {
  element = h("div", { class: "rangebar", role: "group", "aria-label": t("Time range") });
  #range;
  #label = h("span", { class: "range-label" });
  #live = h("button", { type: "button", class: "live" }, t("Live"));
  #following = true;
  #buttons = SPANS.map(([, label]) => h("button", { type: "button" }, t(label)));

  constructor(range) {
    this.#range = range;
    this.element.append(this.#label, h("span", { class: "segments" }, ...this.#buttons), this.#live);
  }

  connect() {
    this.element.addEventListener("click", this.#clicked);
    this.#range.connect(this.#show);
    this.#show();
  }

  disconnect() {
    this.element.removeEventListener("click", this.#clicked);
    this.#range.disconnect(this.#show);
  }

  /** Whether there is anything to follow; a run that is over is shown whole instead. */
  live(live) {
    this.#following = live;
    setText(this.#live, live ? t("Live") : t("Whole run"));
  }

  #clicked = (event) => {
    const button = event.target.closest("button");
    if (button === this.#live) this.#range.follow(this.#following ? undefined : Infinity);
    const index = this.#buttons.indexOf(button);
    if (index >= 0) this.#range.follow(SPANS[index][0]);
  };

  #show = () => {
    const { following, span, bounds: [from, to] } = this.#range;
    const step = to - from < 10 ? 0.1 : 1;
    setText(this.#label, following ? "" : `${timeText(from, step)} – ${timeText(to, step)}`);
    this.#live.setAttribute("aria-pressed", String(following));
    this.#buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(following && SPANS[i][0] === span)));
  };
}
