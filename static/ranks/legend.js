/** What the heat map's colours mean. */

import { h } from "../app/dom.js";
import { withUnit } from "../app/format.js";
import { waitColour } from "./heatmapcells.js";
import { t, word } from "../locale/i18n.js";
import { phaseColour } from "../charts/palette.js";

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
  ramp.style.background = `linear-gradient(90deg, ${STOPS.map((at) => `rgb(${waitColour(at, theme).join(" ")})`).join(", ")})`;
  return [
    h("span", {}, t("Waiting for other ranks, a step:")),
    h("span", { class: "ramp-box" }, h("span", {}, "0"), ramp, h("span", {}, t("{most} or more", { most: withUnit(scale, "ms") }))),
    h("span", { class: "hint" }, t("The rank that hardly waits is the one the others wait for.")),
  ];
}
