/** What is asked of the browser: notifications and the clipboard. */

import { hubText, t } from "../locale/i18n.js";
import { h, icon } from "./dom.js";

const KEY = "torchvitals.notify";
const MOST_TOLD = 200; // findings remembered as told

export class Notify {
  element = h("div", {});
  #told = new Set();
  #run = null;

  /** An update of the run that is shown: offer to notify, and do so where something new is critical. */
  update({ run, name, status, findings = [] }) {
    if (run !== this.#run) this.#told.clear();
    const standing = findings.filter(
      ({ severity, cleared_at_s: over }) => severity === "critical" && (over ?? null) === null,
    );
    const fresh = standing.filter((finding) => !this.#told.has(keyOf(finding)));
    // What stood when the page was opened is seen there.
    if (run === this.#run) fresh.forEach((finding) => tell(run, name, finding));
    if (this.#told.size > MOST_TOLD) this.#told.clear();
    standing.forEach((finding) => this.#told.add(keyOf(finding)));
    this.#run = run;
    this.#offer(status);
  }

  #offer(status) {
    const wanted = status === "running" && permission() === "default" && localStorage.getItem(KEY) === null;
    if (wanted === this.element.hasChildNodes()) return;
    this.element.replaceChildren(...(wanted ? [this.#question()] : []));
  }

  #question() {
    const text = t("Be told when this run stalls or dies, while you look at something else?");
    const yes = h("button", { type: "button" }, t("Notify me"));
    const no = h("button", { type: "button" }, t("No, thanks"));
    yes.addEventListener("click", () => this.#answer(true));
    no.addEventListener("click", () => this.#answer(false));
    return h("p", { class: "notify-offer" }, icon("info"), h("span", {}, text), yes, no);
  }

  async #answer(yes) {
    localStorage.setItem(KEY, yes ? "on" : "off");
    if (yes) await Notification.requestPermission();
    this.element.replaceChildren();
  }
}

/**
 * "granted", "denied", "default"; "denied" where the browser has none (a page that is not from this machine or
 * HTTPS).
 */
function permission() {
  return globalThis.isSecureContext && "Notification" in globalThis ? Notification.permission : "denied";
}

function keyOf({ code, raised_at_s: raised }) {
  return `${code} ${raised}`;
}

function tell(run, name, finding) {
  if (permission() !== "granted" || localStorage.getItem(KEY) !== "on" || !document.hidden) return;
  const cause = hubText(finding.i18n?.cause, finding.cause);
  const place = finding.location ? `\n${finding.location}` : "";
  new Notification(`${name ?? run}: ${hubText(finding.i18n?.title, finding.title)}`, {
    body: `${cause}${place}`, tag: `${run} ${finding.code}`,
  });
}

/** Resolves to whether the text was copied. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  document.body.append(area);
  area.select();
  try {
    return document.execCommand("copy");
  } finally {
    area.remove();
    before?.focus();
  }
}
