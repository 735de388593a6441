/** The line at the top: which run, how far, how fresh, and whether we hear of it. */

import { N, t } from "../locale/i18n.js";
import { h, icon, setText, setValue } from "./dom.js";
import { age, count, duration } from "./format.js";
import { isLive, isOver, statusOf } from "./status.js";

/** Data older than this while the run is running is stale, in seconds. */
export const STALE_S = 5;

export class HubClock {
  #aheadS = -Infinity; // hub's clock minus ours
  #nowS;

  /** `nowS()` is the viewer's clock in unix seconds. */
  constructor(nowS = () => Date.now() / 1000) {
    this.#nowS = nowS;
  }

  /**
   * A time that the hub's clock had already reached when the message came. Each such time is a lower
   * bound of how far the hub is ahead, so the largest is the best; a fast message makes it exact.
   */
  note(hubUnixS) {
    if (Number.isFinite(hubUnixS)) this.#aheadS = Math.max(this.#aheadS, hubUnixS - this.#nowS());
  }

  /** Seconds since `dataUnixS` on the hub's clock; null when either is unknown. */
  age(dataUnixS) {
    if (!Number.isFinite(dataUnixS) || this.#aheadS === -Infinity) return null;
    return Math.max(0, this.#nowS() + this.#aheadS - dataUnixS);
  }
}

const TICK_MS = 500;
const CONNECTIONS = {
  connecting: N("connecting"),
  open: N("connected"),
  polling: N("every 5 s"),
  waiting: N("no connection"),
  refused: N("refused"),
  closed: N("closed"),
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
  #alertsBox = h(
    "span", { class: "fact alerts", hidden: true }, icon("warning"), h("span", { class: "label" }, t("alerts")),
    this.#alerts,
  );
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
      h("div", { class: "who" }, this.#name, this.#id),
      this.#status,
      fact(t("step"), this.#step),
      fact(t("epoch"), this.#epoch),
      this.#etaBox,
      this.#alertsBox,
      this.#ageBox,
      this.#link,
    );
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
    const left = update.remaining_s ?? null;
    this.#etaBox.hidden = left === null;
    setText(this.#eta, duration(left) ?? "");
    const alerts = (update.findings ?? []).filter(
      (finding) => !isOver(finding) && finding.severity !== "info",
    ).length;
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
