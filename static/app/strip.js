/** The line at the top: which run, how far, how fresh, and whether we hear of it. */

import { h, setText, setValue } from "./dom.js";
import { age, count, duration } from "./format.js";
import { STALE_S } from "./clock.js";
import { N, t } from "../locale/i18n.js";
import { icon } from "./icons.js";
import { isCleared } from "../findings/ranking.js";
import { remainingS } from "../findings/saving.js";
import { isLive, statusOf } from "./status.js";

const TICK_MS = 500;
const CONNECTIONS = {
  connecting: N("connecting"), open: N("connected"), polling: N("every 5 s"), waiting: N("no connection"), refused: N("refused"), closed: N("closed"),
};

export class Strip {
  element = h("div", { class: "strip-run" });
  #clock;
  #name = h("h1");
  #id = h("span", { class: "run-id" });
  #status = h("span", { class: "status" });
  #step = h("span", { class: "number" });
  #epoch = h("span", { class: "number" });
  #eta = h("span", { class: "number" });
  #etaBox = h("span", { class: "fact", hidden: true }, h("span", { class: "label" }, t("time left")), this.#eta);
  #alerts = h("span", { class: "number" });
  #alertsBox = h("span", { class: "fact alerts", hidden: true }, icon("warning"), h("span", { class: "label" }, t("alerts")), this.#alerts);
  #age = h("span", { class: "number" });
  #ageBox = h("span", { class: "fact age" }, h("span", { class: "label" }, t("data age")), this.#age);
  #link = h("span", { class: "link" });
  #update = {};
  #timer = null;

  /** `clock`: a HubClock. */
  constructor(clock) {
    this.#clock = clock;
    const fact = (label, value) => h("span", { class: "fact" }, h("span", { class: "label" }, label), value);
    this.element.append(
      h("div", { class: "who" }, this.#name, this.#id), this.#status,
      fact(t("step"), this.#step), fact(t("epoch"), this.#epoch), this.#etaBox, this.#alertsBox, this.#ageBox, this.#link);
    setText(this.#name, "…");
    this.connection({ state: "connecting" });
  }

  connect() {
    this.#timer = setInterval(this.#tick, TICK_MS);
  }

  disconnect() {
    clearInterval(this.#timer);
  }

  connection({ state }) {
    setText(this.#link, t(CONNECTIONS[state] ?? state));
    this.#link.dataset.state = state;
  }

  update(update) {
    this.#update = update;
    const { word, tone } = statusOf(update.status);
    setText(this.#name, String(update.name ?? update.run ?? ""));
    setText(this.#id, String(update.run ?? ""));
    this.#id.title = String(update.run ?? "");
    setText(this.#status, t(word));
    this.#status.dataset.tone = tone;
    setValue(this.#step, count(update.steps));
    setValue(this.#epoch, count(update.epoch));
    const left = remainingS(update);
    this.#etaBox.hidden = left === null;
    setText(this.#eta, duration(left) ?? "");
    const alerts = (update.findings ?? []).filter((finding) => !isCleared(finding) && finding.severity !== "info").length;
    this.#alertsBox.hidden = alerts === 0;
    setText(this.#alerts, count(alerts));
    this.#tick();
  }

  #tick = () => {
    const { status, data_unix_s: dataUnixS } = this.#update;
    const seconds = this.#clock.age(dataUnixS);
    const stale = isLive(status) && seconds !== null && seconds > STALE_S;
    setValue(this.#age, age(seconds));
    this.#ageBox.classList.toggle("stale", stale);
    this.#ageBox.hidden = !isLive(status) && status !== undefined;
    document.body.classList.toggle("is-stale", stale);
  };
}
