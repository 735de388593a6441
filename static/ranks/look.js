/** How the heat map is looked at: phases or waiting, a few ranks or all, worst first or by number. */

import { h, setText } from "../app/dom.js";
import { count, withUnit } from "../app/format.js";
import { phaseColour } from "../app/theme.js";
import { N, t, word } from "../locale/i18n.js";
import { FEW } from "./feed.js";
import { waitColour } from "./heatmapcells.js";

const CHOICES = {
  mode: { label: N("What the cells show"), of: [["phase", N("Phase")], ["wait", N("Waiting")]] },
  scope: { label: N("How many ranks"), of: [["few", N("Worst {few}")], ["all", N("All {known}")]] },
  order: { label: N("Order of the ranks"), of: [["worst", N("Worst first")], ["number", N("By number")]] },
};

export class RanksLook {
  element = h("div", { class: "rangebar ranks-look" });
  /** What is chosen: `{mode, scope, order}`. */
  chosen = { mode: "phase", scope: "few", order: "worst" };
  #onChange;
  #groups = {};

  constructor(onChange) {
    this.#onChange = onChange;
    for (const [name, { label, of }] of Object.entries(CHOICES)) {
      const buttons = of.map(([value]) => h("button", { type: "button", "data-choice": name, "data-value": value }));
      this.#groups[name] = h("div", { class: "segments", role: "group", "aria-label": t(label) }, ...buttons);
    }
    this.element.append(...Object.values(this.#groups));
    this.show(0);
  }

  connect() {
    this.element.addEventListener("click", this.#clicked);
  }

  disconnect() {
    this.element.removeEventListener("click", this.#clicked);
  }

  /** `known`: how many ranks there are; few of them need no choice of how many. */
  show(known) {
    this.#groups.scope.hidden = known <= FEW;
    for (const [name, { of }] of Object.entries(CHOICES)) {
      [...this.#groups[name].children].forEach((button, i) => {
        const [value, text] = of[i];
        setText(button, t(text, { few: FEW, known: count(known) }));
        button.setAttribute("aria-pressed", String(this.chosen[name] === value));
      });
    }
    this.known = known;
  }

  #clicked = (event) => {
    const { choice, value } = event.target.closest("button")?.dataset ?? {};
    if (choice === undefined || this.chosen[choice] === value) return;
    this.chosen = { ...this.chosen, [choice]: value };
    this.show(this.known);
    this.#onChange();
  };
}

const STOPS = [0, 0.25, 0.5, 0.75, 1]; // of the scale's gradient

export class RanksLegend {
  element = h("div", { class: "ranks-legend" });
  #shown = "";

  /** `mode`, the `data` of the hub, the wait that has the last colour (ms), and the theme's name. */
  show(mode, data, scale, theme) {
    const phases = mode === "phase" ? phasesIn(data) : [];
    const shown = JSON.stringify([mode, phases, scale, theme]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.element.replaceChildren(...(mode === "phase" ? phaseParts(phases, theme) : waitParts(scale, theme)));
  }
}

/** Names of the phases that some cell shows, in the schema's order. Pure. */
export function phasesIn({ cells, phases }) {
  const seen = new Set();
  for (const row of cells?.phase ?? []) for (const phase of row) if (phase !== null) seen.add(phase);
  return phases.filter((_, i) => seen.has(i));
}

function phaseParts(phases, theme) {
  if (phases.length === 0) return [];
  const entries = phases.map((phase) => {
    const swatch = h("span", { class: "swatch" });
    swatch.style.background = phaseColour(phase, theme);
    return h("li", {}, swatch, word(phase));
  });
  return [h("span", {}, t("What took most of the time:")), h("ul", {}, ...entries)];
}

function waitParts(scale, theme) {
  if (!(scale > 0)) return [h("span", {}, t("No waiting was measured here."))];
  const ramp = h("span", { class: "ramp" });
  const stops = STOPS.map((at) => `rgb(${waitColour(at, theme).join(" ")})`);
  ramp.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
  return [
    h("span", {}, t("Waiting for other ranks, a step:")),
    h(
      "span", { class: "ramp-box" }, h("span", {}, "0"), ramp,
      h("span", {}, t("{most} or more", { most: withUnit(scale, "ms") })),
    ),
    h("span", { class: "hint" }, t("The rank that hardly waits is the one the others wait for.")),
  ];
}
