/** Light, dark, or as the system says; the viewer's choice is kept in this browser. */

const KEY = "torchvitals.theme";
const CHOICES = ["auto", "light", "dark"];

export class Theme {
  #listeners = new Set();
  #system = window.matchMedia("(prefers-color-scheme: dark)");
  #choice = stored();

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
    if (this.#choice !== "auto") return this.#choice;
    return this.#system.matches ? "dark" : "light";
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

  #apply = () => {
    document.documentElement.dataset.theme = this.name;
    for (const listener of this.#listeners) listener(this.name);
  };
}

/** Colours of the page that charts need, read from the style sheet. */
export function ink() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { grid: of("--grid"), text: of("--text-2"), ground: of("--surface"), font: of("--font") };
}

function stored() {
  try {
    const choice = localStorage.getItem(KEY);
    return CHOICES.includes(choice) ? choice : "auto";
  } catch {
    return "auto";
  }
}
