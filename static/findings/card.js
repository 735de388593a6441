/** One finding on the page: what was seen, what to change, what that brings. */

import { copy } from "../app/browser.js";
import { h, icon, setText } from "../app/dom.js";
import { count, joined, number, percent } from "../app/format.js";
import { curve, drawSparkline, sparkline } from "../charts/sparkline.js";
import { hubText, N, t, word } from "../locale/i18n.js";
import { rankList } from "../ranks/words.js";

const WORDS = { critical: N("Critical"), warning: N("Warning"), info: N("Info") };
const COPIED_MS = 1_600; // how long the button says so

export class FindingCard {
  element = h("li", { class: "finding", tabindex: "-1" });
  #source;
  #finding = {};
  #severity = h("span", { class: "severity" });
  #title = h("h3");
  #location = h("span", { class: "location" });
  #curve = sparkline();
  #evidence = h("dl", { class: "evidence" });
  #advice = h("p", { class: "advice" });
  #code = h("code");
  #copy = h("button", { type: "button", class: "copy" }, icon("copy"), h("span", {}, t("Copy")));
  #fix = h("div", { class: "fix" }, h("div", { class: "fix-head" }, h("span", {}, t("Change it to")), this.#copy),
    h("pre", { tabindex: "0", "aria-label": t("Suggested code") }, this.#code));
  #gain = h("p", { class: "gain" });
  #confidence = h("span", { class: "confidence" });
  #mark = h("button", { type: "button", class: "mark-button", "aria-pressed": "false" }, t("Show in charts"));
  #shown = "";
  #timer = null;

  /** `source`: as in Findings. */
  constructor(source) {
    this.#source = source;
    const head = h("div", { class: "finding-head" }, this.#severity, this.#location);
    const foot = h("div", { class: "finding-foot" }, this.#confidence, this.#mark);
    this.element.append(head, this.#title, this.#curve, this.#evidence, this.#advice, this.#fix, this.#gain, foot);
  }

  connect() {
    this.#copy.addEventListener("click", this.copyFix);
    this.#mark.addEventListener("click", this.select);
    this.element.addEventListener("keydown", this.#pressed);
  }

  disconnect() {
    this.#copy.removeEventListener("click", this.copyFix);
    this.#mark.removeEventListener("click", this.select);
    this.element.removeEventListener("keydown", this.#pressed);
    clearTimeout(this.#timer);
    this.element.remove();
  }

  update(finding) {
    this.#finding = finding;
    this.#showChosen();
    this.#draw();
    const json = JSON.stringify(finding);
    if (json === this.#shown) return;
    this.#shown = json;
    const severity = WORDS[finding.severity] === undefined ? "info" : finding.severity;
    if (this.element.dataset.severity !== severity) {
      this.element.dataset.severity = severity;
      this.#severity.replaceChildren(icon(severity), t(WORDS[severity]));
    }
    setText(this.#title, hubText(finding.i18n?.title, finding.title ?? finding.code));
    setText(this.#location, placeOf(finding));
    setText(this.#advice, hubText(finding.i18n?.advice, finding.advice ?? ""));
    setText(this.#code, String(finding.snippet ?? ""));
    this.#fix.hidden = !finding.snippet;
    this.#showEvidence(finding);
    this.#showGain(finding);
    this.#showConfidence(finding);
  }

  /** Mark the finding's steps in all charts, or no longer. */
  select = () => this.#source.selection.toggle(this.#finding);

  /** Copy the suggested code; the button says whether it worked. */
  copyFix = async () => {
    if (this.#fix.hidden) return;
    const done = await copy(this.#code.textContent);
    const label = this.#copy.lastElementChild;
    setText(label, done ? t("Copied") : t("Select and copy by hand"));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => setText(label, t("Copy")), COPIED_MS);
  };

  #pressed = (event) => {
    if (event.key !== "Enter" || event.target !== this.element) return;
    event.preventDefault();
    this.select();
  };

  #showChosen() {
    const chosen = this.#source.selection.has(this.#finding);
    this.element.classList.toggle("chosen", chosen);
    this.#mark.setAttribute("aria-pressed", String(chosen));
  }

  #draw() {
    const { tracks, range } = this.#source;
    drawSparkline(this.#curve, curve(this.#finding, tracks, range.bounds));
  }

  #showEvidence(finding) {
    const rows = finding.evidence_rows.map(({ label, value, unit, i18n }) =>
      [hubText(i18n, label), value === null ? null : joined(word(value), word(unit))]);
    if (finding.cause) rows.unshift([t("cause"), hubText(finding.i18n?.cause, finding.cause)]);
    this.#evidence.replaceChildren(...rows.map(([label, value]) =>
      h("div", {}, h("dt", {}, label), h("dd", value === null ? { title: t("not measured") } : {}, value ?? "–"))));
  }

  #showConfidence({ confidence: { level, why, i18n } }) {
    setText(this.#confidence, t("Confidence: {level}, {why}", { level: word(level), why: hubText(i18n, why) }));
    this.#confidence.dataset.level = level;
  }

  #showGain({ gain, i18n }) {
    this.#gain.hidden = !gain;
    if (!gain) return;
    const promise = t("up to {times}× faster", { times: number(gain.speedup) });
    const share = percent(gain.share_of_step);
    const saves = share === null ? "" : t(", {share} % of the time saved", { share });
    this.#gain.replaceChildren(h("strong", {}, promise), saves, h("span", { class: "basis" }, hubText(i18n?.basis, gain.basis ?? "")));
  }
}

function placeOf({ location, ranks, first_step: first, last_step: last }) {
  const parts = [];
  if (location) parts.push(String(location));
  if (ranks?.length > 0 && (ranks.length > 1 || ranks[0] !== 0)) parts.push(t("rank {ranks}", { ranks: rankList(ranks) }));
  if (Number.isFinite(first)) parts.push(first === last || !Number.isFinite(last) ? t("step {step}", { step: count(first) }) : t("steps {first}–{last}", { first: count(first), last: count(last) }));
  return parts.join(" · ");
}
