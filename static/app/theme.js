/** Light, dark, or as the system says; the viewer's choice is kept in this browser. */

const KEY = "torchvitals.theme";
const CHOICES = ["auto", "light", "dark"];

export class Theme {
  #listeners = new Set();
  #system = window.matchMedia("(prefers-color-scheme: dark)");
  #choice = stored();
  #name = "light";

  /** `listener(name)` with "light" or "dark" when it changes. */
  connect(listener) {
    if (this.#listeners.size === 0) this.#system.addEventListener("change", this.#apply);
    this.#listeners.add(listener);
    this.#apply();
  }

  disconnect(listener) {
    this.#listeners.delete(listener);
    if (this.#listeners.size === 0) this.#system.removeEventListener("change", this.#apply);
  }

  /** "auto", "light" or "dark". */
  get choice() {
    return this.#choice;
  }

  /** "light" or "dark", whatever it follows from. */
  get name() {
    return this.#name;
  }

  next() {
    this.#choice = CHOICES[(CHOICES.indexOf(this.#choice) + 1) % CHOICES.length];
    try {
      localStorage.setItem(KEY, this.#choice);
    } catch {
      // A browser that keeps nothing still changes its colours.
    }
    this.#apply();
  }

  // `matches` is read here only: Chromium reports no change that somebody has already read.
  #apply = () => {
    this.#name = this.#choice !== "auto" ? this.#choice : this.#system.matches ? "dark" : "light";
    document.documentElement.dataset.theme = this.name;
    for (const listener of this.#listeners) listener(this.name);
  };
}

/** Colours of the page that charts need, as the style sheet resolves them now. */
export function ink() {
  const probe = document.body.appendChild(document.createElement("span"));
  const of = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    grid: of("--grid"), text: of("--text-2"), strong: of("--text"), ground: of("--surface"), bad: of("--bad"), warn: of("--warn"),
    focus: of("--focus"), font: getComputedStyle(probe).fontFamily,
  };
  probe.remove();
  return colours;
}

function stored() {
  try {
    const choice = localStorage.getItem(KEY);
    return CHOICES.includes(choice) ? choice : "auto";
  } catch {
    return "auto";
  }
}
