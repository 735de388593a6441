/** Wiring: address → view, keys → actions, theme. */

import { chooseLanguage, onLanguage, otherLanguage, startLanguage, t } from "../locale/i18n.js";
import { newestLive, RunList } from "../runs/list.js";
import { h, icon } from "./dom.js";
import { Help, Keys } from "./keys.js";
import { parse, TO_RUNS } from "./route.js";
import { RunView } from "./runview.js";
import { Theme } from "./theme.js";

class Page {
  #theme = new Theme();
  #help = null;
  #keys = null;
  #view = null;
  #turn = 0;
  #themeButton = document.getElementById("theme");
  #helpButton = document.getElementById("help");
  #languageButton = document.getElementById("language");

  connect() {
    this.#helpButton.addEventListener("click", this.#toggleHelp);
    this.#themeButton.addEventListener("click", this.#nextTheme);
    this.#languageButton.addEventListener("click", this.#nextLanguage);
    this.#theme.connect(this.#showTheme);
    onLanguage(this.#speak);
    window.addEventListener("hashchange", this.#go);
    this.#speak();
  }

  /** Everything anew in the language chosen: a page that was built in another one holds texts of it. */
  #speak = () => {
    this.#help?.element.remove();
    this.#help = new Help();
    document.body.append(this.#help.element);
    document.getElementById("home").title = t("All runs (g r)");
    label(this.#helpButton, icon("keys"), t("Keys"), t("Keys (?)"));
    const { code, name } = otherLanguage();
    this.#languageButton.lang = code;
    label(this.#languageButton, icon("language"), name, name);
    this.#showTheme();
    this.#go();
  };

  #go = async () => {
    const turn = ++this.#turn;
    const view = await this.#choose(parse(location.hash.split("?", 1)[0]));
    if (turn === this.#turn) this.#show(view);
  };

  async #choose({ view, run, ...asked }) {
    if (view === "run") return new RunView(run, this.#theme);
    if (view === "compare") return new (await import("../compare/view.js")).CompareView(asked, this.#theme);
    if (view === "runs") return new RunList();
    const newest = await newestLive();
    return newest === undefined ? new RunList() : new RunView(newest.run, this.#theme);
  }

  #show(view) {
    this.#view?.disconnect();
    this.#keys?.disconnect();
    this.#view = view;
    document.getElementById("strip").replaceChildren(view.strip);
    document.getElementById("main").replaceChildren(view.element);
    const always = { "?": this.#toggleHelp, t: this.#nextTheme, "g r": () => { location.hash = TO_RUNS; } };
    this.#keys = new Keys({ ...view.actions, ...always });
    this.#keys.connect();
    view.connect();
  }

  #nextTheme = () => this.#theme.next();
  #nextLanguage = () => chooseLanguage(otherLanguage().code);
  #toggleHelp = () => this.#help.toggle();

  #showTheme = () => {
    const { choice } = this.#theme;
    const theme = { auto: t("as the system"), light: t("light"), dark: t("dark") }[choice];
    label(this.#themeButton, icon(choice), t("Theme: {theme}", { theme }), t("Theme: {theme} (t)", { theme }));
  };
}

function label(button, drawing, text, title) {
  button.replaceChildren(drawing, h("span", { class: "offscreen" }, text));
  button.title = title;
}

await startLanguage();
new Page().connect();
