/**
 * Draws what has changed: one drawing a frame, what waited longest first, only what is on screen, nothing while
 * the tab is hidden.
 */

const NEAR = "120px"; // drawn a little before it scrolls into view
const LEAST_MS = 450; // between two drawings of the same thing, unless the viewer asked for it

export class Scheduler {
  #items = new Map(); // element → {draw, dirty, asked, visible, drawnMs}
  #frame = null;
  #timer = null;
  #held = false;
  #observer = null;

  connect() {
    this.#observer = new IntersectionObserver(this.#seen, { rootMargin: NEAR });
    document.addEventListener("visibilitychange", this.#wake);
  }

  disconnect() {
    this.#observer.disconnect();
    document.removeEventListener("visibilitychange", this.#wake);
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    this.#items.clear();
  }

  add(element, draw) {
    this.#items.set(element, { draw, dirty: true, asked: true, visible: false, drawnMs: -Infinity });
    this.#observer.observe(element);
  }

  remove(element) {
    this.#items.delete(element);
    this.#observer.unobserve(element);
  }

  /** Everything may have changed; `now` when the viewer waits for it. `draw(asked)` is told which. */
  invalidate(now = false) {
    for (const item of this.#items.values()) {
      item.dirty = true;
      if (!now) continue;
      item.asked = true;
      item.drawnMs = -Infinity;
    }
    this.#wake();
  }

  /** One thing was changed for the viewer, who waits for it. */
  ask(element) {
    const item = this.#items.get(element);
    if (item === undefined) return;
    Object.assign(item, { dirty: true, asked: true, drawnMs: -Infinity });
    this.#wake();
  }

  /** While something is being dragged nothing is drawn beneath it. */
  hold(held) {
    this.#held = held;
    this.#wake();
  }

  #seen = (entries) => {
    for (const entry of entries) {
      const item = this.#items.get(entry.target);
      if (item !== undefined) item.visible = entry.isIntersecting;
    }
    this.#wake();
  };

  #wake = () => {
    if (document.hidden || this.#held || this.#frame !== null) return;
    this.#frame = requestAnimationFrame(this.#draw);
  };

  #draw = (nowMs) => {
    this.#frame = null;
    clearTimeout(this.#timer);
    const waiting = [...this.#items.values()].filter((item) => item.dirty && item.visible);
    const due = waiting.filter((item) => nowMs - item.drawnMs >= LEAST_MS);
    if (due.length > 0) this.#one(due.reduce((a, b) => (b.drawnMs < a.drawnMs ? b : a)), nowMs);
    if (due.length > 1) this.#wake();
    else if (waiting.length > due.length) this.#timer = setTimeout(this.#wake, LEAST_MS);
  };

  #one(item, nowMs) {
    const { asked } = item;
    Object.assign(item, { dirty: false, asked: false, drawnMs: nowMs });
    item.draw(asked);
  }
}
