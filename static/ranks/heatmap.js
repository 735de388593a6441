/** Ranks over time as a heat map: a row a rank, a column a stretch of time. Point, click, drag, or use the keys. */

import { h, setText } from "../app/dom.js";
import { MARGIN } from "../charts/chart.js";
import { t } from "../locale/i18n.js";
import { columnAt, geometry, ordered, pixels, scaleOf } from "./heatmapcells.js";
import { Hand, Tip } from "./heatmaphand.js";
import {
  cellImage, cleared, paintCells, paintFrame, paintLines, paintNumbers, paintSilence, paintTimes,
} from "./heatmappaint.js";
import { ODD, stateWord } from "./words.js";

const SIGNS = { died: "died", stopped: "stopped", behind: "odd", late: "odd", slow: "odd" };
const EMPTY = { ranks: [], t: [], column_s: 1, phases: [], cells: {}, now_s: 0 };

export class HeatMap {
  element = h("div", { class: "plot heat" });
  #source;
  #on;
  #field = h("div", {
    class: "heat-field",
    tabindex: 0,
    role: "application",
    "aria-roledescription": t("heat map"),
    "aria-label": t(
      "Ranks over time. Arrow keys move from cell to cell, Enter shows a rank's own phases, Escape leaves.",
    ),
  });
  #canvas = h("canvas", { class: "heat-canvas", "aria-hidden": "true" });
  #said = h("p", { class: "offscreen", "aria-live": "polite" });
  #tag = h("div", { class: "cross-tag" });
  #tip = new Tip();
  #hand;
  #data = EMPTY;
  #rows = [];
  #look = { mode: "phase", order: "worst", selected: null };
  #image = null;
  #scale = 0;
  #place = null;

  /** `source`: `{range, theme, ink()}`; `on.select(rank)` when the viewer picks one, null when none. */
  constructor(source, on) {
    this.#source = source;
    this.#on = on;
    this.#hand = new Hand(this.#field, {
      place: () => this.#place,
      columns: () => this.#data.t,
      bounds: () => source.range.bounds,
      pointed: this.#pointed,
      chosen: this.#chosen,
      dragged: (from, to) => source.range.hold(from, to),
      reset: () => source.range.follow(),
      moved: this.draw,
    });
    this.#field.append(this.#canvas);
    this.element.append(
      this.#field, h("div", { class: "mark" }), h("div", { class: "cross" }), this.#tag, this.#tip.element,
      this.#said,
    );
  }

  connect() {
    this.#hand.connect();
  }

  disconnect() {
    this.#hand.disconnect();
  }

  /** What a crosshair over any chart needs: the same as a Card has. */
  get plot() {
    return this.element;
  }

  readAt(at, text = "") {
    setText(this.#tag, text);
  }

  /** The wait (ms a step) that has the last colour of the scale. */
  get scale() {
    return this.#scale;
  }

  /** New data of the hub, or another look: `{mode: "phase" | "wait", order: "worst" | "number", selected}`. */
  show(data, look) {
    const same = data === this.#data && look.mode === this.#look.mode && look.order === this.#look.order;
    this.#data = data ?? EMPTY;
    this.#look = look;
    if (!same) this.recolour();
  }

  /** The colours of the cells anew. */
  recolour() {
    this.#rows = ordered(this.#data.ranks, this.#look.order);
    const matrix = this.#matrix() ?? [];
    this.#scale = this.#look.mode === "wait" ? scaleOf(matrix) : 0;
    const [columns, theme] = [this.#data.t.length, this.#source.theme.name];
    const bytes = pixels({
      matrix, rows: this.#rows, columns, mode: this.#look.mode, phases: this.#data.phases, scale: this.#scale, theme,
    });
    this.#image = cellImage(bytes, columns, this.#rows.length);
  }

  draw = () => {
    const [from, to] = this.#source.range.bounds;
    const rows = this.#rows.length;
    const width = this.element.clientWidth;
    this.#place = geometry({ rows, width, from, to });
    this.element.style.height = `${this.#place.height}px`;
    const context = cleared(this.#canvas, width, this.#place.height);
    const ink = this.#source.ink();
    context.fillStyle = ink.grid;
    context.globalAlpha = 0.45;
    context.fillRect(MARGIN.l, MARGIN.t, this.#place.wide, this.#place.high);
    context.globalAlpha = 1;
    const { t: times, column_s: columnS } = this.#data;
    if (rows > 0) paintCells(context, this.#place, { image: this.#image, t: times, columnS, rows });
    paintLines(context, this.#place, rows, ink);
    paintSilence(context, this.#place, this.#silences(ink), [from, Math.min(to, this.#data.now_s)], ink);
    paintNumbers(
      context, this.#place, this.#rows.map((row) => this.#number(row, ink)), ink,
    );
    paintTimes(context, this.#place, [from, to], ink);
    this.#paintFrames(context, ink);
  };

  #matrix() {
    return this.#data.cells?.[this.#look.mode === "phase" ? "phase" : "comm_ms"];
  }

  #number(row, ink) {
    const { rank, worst } = this.#data.ranks[row];
    const colour = ODD[worst]?.tone === "critical" ? ink.bad : ODD[worst] ? ink.warn : undefined;
    return { rank, sign: SIGNS[worst], colour, strong: rank === this.#look.selected };
  }

  #silences(ink) {
    return this.#rows.flatMap((row, at) => {
      const rank = this.#data.ranks[row];
      const since = rank.ended ? rank.ended.t_s : rank.worst === "stopped" ? rank.phase_since_s : null;
      if (since === null || since === undefined) return [];
      const colour = ODD[rank.worst]?.tone === "critical" ? ink.bad : ink.text;
      return [{ row: at, from: since, to: Infinity, colour, text: stateWord(rank) }];
    });
  }

  #paintFrames(context, ink) {
    const selected = this.#rows.findIndex((row) => this.#data.ranks[row].rank === this.#look.selected);
    if (selected >= 0) paintFrame(context, this.#place, selected, ink.strong);
    const { cursor } = this.#hand;
    if (cursor === null || cursor.row >= this.#rows.length) return;
    const [middle, half] = [this.#data.t[cursor.column], this.#data.column_s / 2];
    if (middle === undefined) return;
    paintFrame(context, this.#place, cursor.row, ink.focus, this.#place.x(middle - half), this.#place.x(middle + half));
  }

  // Under the pointer or the keys' cursor: `{row, at, x, y, keys}`, null when it left.
  #pointed = (spot) => {
    const rank = spot === null ? undefined : this.#data.ranks[this.#rows[spot.row]];
    if (rank === undefined) return this.#tip.hide();
    const column = columnAt(this.#data.t, this.#data.column_s, spot.at);
    const of = (name) =>
      column === null ? null : (this.#data.cells?.[name]?.[this.#rows[spot.row]]?.[column] ?? null);
    const phase = of("phase");
    const cell = {
      phase: phase === null ? null : this.#data.phases[phase], stepMs: of("step_ms"), commMs: of("comm_ms"),
      at: spot.at,
    };
    const text = this.#tip.show(rank, cell, this.#data.now_s, spot, this.element);
    if (spot.keys) setText(this.#said, text);
    return undefined;
  };

  #chosen = (row) => {
    const rank = this.#data.ranks[this.#rows[row]]?.rank ?? null;
    this.#on.select(rank === this.#look.selected ? null : rank);
  };
}
