/** The list of all runs, live ones first: search, select to compare, say something of a run, delete with undo. */

import { failureText } from "../app/banner.js";
import { h, setText } from "../app/dom.js";
import { PLAIN_TAB, showTab } from "../app/status.js";
import { N, t } from "../locale/i18n.js";
import { read } from "../net/api.js";
import { chosen, inOrder, RunsBar } from "./bar.js";
import { RunEditor, RunsTrash } from "./edit.js";
import { RunRow } from "./row.js";

const AGAIN_MS = 3_000; // between two reads of the list while it is on screen
const ROWS = 40; // shown at first, and added whenever the end of the list comes into view
const HEADS = [
  ["select", N("Select")],
  ["name", N("Run")],
  ["state", N("Status")],
  ["sentence", N("Verdict")],
  ["speed", N("Steps/s")],
  ["steps", N("Steps")],
  ["when", N("Started")],
  ["lasted", N("Duration")],
  ["more", N("Actions")],
];

/** The newest run that goes on; undefined where none does, or the hub does not answer. */
export async function newestLive() {
  return read("api/runs?live=1").then(({ body }) => body?.runs?.[0], () => undefined);
}

async function readList(signal) {
  const { body } = await read("api/runs", { signal });
  return { runs: inOrder(body?.runs ?? []), trash: body?.trash ?? [] };
}

export class RunList {
  element = h("section", { class: "runs", "aria-labelledby": "runs-title" });
  strip = h("div", { class: "strip-run" }, h("div", { class: "who" }, h("h1", { id: "runs-title" }, t("Runs"))));
  #message = h("p", { class: "nothing", role: "status" }, t("Looking…"));
  #body = h("tbody");
  #table = h("table", { hidden: true });
  #more = h("button", { type: "button", class: "button", hidden: true });
  #end = new IntersectionObserver((seen) => seen.some((entry) => entry.isIntersecting) && this.#grow());
  #limit = ROWS;
  #query = "";
  #bar = new RunsBar(() => this.#draw());
  #trash = new RunsTrash(() => this.#refresh());
  #editor = new RunEditor({
    changed: () => this.#refresh(),
    deleted: (run) => {
      this.#bar.select(run.run, false);
      this.#trash.offer(run);
      this.#refresh();
    },
  });
  #rows = new Map(); // run id → RunRow
  #runs = [];
  #abort = new AbortController();
  #timer = null;
  actions = { "/": () => this.#bar.focus(), Escape: () => this.#bar.clear() };

  constructor() {
    const quiet = new Set(["select", "more"]);
    const head = ([name, text]) =>
      h("th", { scope: "col", class: name }, quiet.has(name) ? h("span", { class: "offscreen" }, t(text)) : t(text));
    this.#table.append(
      h("caption", { class: "offscreen" }, t("All runs")),
      h("thead", {}, h("tr", {}, ...HEADS.map(head))),
      this.#body,
    );
    this.element.append(
      this.#bar.element, this.#message, this.#table, this.#more, this.#trash.element, this.#editor.element,
    );
  }

  connect() {
    showTab(PLAIN_TAB);
    this.#more.addEventListener("click", this.#grow);
    this.#end.observe(this.#more);
    this.#refresh();
  }

  disconnect() {
    this.#abort.abort();
    this.#end.disconnect();
    clearTimeout(this.#timer);
  }

  #refresh = async () => {
    clearTimeout(this.#timer);
    try {
      if (!document.hidden) {
        const { runs, trash } = await readList(this.#abort.signal);
        this.#runs = runs;
        this.#trash.update(trash);
        this.#draw();
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      setText(this.#message, error.status === 0 ? t("The hub does not answer. Trying again…") : failureText(error));
      this.#message.hidden = false;
    }
    clearTimeout(this.#timer);
    if (!this.#abort.signal.aborted) this.#timer = setTimeout(this.#refresh, AGAIN_MS);
  };

  #grow = () => {
    this.#limit += ROWS;
    this.#draw();
  };

  #draw() {
    if (this.#bar.query !== this.#query) this.#limit = ROWS;
    this.#query = this.#bar.query;
    const found = chosen(this.#runs, this.#query, this.#bar.archived);
    const shown = found.slice(0, this.#limit);
    this.#bar.update(this.#runs);
    this.#tell(shown.length, found.length);
    const elements = shown.map((run) => this.#row(run));
    const same = elements.findIndex((element, i) => this.#body.children[i] !== element);
    if (same < 0) [...this.#body.children].slice(elements.length).forEach((element) => element.remove());
    else if (same === this.#body.children.length) this.#body.append(...elements.slice(same));
    else this.#body.replaceChildren(...elements);
  }

  #tell(shown, found) {
    const none =
      this.#runs.length === 0
        ? t("No runs yet. Start one with: {command}", { command: "torchvitals run train.py" })
        : t("No run is like that.");
    setText(this.#message, shown === 0 ? none : "");
    this.#message.hidden = shown > 0;
    this.#table.hidden = shown === 0;
    this.#more.hidden = shown === found;
    setText(this.#more, t("{shown} of {found} runs. Show more", { shown, found }));
  }

  #row(run) {
    if (!this.#rows.has(run.run)) {
      const row = new RunRow(run.run, {
        select: (on) => this.#bar.select(run.run, on), edit: () => this.#editor.open(row.run),
      });
      this.#rows.set(run.run, row);
    }
    const row = this.#rows.get(run.run);
    row.update(run, this.#bar.selected.has(run.run));
    return row.element;
  }
}
