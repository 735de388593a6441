/** Wiring: address → view, keys → actions, theme. */

import { h } from "./dom.js";
import { Help } from "./help.js";
import { icon } from "./icons.js";
import { Keys } from "./keys.js";
import { parse, TO_RUNS } from "./route.js";
import { readRuns, RunList } from "./runs.js";
import { RunView } from "./runview.js";
import { isLive } from "./status.js";
import { Theme } from "./theme.js";

class Page {
  #theme = new Theme();
  #help = new Help();
  #keys = null;
  #view = null;
  #turn = 0;
  #themeButton = document.getElementById("theme");

  connect() {
    document.body.append(this.#help.element);
    document.getElementById("help").append(icon("keys"));
    document.getElementById("help").addEventListener("click", this.#help.toggle);
    this.#themeButton.addEventListener("click", this.#nextTheme);
    this.#theme.connect(this.#showTheme);
    window.addEventListener("hashchange", this.#go);
    this.#go();
  }

  #go = async () => {
    const turn = ++this.#turn;
    const view = await this.#choose(parse(location.hash));
    if (turn === this.#turn) this.#show(view);
  };

  async #choose({ view, run }) {
    if (view === "run") return new RunView(run, this.#theme);
    if (view === "runs") return new RunList();
    const newest = await readRuns().then((runs) => runs[0], () => undefined);
    return newest !== undefined && isLive(newest.status) ? new RunView(newest.run, this.#theme) : new RunList();
  }

  #show(view) {
    this.#view?.disconnect();
    this.#keys?.disconnect();
    this.#view = view;
    document.getElementById("strip").replaceChildren(view.strip);
    document.getElementById("main").replaceChildren(view.element);
    const always = { "?": this.#help.toggle, t: this.#nextTheme, "g r": () => { location.hash = TO_RUNS; } };
    this.#keys = new Keys({ ...view.actions, ...always });
    this.#keys.connect();
    view.connect();
  }

  #nextTheme = () => this.#theme.next();

  #showTheme = () => {
    const { choice } = this.#theme;
    const label = { auto: "as the system", light: "light", dark: "dark" }[choice];
    this.#themeButton.replaceChildren(icon(choice), h("span", { class: "offscreen" }, `Theme: ${label}`));
    this.#themeButton.title = `Theme: ${label} (t)`;
  };
}

new Page().connect();
