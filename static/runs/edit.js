/** Changes to a run: tags, a note, baseline, archive, deletion, and what brings a deleted one back. */

import { failureText } from "../app/banner.js";
import { h, setText } from "../app/dom.js";
import { moment } from "../app/format.js";
import { isLive } from "../app/status.js";
import { t } from "../locale/i18n.js";
import { runPath, send } from "../net/api.js";

export class RunEditor {
  #title = h("h2", { id: "edit-title" });
  #tags = h("input", { type: "text", id: "edit-tags", autocomplete: "off" });
  #note = h("textarea", { id: "edit-note", rows: 4, maxlength: 2000 });
  #problem = h("p", { class: "problem", role: "alert" });
  #baseline = h("button", { type: "button", class: "button" });
  #archive = h("button", { type: "button", class: "button" });
  #delete = h("button", { type: "button", class: "button danger" }, t("Delete"));
  #save = h("button", { type: "submit", class: "button primary" }, t("Save"));
  #cancel = h("button", { type: "button", class: "button" }, t("Cancel"));
  #run = {};
  #on;

  /** `changed()` when something was said of a run, `deleted(run)` when one is gone. */
  constructor({ changed, deleted }) {
    this.#on = { changed, deleted };
    const form = h("form", { method: "dialog" },
      h("label", { for: "edit-tags" }, t("Tags, separated by commas")), this.#tags,
      h("label", { for: "edit-note" }, t("Your note")), this.#note, this.#problem,
      h("div", { class: "actions" }, this.#baseline, this.#archive, this.#delete),
      h("div", { class: "actions end" }, this.#cancel, this.#save));
    this.element = h("dialog", { class: "edit", "aria-labelledby": "edit-title" }, this.#title, form);
    form.addEventListener("submit", this.#submit);
    this.#cancel.addEventListener("click", () => this.element.close());
    this.#baseline.addEventListener("click", () => this.#act("baseline", { on: !this.#run.baseline }));
    this.#archive.addEventListener("click", () => this.#act("marks", { archived: !this.#run.archived }));
    this.#delete.addEventListener("click", () => this.#act("delete", {}, this.#on.deleted));
  }

  open(run) {
    this.#run = run;
    setText(this.#title, String(run.name ?? run.run));
    this.#tags.value = (run.tags ?? []).join(", ");
    this.#note.value = run.note ?? "";
    setText(this.#baseline, run.baseline ? t("No longer the baseline") : t("Set as baseline"));
    this.#baseline.title = t("Runs of {project} are measured against it", { project: run.project ?? "" });
    setText(this.#archive, run.archived ? t("Bring back from the archive") : t("Archive"));
    this.#delete.disabled = isLive(run.status);
    this.#delete.title = this.#delete.disabled ? t("A run that is not over cannot be deleted") : "";
    setText(this.#problem, "");
    this.element.showModal();
  }

  #submit = (event) => {
    event.preventDefault();
    const tags = this.#tags.value.split(/[,，]/).map((tag) => tag.trim()).filter((tag) => tag !== "");
    this.#act("marks", { tags, note: this.#note.value });
  };

  async #act(what, body, then = this.#on.changed) {
    const run = this.#run;
    try {
      await send(`${runPath(run.run)}/${what}`, body);
      this.element.close();
      then(run);
    } catch (error) {
      setText(this.#problem, failureText(error));
    }
  }
}

const OFFER_MS = 20_000; // how long the offer stands in the way; the list below has it for an hour

export class RunsTrash {
  element = h("div", { class: "trash" });
  #onRestored;
  #text = h("span");
  #undo = h("button", { type: "button", class: "button" }, t("Undo"));
  #offer = h("div", { class: "offer", role: "status", hidden: true }, this.#text, this.#undo);
  #summary = h("summary");
  #list = h("ul");
  #details = h("details", { hidden: true }, this.#summary, this.#list);
  #last = null;
  #told = "";
  #timer = null;

  /** `onRestored()` when a run is back. */
  constructor(onRestored) {
    this.#onRestored = onRestored;
    this.#undo.addEventListener("click", () => this.#restore(this.#last));
    this.element.append(this.#details, this.#offer);
  }

  /** A run was just deleted. */
  offer({ run, name }) {
    this.#last = run;
    this.#say(t("{name} was deleted.", { name: name ?? run }), true);
    this.#undo.focus();
  }

  update(trash) {
    const told = JSON.stringify(trash);
    if (told === this.#told) return;
    this.#told = told;
    this.#details.hidden = trash.length === 0;
    setText(this.#summary, t("Deleted: {count}", { count: trash.length }));
    this.#list.replaceChildren(...trash.map(({ run, until_unix_s: until }) => {
      const button = h("button", { type: "button", class: "button" }, t("Bring back"));
      button.addEventListener("click", () => this.#restore(run));
      return h(
        "li", {}, h("code", {}, run),
        h("span", { class: "label" }, t("kept until {moment}", { moment: moment(until) })), button,
      );
    }));
  }

  async #restore(run) {
    try {
      await send(`${runPath(run)}/restore`, {});
      this.#offer.hidden = true;
      this.#onRestored();
    } catch (error) {
      this.#say(failureText(error), false);
    }
  }

  #say(text, undo) {
    setText(this.#text, text);
    this.#undo.hidden = !undo;
    this.#offer.hidden = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => { this.#offer.hidden = true; }, OFFER_MS);
  }
}
