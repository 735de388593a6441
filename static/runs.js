/** The list of all runs, live ones first. */

import { read } from "./api.js";
import { failureText } from "./banner.js";
import { h, setText, setValue } from "./dom.js";
import { count, duration, moment, number } from "./format.js";
import { hubText, N, t } from "./i18n.js";
import { toRun } from "./route.js";
import { PLAIN_TAB, showTab } from "./tab.js";
import { isLive, statusOf } from "./status.js";

const AGAIN_MS = 3_000; // between two reads of the list while it is on screen
const MAX_ROWS = 500;
const HEADS = [N("Run"), N("Status"), N("Verdict"), N("Steps"), N("Steps/s"), N("Started"), N("Duration")];

/** The list as the hub gives it, newest first, live ones before the others. */
export async function readRuns(signal) {
  const { body } = await read("api/runs", { signal });
  const runs = Array.isArray(body) ? body : body.runs ?? [];
  const start = (run) => run.started_unix_s ?? 0;
  return runs.sort((a, b) => Number(isLive(b.status)) - Number(isLive(a.status)) || start(b) - start(a));
}

export class RunList {
  element = h("section", { class: "runs", "aria-labelledby": "runs-title" });
  strip = h("div", { class: "strip-run" }, h("div", { class: "who" }, h("h1", { id: "runs-title" }, t("Runs"))));
  #message = h("p", { class: "nothing" }, t("Looking…"));
  #body = h("tbody");
  #table = h("table", { hidden: true });
  #rows = new Map(); // run id → {element, cells}
  #abort = new AbortController();
  #timer = null;
  actions = {};

  constructor() {
    const heads = HEADS.map((text) => h("th", { scope: "col" }, t(text)));
    this.#table.append(h("caption", { class: "offscreen" }, t("All runs")), h("thead", {}, h("tr", {}, ...heads)), this.#body);
    this.element.append(this.#message, this.#table);
  }

  connect() {
    showTab(PLAIN_TAB);
    this.#refresh();
  }

  disconnect() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  #refresh = async () => {
    try {
      if (!document.hidden) this.#show(await readRuns(this.#abort.signal));
    } catch (error) {
      if (error.name === "AbortError") return;
      setText(this.#message, error.status === 0 ? t("The hub does not answer. Trying again…") : failureText(error));
      this.#message.hidden = false;
    }
    this.#timer = setTimeout(this.#refresh, AGAIN_MS);
  };

  #show(runs) {
    const shown = runs.slice(0, MAX_ROWS);
    setText(this.#message, shown.length === 0 ? t("No runs yet. Start one with: {command}", { command: "torchvitals run train.py" }) : "");
    this.#message.hidden = shown.length > 0;
    this.#table.hidden = shown.length === 0;
    const elements = shown.map((run) => this.#row(run));
    if (elements.length !== this.#body.children.length || elements.some((e, i) => this.#body.children[i] !== e)) {
      this.#body.replaceChildren(...elements);
    }
  }

  #row(run) {
    const id = String(run.run ?? run.id);
    if (!this.#rows.has(id)) this.#rows.set(id, emptyRow(id));
    const { element, link, status, cells } = this.#rows.get(id);
    const { word, tone } = statusOf(run.status);
    setText(link, String(run.name ?? id));
    setText(status, t(word));
    status.dataset.tone = tone;
    const texts = [
      hubText(run.verdict?.i18n, run.verdict?.text ?? run.error ?? ""), count(run.steps ?? null), number(run.steps_per_s ?? null),
      moment(run.started_unix_s ?? null), duration(run.duration_s ?? null),
    ];
    texts.forEach((text, i) => setValue(cells[i], text));
    return element;
  }
}

function emptyRow(id) {
  const link = h("a", { href: toRun(id) });
  const status = h("span", { class: "status" });
  const cells = ["sentence", "number", "number", "when", "number"].map((name) => h("td", { class: name }));
  const name = h("th", { scope: "row" }, link, h("span", { class: "run-id" }, id));
  return { element: h("tr", {}, name, h("td", {}, status), ...cells), link, status, cells };
}
