/** Deleted runs that can be brought back: the last one at once, the others below the list. */

import { runPath, send } from "../net/api.js";
import { failureText } from "../app/banner.js";
import { h, setText } from "../app/dom.js";
import { moment } from "../app/format.js";
import { t } from "../locale/i18n.js";

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
      return h("li", {}, h("code", {}, run), h("span", { class: "label" }, t("kept until {moment}", { moment: moment(until) })), button);
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
