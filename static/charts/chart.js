/** The only file that knows Plotly: draws lines, bands and stacked areas over one time axis. */

import { faded } from "../app/theme.js";
import { t } from "../locale/i18n.js";

/** Room around the plot in px; the crosshair relies on left and right. */
export const MARGIN = { l: 52, r: 10, t: 6, b: 24 };

const CONFIG = { displayModeBar: false, doubleClick: false, scrollZoom: false, responsive: false, showTips: false };
const LEAST_BAND_PX = 1.5; // a band thinner than this tells nothing

let loading = null;

/** Fetch the library, once, after everything that matters more is on the screen. */
export function loadCharts() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `plotly.js?v=${encodeURIComponent(document.documentElement.dataset.plotly ?? "")}`;
    script.addEventListener("load", () => (window.Plotly ? resolve() : reject(new Error(t("no chart library came")))));
    script.addEventListener("error", () => reject(new Error(t("the chart library could not be loaded"))));
    document.head.append(script);
  });
  return loading;
}

export class Chart {
  #element;
  #onZoom;
  #onReset;
  #drawn = false;

  /** `onZoom(from, to)` when the viewer drew or moved a range, `onReset()` on a double click. */
  constructor(element, { onZoom, onReset }) {
    this.#element = element;
    this.#onZoom = onZoom;
    this.#onReset = onReset;
  }

  /**
   * Draw `picture`: `{lines, stacked, x: {range, values, texts}, y: {range, values, texts}, ink, draggable}`,
   * each line `{t, mean, min, max, colour, dash, width, band}`; times in seconds, null is a gap.
   */
  async draw(picture) {
    const layout = this.#layout(picture);
    const traces = picture.stacked
      ? stack(picture)
      : picture.lines.flatMap((line) => lineTraces(line, picture, layout));
    await window.Plotly.react(this.#element, traces, layout, CONFIG);
    if (this.#drawn) return;
    this.#drawn = true;
    this.#element.on("plotly_relayout", this.#relayout);
    this.#element.on("plotly_doubleclick", this.#onReset);
  }

  disconnect() {
    if (this.#drawn) window.Plotly.purge(this.#element);
    this.#drawn = false;
  }

  #relayout = (change) => {
    const [from, to] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (from !== undefined && to !== undefined) this.#onZoom(Number(from), Number(to));
  };

  #layout({ x, y, ink, draggable }) {
    const axis = {
      zeroline: false, showline: false, ticks: "outside", ticklen: 4, tickcolor: "rgba(0,0,0,0)", tickmode: "array",
      gridcolor: ink.grid,
    };
    return {
      width: this.#element.clientWidth,
      height: this.#element.clientHeight,
      margin: MARGIN,
      showlegend: false,
      hovermode: false,
      dragmode: draggable ? "zoom" : false,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: ink.font, size: 11, color: ink.text },
      xaxis: { ...axis, range: [...x.range], tickvals: x.values, ticktext: x.texts, fixedrange: !draggable },
      yaxis: { ...axis, range: [...y.range], tickvals: y.values, ticktext: y.texts, fixedrange: true },
    };
  }
}

function lineTraces(line, picture, layout) {
  const trace = {
    type: "scatter", mode: "lines", hoverinfo: "skip", x: line.t, y: line.mean, connectgaps: false,
    line: { color: line.colour, dash: line.dash, width: line.width ?? 1.5, simplify: true },
  };
  if (line.t.length === 1) Object.assign(trace, { mode: "markers", marker: { color: line.colour, size: 4 } });
  const perPixel = (picture.y.range[1] - picture.y.range[0]) / Math.max(layout.height - MARGIN.t - MARGIN.b, 1);
  return line.band && isWide(line, perPixel * LEAST_BAND_PX) ? [band(line), trace] : [trace];
}

function isWide({ min, max }, least) {
  return max.some((value, i) => value !== null && value - min[i] > least);
}

/** The area from min to max as one outline: forward along the top, back along the bottom. */
function band({ t, min, max, colour }) {
  const known = t.map((_, i) => i).filter((i) => min[i] !== null && max[i] !== null);
  const back = [...known].reverse();
  return {
    type: "scatter",
    mode: "lines",
    hoverinfo: "skip",
    fill: "toself",
    fillcolor: faded(colour, 0.18),
    line: { width: 0 },
    x: [...known, ...back].map((i) => t[i]),
    y: [...known.map((i) => max[i]), ...back.map((i) => min[i])],
  };
}

/** Areas on top of one another, lowest first. Sums are made here: Plotly's own stacking costs twice the time. */
function stack({ lines, ink }) {
  const below = new Array(lines[0]?.t.length ?? 0).fill(0);
  return lines.map((line, index) => {
    line.mean.forEach((value, i) => { below[i] += value ?? 0; });
    return {
      type: "scatter", mode: "lines", hoverinfo: "skip", x: line.t, y: [...below],
      fill: index === 0 ? "tozeroy" : "tonexty", fillcolor: faded(line.colour, 0.85),
      line: { color: ink.ground, width: 0.75 },
    };
  });
}
