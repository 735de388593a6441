/** Keyboard: single keys and two-key sequences, silent while something is being typed. */

const SEQUENCE_MS = 900; // longest pause between the keys of a sequence

export class Keys {
  #actions;
  #before = { key: "", atMs: -Infinity };

  /** `actions`: "t" or "g r" → function. */
  constructor(actions) {
    this.#actions = actions;
  }

  connect() {
    document.addEventListener("keydown", this.#pressed);
  }

  disconnect() {
    document.removeEventListener("keydown", this.#pressed);
  }

  #pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]") !== null && event.key !== "?") return;
    const sequence = event.timeStamp - this.#before.atMs < SEQUENCE_MS ? `${this.#before.key} ${event.key}` : "";
    const action = this.#actions[sequence] ?? this.#actions[event.key];
    this.#before = { key: event.key, atMs: event.timeStamp };
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
}

function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}
