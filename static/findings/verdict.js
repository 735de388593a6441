/** The one sentence that says how the run is, with a sign for its tone. */

import { h, icon, setText } from "../app/dom.js";
import { hubText, N, t } from "../locale/i18n.js";

/** The hub's tones → icon and the word that screen readers hear in its place. */
const TONES = {
  good: ["ok", N("Well")], info: ["info", N("Note")], warning: ["warning", N("Warning")], critical: ["critical", N("Trouble")],
  waiting: ["unknown", N("Not known yet")],
};

export class Verdict {
  element = h("section", { class: "verdict", "aria-labelledby": "verdict-title" });
  #sign = h("span", { class: "sign" });
  #text = h("p");
  #saving = h("div", { class: "saving" });
  #spoken = h("div", { class: "offscreen", "aria-live": "polite" });
  #key = null;

  constructor() {
    this.element.append(h("h2", { id: "verdict-title", class: "offscreen" }, t("Verdict")), this.#sign, h("div", {}, this.#text, this.#saving), this.#spoken);
    this.update({ tone: "waiting", text: t("Looking…"), key: null });
  }

  /**
   * `verdict`: `{key, text, tone}`, and `saving`: `{text}` on what it costs, or null. Spoken again only when it
   * says something else, not at every digit.
   */
  update(verdict, saving = null) {
    setText(this.#saving, saving === null ? "" : hubText(saving.i18n, saving.text));
    const tone = TONES[verdict?.tone] === undefined ? "waiting" : verdict.tone;
    const text = verdict?.text ? hubText(verdict.i18n, verdict.text) : t("No verdict yet.");
    if (this.element.dataset.tone !== tone) {
      this.element.dataset.tone = tone;
      this.#sign.replaceChildren(icon(TONES[tone][0]), h("span", { class: "offscreen" }, t("{tone}:", { tone: t(TONES[tone][1]) })));
    }
    setText(this.#text, text);
    const key = `${tone} ${verdict?.key}`;
    if (key !== this.#key && verdict?.key !== null) setText(this.#spoken, text);
    this.#key = key;
  }
}
