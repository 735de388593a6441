/** Above the list: search, whether archived runs are shown, and what is selected to be compared. */

import { h, setText } from "../app/dom.js";
import { toCompare } from "../app/route.js";
import { isLive } from "../app/status.js";
import { t } from "../locale/i18n.js";

const TEXTS = ["run", "name", "project", "status", "finding", "note"];

/** Live ones first, the newest of each first. */
export function inOrder(runs) {
  const start = (run) => run.started_unix_s ?? 0;
  return [...runs].sort((a, b) => Number(isLive(b.status)) - Number(isLive(a.status)) || start(b) - start(a));
}

/** Runs that hold every word of `query` somewhere; archived ones only when they are asked for. */
export function chosen(runs, query, archived) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return runs.filter((run) => (archived || !run.archived) && words.every((word) => holds(run, word)));
}

function holds(run, word) {
  const texts = [...TEXTS.map((key) => run[key]), run.verdict?.text, ...(run.tags ?? [])];
  return texts.some((text) => String(text ?? "").toLowerCase().includes(word));
}

/** Ids to compare, the baseline first: that of their project where it is among them, else the one selected first. */
export function comparable(selected, runs) {
  const ids = [...selected].filter((id) => runs.some((run) => run.run === id));
  const baseline = ids.find((id) => runs.some((run) => run.run === id && run.baseline));
  return baseline === undefined ? ids : [baseline, ...ids.filter((id) => id !== baseline)];
}

const MOST = 6; // runs beside each other, as the hub has it

export class RunsBar {
  element = h("div", { class: "runs-bar" });
  selected = new Set(); // ids, in the order in which they were selected
  #onChange;
  #search = h("input", {
    type: "search", "aria-label": t("Search runs"), placeholder: t("Search: name, tag, note, status, finding"),
    autocomplete: "off", spellcheck: "false",
  });
  #archived = h("input", { type: "checkbox" });
  #archivedBox = h("label", { class: "check", hidden: true }, this.#archived, h("span"));
  #chosen = h("p", { class: "chosen", role: "status" });
  #compare = h("a", { class: "button primary" }, t("Compare"));
  #clear = h("button", { type: "button", class: "button" }, t("Clear"));
  #pick = h("div", { class: "pick", hidden: true }, this.#chosen, this.#compare, this.#clear);

  /** `onChange()` when other runs are to be shown or are selected. */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#search.addEventListener("input", onChange);
    this.#archived.addEventListener("change", onChange);
    this.#clear.addEventListener("click", () => this.clear());
    this.element.append(this.#search, this.#archivedBox, this.#pick);
  }

  get query() {
    return this.#search.value;
  }

  get archived() {
    return this.#archived.checked;
  }

  focus() {
    this.#search.focus();
  }

  select(id, on) {
    if (on) this.selected.add(id);
    else this.selected.delete(id);
    this.#onChange();
  }

  clear() {
    this.selected.clear();
    this.#onChange();
  }

  update(runs) {
    const archived = runs.filter((run) => run.archived).length;
    this.#archivedBox.hidden = archived === 0;
    setText(this.#archivedBox.lastChild, t("archived: {count}", { count: archived }));
    const ids = comparable(this.selected, runs);
    const name = runs.find((run) => run.run === ids[0])?.name ?? "";
    this.#pick.hidden = ids.length === 0;
    setText(this.#chosen, hint(ids.length, name));
    const ready = ids.length >= 2 && ids.length <= MOST;
    this.#compare.hidden = !ready;
    if (ready) this.#compare.setAttribute("href", toCompare(ids));
  }
}

function hint(count, name) {
  if (count === 1) return t("{name} selected. Select another one to compare it with.", { name });
  if (count > MOST) return t("At most {most} runs can be compared.", { most: MOST });
  return t("Selected: {count}. Baseline: {name}", { count, name });
}
