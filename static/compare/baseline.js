/** How fast the run is against its project's baseline, kept up to date while it goes on. */

import { h, setText } from "../app/dom.js";
import { toCompare } from "../app/route.js";
import { isLive } from "../app/status.js";
import { t } from "../locale/i18n.js";
import { read, runPath } from "../net/api.js";
import { times } from "./measured.js";

const AGAIN_MS = 10_000; // between two looks while the run is live

export class Baseline {
  element = h("p", { class: "to-baseline", hidden: true });
  #run;
  #text = h("span");
  #link = h("a", {}, t("Compare"));
  #abort = new AbortController();
  #timer = null;
  #live = true;

  constructor(run) {
    this.#run = run;
    this.element.append(this.#text, " ", this.#link);
  }

  connect() {
    this.#look();
  }

  disconnect() {
    this.#abort.abort();
    clearTimeout(this.#timer);
  }

  /** Of a run that is over the distance is read once more, and then no longer. */
  update({ status }) {
    const live = isLive(status);
    if (this.#live && !live) this.#timer = setTimeout(this.#look, 0);
    this.#live = live;
  }

  #look = async () => {
    clearTimeout(this.#timer);
    try {
      if (!document.hidden)
        this.#show((await read(`${runPath(this.#run)}/baseline`, { signal: this.#abort.signal })).body);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element.hidden = true; // what the hub does not tell is not shown; the banner says why
    }
    if (this.#live && !this.#abort.signal.aborted) this.#timer = setTimeout(this.#look, AGAIN_MS);
  };

  #show({ baseline, speed }) {
    const text = baseline === null ? null : distance(baseline, speed);
    this.element.hidden = text === null;
    if (text === null) return;
    setText(this.#text, text);
    this.element.dataset.verdict = speed?.verdict ?? "itself";
    this.#link.hidden = speed === null;
    this.#link.setAttribute("href", toCompare([baseline.run, this.#run]));
  }
}

/** The distance in words; null where there are no steps to compare yet. */
export function distance({ name }, speed) {
  if (speed === null) return t("This run is the baseline of its project.");
  if (speed.speedup === null) return null;
  const params = { name, times: times(speed.speedup), low: times(speed.low ?? 0), high: times(speed.high ?? 0) };
  if (speed.low === null) return t("{times}× as fast as baseline {name} (too little is known for an interval)", params);
  if (speed.verdict === "no difference")
    return t(
      "{times}× as fast as baseline {name}: no difference that can be told from chance ({low} to {high})", params,
    );
  return t("{times}× as fast as baseline {name} ({low} to {high})", params);
}
