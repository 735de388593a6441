/** All charts of a run: what they share (range, crosshair, drawing order) and the room they stand in. */

import { h } from "../app/dom.js";
import { isLive } from "../app/status.js";
import { ink } from "../app/theme.js";
import { GpuFacts } from "../gpu/facts.js";
import { Gpus } from "../gpu/view.js";
import { t } from "../locale/i18n.js";
import { Ranks } from "../ranks/view.js";
import { Card } from "./card.js";
import { loadCharts } from "./chart.js";
import { RangeBar } from "./range.js";
import { Scheduler } from "./scheduler.js";
import { Crosshair, Marks } from "./selection.js";

const DRAG_END = ["pointerup", "pointercancel"];

export class Charts {
  element = h("section", { class: "charts", "aria-labelledby": "charts-title" });
  #grid = h("div", { class: "grid" });
  #absent = h("p", { class: "absent", hidden: true }, t("GPU utilisation and memory: no GPU"));
  #failed = h("p", { class: "absent", hidden: true, role: "alert" });
  #scheduler = new Scheduler();
  #range;
  #theme;
  #bar;
  #cards = [];
  #source;
  #on;
  #gpu = false;
  #ranks;
  #gpus;
  #crosshair;
  #marks;
  #resized = new ResizeObserver(() => this.#scheduler.invalidate(true));
  #ink = null;
  #ready = false;
  #filled = false;

  /**
   * `run`: its id; `schema()` and `tracks` as in History; `range`: TimeRange; `theme`: Theme; `selection`, `span`:
   * as in Marks.
   */
  constructor({ run, schema, tracks, range, theme, selection, span }) {
    this.#range = range;
    this.#theme = theme;
    this.#bar = new RangeBar(range);
    const source = {
      schema,
      tracks,
      range,
      theme,
      ink: () => (this.#ink ??= ink()),
      ready: () => this.#ready,
      filled: () => this.#filled,
      draggable: window.matchMedia("(pointer: fine)").matches,
    };
    const on = { zoom: this.#zoom, reset: this.#reset, chosen: () => this.#scheduler.invalidate(true) };
    [this.#source, this.#on] = [source, on];
    this.#ranks = new Ranks(run, source, this.#scheduler, on);
    this.#gpus = new Gpus(source, new GpuFacts(run), this.#scheduler, span);
    this.#crosshair = new Crosshair(this.#grid, range, () => [...this.#cards, ...this.#ranks.cards, this.#gpus]);
    this.#marks = new Marks(this.#grid, range, selection, span);
    this.#grid.append(this.#ranks.element, this.#gpus.element);
    const head = h("div", { class: "charts-head" }, h("h2", { id: "charts-title" }, t("Over time")), this.#bar.element);
    this.element.append(head, this.#grid, this.#absent, this.#failed);
  }

  connect() {
    this.#scheduler.connect();
    this.#ranks.connect();
    this.#gpus.connect();
    this.#bar.connect();
    this.#crosshair.connect();
    this.#marks.connect();
    this.#range.connect(this.#changed);
    this.#theme.connect(this.#recolour);
    this.#resized.observe(this.#grid);
    this.#grid.addEventListener("pointerdown", this.#pressed);
    DRAG_END.forEach((name) => window.addEventListener(name, this.#released));
  }

  disconnect() {
    this.#cards.forEach((card) => {
      this.#scheduler.remove(card.element);
      card.disconnect();
    });
    this.#ranks.disconnect();
    this.#gpus.disconnect();
    this.#scheduler.disconnect();
    this.#bar.disconnect();
    this.#crosshair.disconnect();
    this.#marks.disconnect();
    this.#range.disconnect(this.#changed);
    this.#theme.disconnect(this.#recolour);
    this.#resized.disconnect();
    this.#grid.removeEventListener("pointerdown", this.#pressed);
    DRAG_END.forEach((name) => window.removeEventListener(name, this.#released));
  }

  /** The charts that came with the run's schema: the first above the ranks, the others below them. */
  declare(panels) {
    if (this.#cards.length > 0) return;
    this.#cards = panels.map((panel) => new Card(panel, this.#source, this.#on));
    const [first, ...others] = this.#cards.map((card) => card.element);
    this.#ranks.element.before(...(first ? [first] : []));
    this.#ranks.element.after(...others);
    this.#cards.forEach((card) => {
      card.connect();
      this.#scheduler.add(card.element, card.draw);
    });
    this.has({ gpu: this.#gpu });
  }

  /** Fetch the chart library; called once tiles and findings are up. */
  async load() {
    try {
      await loadCharts();
      this.#ready = true;
    } catch (error) {
      this.#failed.textContent = t("No charts: {reason}.", { reason: error.message });
      this.#failed.hidden = false;
    }
    this.#scheduler.invalidate(true);
  }

  /** New data is in the tracks. */
  invalidate() {
    this.#scheduler.invalidate();
  }

  /** The past is in the tracks, as the hub has it. */
  filled() {
    this.#filled = true;
    this.#gpus.filled();
    this.#scheduler.invalidate(true);
  }

  /** What the ranks and the GPUs do now, besides what lies in the tracks. */
  update(update) {
    this.#ranks.update(update, isLive(update.status));
    this.#gpus.update(update);
  }

  /** The selected finding's steps may lie elsewhere now. */
  mark() {
    this.#marks.show();
  }

  /** Whether the run goes on. */
  live(live) {
    this.#bar.live(live);
  }

  /** Whether the run has a GPU; without one there are words in place of its charts. */
  has({ gpu }) {
    this.#gpu = gpu;
    this.#absent.hidden = gpu;
    this.#cards.forEach((card) => {
      card.element.hidden = card.gpu !== null && card.gpu !== gpu;
    });
  }

  #changed = (moved) => this.#scheduler.invalidate(moved);
  #zoom = (from, to) => this.#range.hold(from, to);
  #reset = () => this.#range.follow();
  #released = () => this.#scheduler.hold(false);
  #pressed = (event) => event.target.closest(".canvas") && this.#scheduler.hold(true);

  #recolour = () => {
    this.#ink = null;
    this.#ranks.recolour();
    this.#gpus.recolour();
    this.#scheduler.invalidate(true);
  };
}
