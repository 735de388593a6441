/** Phase by phase: where a step's time went before and after. */

import { h } from "../app/dom.js";
import { withUnit } from "../app/format.js";
import { t, word } from "../locale/i18n.js";
import { phaseColour } from "../charts/palette.js";

const LEAST_MS = 0.02; // a phase below this on both sides is left out

/** The card with the bars; null where no phase was measured. */
export function phases({ phases: found, baseline, candidate }, theme) {
  const rows = Object.entries(found).filter(([, pair]) => pair.every((ms) => ms !== null) && Math.max(...pair) >= LEAST_MS);
  if (rows.length === 0) return null;
  const most = Math.max(...rows.flatMap(([, pair]) => pair));
  const list = h("dl", { class: "bars" }, ...rows.map(([phase, pair]) => bars(phase, pair, most, theme)));
  const legend = h("p", { class: "label legend-of" }, h("span", { class: "key before" }), name(baseline), h("span", { class: "key after" }), name(candidate));
  return h("section", { class: "card phase-bars" }, h("h2", {}, t("Mean time of a step, phase by phase")), legend, list);
}

function bars(phase, [before, after], most, theme) {
  const bar = (ms, side) => {
    const drawn = h("span", { class: `bar ${side}` });
    drawn.style.width = `${Math.max((100 * ms) / most, 0.3)}%`;
    drawn.style.setProperty("--phase", phaseColour(phase, theme));
    return h("dd", {}, h("span", { class: "track" }, drawn), h("span", { class: "number" }, withUnit(ms, "ms")));
  };
  return h("div", {}, h("dt", {}, word(phase)), bar(before, "before"), bar(after, "after"));
}

function name({ name: given, run }) {
  return String(given ?? run);
}
