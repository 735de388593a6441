/** The one time range that every chart shows: following the newest data, or held where the viewer put it. */

import { h, setText } from "../app/dom.js";
import { timeText } from "../app/format.js";
import { N, t } from "../locale/i18n.js";

const LEAST_S = 0.05; // no zoom narrower than this
const FIRST_S = 30; // a run younger than this is drawn on an axis of this length

export class TimeRange {
  #listeners = new Set();
  #span = Infinity; // seconds shown while following; Infinity is the whole run
  #held = null; // [from, to] while not following
  #now = 0;

  /** `listener(moved)`: moved is true when the viewer moved it, false when time went on. */
  connect(listener) {
    this.#listeners.add(listener);
  }

  disconnect(listener) {
    this.#listeners.delete(listener);
  }

  get following() {
    return this.#held === null;
  }

  get span() {
    return this.#span;
  }

  /** `[from, to]` in seconds since start. */
  get bounds() {
    if (this.#held !== null) return this.#held;
    if (this.#span === Infinity) return [0, Math.max(FIRST_S, this.#now)];
    const to = Math.max(this.#now, this.#span);
    return [to - this.#span, to];
  }

  /** Newest time of the run. */
  advance(now) {
    if (now <= this.#now) return;
    this.#now = now;
    if (this.following) this.#tell(false);
  }

  /** Show [from, to] and stay there. */
  hold(from, to) {
    if (!Number.isFinite(from) || !Number.isFinite(to)) return;
    const middle = (from + to) / 2;
    const half = Math.max(Math.abs(to - from), LEAST_S) / 2;
    this.#held = [Math.max(0, middle - half), Math.max(LEAST_S, middle + half)];
    this.#tell(true);
  }

  /** Follow the newest data again, over `span` seconds. */
  follow(span = this.#span) {
    this.#held = null;
    this.#span = span;
    this.#tell(true);
  }

  /** Zoom by `factor` about `share` (0 left edge to 1 right edge), or move by `move` times the width. */
  zoom(factor, share = 0.5) {
    const [from, to] = this.bounds;
    const at = from + share * (to - from);
    this.hold(at - (at - from) * factor, at + (to - at) * factor);
  }

  move(share) {
    const [from, to] = this.bounds;
    const by = Math.max(share * (to - from), -from);
    this.hold(from + by, to + by);
  }

  #tell(moved) {
    for (const listener of this.#listeners) listener(moved);
  }
}

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
    this.#buttons.forEach((button, i) =>
      button.setAttribute("aria-pressed", String(following && SPANS[i][0] === span)),
    );
  };
}
