/** Runs beside each other: what differs first, then what that brought. The first run is the baseline. */

import { failureText } from "../app/banner.js";
import { h, setText } from "../app/dom.js";
import { toCompare, toRun } from "../app/route.js";
import { isLive, PLAIN_TAB, showTab, statusOf } from "../app/status.js";
import { t } from "../locale/i18n.js";
import { read } from "../net/api.js";
import { promises, what } from "./changes.js";
import { Curves } from "./curves.js";
import { numbers, phases, speed } from "./measured.js";

const AGAIN_MS = 10_000; // between two reads while one of the runs goes on

export class CompareView {
  element = h("section", { class: "compare", "aria-labelledby": "compare-title" });
  strip = h("div", { class: "strip-run" }, h("div", { class: "who" }, h("h1", { id: "compare-title" }, t("Compare"))));
  actions = {};
  #runs;
  #align;
  #theme;
  #message = h("p", { class: "nothing", role: "status" }, t("Looking…"));
  #sides = h("ol", { class: "sides" });
  #pairs = h("div", { class: "pairs" });
  #curves;
  #abort = new AbortController();
  #timer = null;
  #told = "";
  #body = null;

  constructor({ runs, align }, theme) {
    [this.#runs, this.#align, this.#theme] = [runs, align, theme];
    this.#curves = new Curves(align, theme);
    this.element.append(this.#message, this.#sides, this.#pairs, this.#curves.element);
  }

  connect() {
    showTab({ ...PLAIN_TAB, title: `${t("Compare")} – torchvitals` });
    this.#theme.connect(this.#draw);
    this.#curves.connect();
    this.#refresh();
  }

  disconnect() {
    this.#abort.abort();
    clearTimeout(this.#timer);
    this.#theme.disconnect(this.#draw);
    this.#curves.disconnect();
  }

  #refresh = async () => {
    try {
      const query = { runs: this.#runs.join(","), align: this.#align };
      const { body } = await read("api/compare", { signal: this.#abort.signal, query });
      this.#take(body);
    } catch (error) {
      if (error.name === "AbortError") return;
      setText(this.#message, failureText(error));
      this.#message.hidden = false;
    }
  };

  #take(body) {
    this.#message.hidden = true;
    if (body.runs.some(({ status }) => isLive(status))) this.#timer = setTimeout(this.#refresh, AGAIN_MS);
    const told = JSON.stringify(body);
    if (told === this.#told) return;
    this.#told = told;
    this.#body = body;
    this.#draw();
  }

  #draw = () => {
    if (this.#body === null) return;
    const { runs, comparisons, curves } = this.#body;
    this.#sides.replaceChildren(...runs.map((run, i) => this.#side(run, i)));
    this.#pairs.replaceChildren(...comparisons.map((pair) => pairOf(pair, comparisons.length > 1, this.#theme.name)));
    this.#curves.update(runs, curves, this.#align === "time" ? toCompare(this.#runs) : toCompare(this.#runs, "time"));
  };

  #side(run, i) {
    const { word, tone } = statusOf(run.status);
    const first = [run.run, ...this.#runs.filter((other) => other !== run.run)];
    const role =
      i === 0
        ? h("span", { class: "label" }, t("baseline"))
        : h("a", { class: "label", href: toCompare(first, this.#align) }, t("make it the baseline"));
    return h("li", { class: "side-of" }, role, h("a", { href: toRun(run.run) }, String(run.name ?? run.run)),
      h("span", { class: "run-id" }, run.run), h("span", { class: "status", "data-tone": tone }, t(word)));
  }
}

function pairOf(pair, several, theme) {
  const parts = [what(pair), speed(pair), promises(pair), phases(pair, theme), numbers(pair)];
  const title = several ? [h("h2", { class: "pair-title" }, `${pair.baseline.name} → ${pair.candidate.name}`)] : [];
  return h("div", { class: "pair" }, ...title, ...parts.filter((part) => part !== null));
}
