/** One run as a row of the list. */

import { h, icon, setText, setValue } from "../app/dom.js";
import { count, duration, moment, number } from "../app/format.js";
import { toRun } from "../app/route.js";
import { statusOf } from "../app/status.js";
import { spark } from "../charts/sparkline.js";
import { hubText, t } from "../locale/i18n.js";

export class RunRow {
  run = {};
  #told = "";
  #box = h("input", { type: "checkbox" });
  #link;
  #badges = h("span", { class: "badges" });
  #note = h("span", { class: "note" });
  #status = h("span", { class: "status" });
  #speed = h("span", { class: "number" });
  #spark = h("span", { class: "run-spark" });
  #more = h("button", { type: "button", class: "more", "aria-haspopup": "dialog" }, icon("more"));
  #cells = ["sentence", "number steps", "when", "number lasted"].map((name) => h("td", { class: name }));

  /** `select(on)` when the box is ticked, `edit()` when the run's actions are wanted. */
  constructor(id, { select, edit }) {
    this.#link = h("a", { href: toRun(id) });
    this.#box.addEventListener("change", () => select(this.#box.checked));
    this.#more.addEventListener("click", edit);
    const name = h(
      "th", { scope: "row", class: "name" }, this.#link, h("span", { class: "run-id" }, id), this.#badges, this.#note,
    );
    const [sentence, ...rest] = this.#cells;
    this.element = h(
      "tr", {}, h("td", { class: "select" }, this.#box), name, h("td", { class: "status-cell" }, this.#status),
      sentence, h("td", { class: "speed" }, this.#spark, this.#speed), ...rest,
      h("td", { class: "more" }, this.#more),
    );
  }

  update(run, selected) {
    this.run = run;
    this.#box.checked = selected;
    this.element.classList.toggle("selected", selected);
    const told = JSON.stringify(run);
    if (told === this.#told) return;
    this.#told = told;
    this.#show(run);
  }

  #show(run) {
    const name = String(run.name ?? run.run);
    const { word, tone } = statusOf(run.status);
    setText(this.#link, name);
    this.#box.setAttribute("aria-label", t("Select {name}", { name }));
    this.#more.title = t("Actions for {name}", { name });
    this.#more.setAttribute("aria-label", this.#more.title);
    setText(this.#status, t(word));
    this.#status.dataset.tone = tone;
    this.#badges.replaceChildren(...badges(run));
    setText(this.#note, (run.note ?? "").split("\n")[0]);
    setValue(this.#speed, number(run.steps_per_s ?? null));
    this.#spark.replaceChildren(...spark(run.spark ?? []));
    const texts = [
      hubText(run.verdict?.i18n, run.verdict?.text ?? run.error ?? ""), count(run.steps ?? null),
      moment(run.started_unix_s ?? null), duration(run.duration_s ?? null),
    ];
    texts.forEach((text, i) => setValue(this.#cells[i], text));
  }
}

function badges(run) {
  const out = (run.tags ?? []).map((tag) => h("span", { class: "tag" }, tag));
  if (run.archived) out.unshift(h("span", { class: "tag quiet" }, t("archived")));
  if (run.baseline) out.unshift(h("span", { class: "tag strong" }, icon("flag"), t("baseline")));
  return out;
}
