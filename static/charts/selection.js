/** Which finding the viewer looks at: its steps are marked in every chart, and the address names it. */

import { identity } from "../findings/ranking.js";

export class Selection {
  #listeners = new Set();
  #id = null;
  #finding = null;
  #wanted;

  /** `code`: of the finding that the address names; it is selected once it is there. */
  constructor(code = null) {
    this.#wanted = code;
  }

  /** `listener(finding)`; null when none is selected any more. */
  connect(listener) {
    this.#listeners.add(listener);
  }

  disconnect(listener) {
    this.#listeners.delete(listener);
  }

  get finding() {
    return this.#finding;
  }

  /** Whether it is this one. */
  has(finding) {
    return this.#id !== null && this.#id === identity(finding);
  }

  /** Select it, or let go of it when it is selected. */
  toggle(finding) {
    this.#set(this.has(finding) ? null : finding);
  }

  clear() {
    if (this.#id !== null) this.#set(null);
  }

  /** The findings there are now: the selected one is renewed, or let go of when it is gone. */
  update(findings) {
    if (this.#wanted !== null) {
      const named = findings.find(({ code }) => code === this.#wanted);
      if (named === undefined) return;
      this.#wanted = null;
      this.#set(named);
    } else if (this.#id !== null) {
      this.#finding = findings.find((finding) => identity(finding) === this.#id) ?? null;
      if (this.#finding === null) this.clear();
    }
  }

  #set(finding) {
    this.#wanted = null;
    this.#finding = finding;
    this.#id = finding === null ? null : identity(finding);
    for (const listener of this.#listeners) listener(finding);
  }
}
