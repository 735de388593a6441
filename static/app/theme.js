/** Colours: light, dark, or as the system says, and those of charts. */

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
    grid: of("--grid"),
    text: of("--text-2"),
    strong: of("--text"),
    ground: of("--surface"),
    bad: of("--bad"),
    warn: of("--warn"),
    focus: of("--focus"),
    font: getComputedStyle(probe).fontFamily,
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

const OKABE_ITO = {
  orange: "#e69f00", sky: "#56b4e9", green: "#009e73", yellow: "#f0e442",
  blue: "#0072b2", vermillion: "#d55e00", purple: "#cc79a7",
};

// Blue and purple are lightened on dark ground: as drawn by Okabe and Ito they fall below 3:1 there.
const ON_DARK = { blue: "#3f9bd8", green: "#1db78c", vermillion: "#ea7a2b" };

const PHASES = {
  data: "orange", h2d: "yellow", forward: "sky", backward: "blue", optimizer: "green",
  comm: "purple", checkpoint: "vermillion",
};
const LINES = ["blue", "vermillion", "green", "purple", "orange", "sky"];
const STROKES = [
  ["solid", 1.75], ["5px,3px", 1.5], ["solid", 0.8], ["8px,3px,2px,3px", 1.5], ["1.5px,2.5px", 1.5], ["5px,3px", 0.8],
];

/** The colour of a phase in `theme` ("light" or "dark"); `eval` and `other` are greys. */
export function phaseColour(phase, theme) {
  if (PHASES[phase] !== undefined) return shade(PHASES[phase], theme);
  if (phase === "eval") return theme === "dark" ? "#e6e9ee" : "#3b4048";
  return theme === "dark" ? "#6d7683" : "#a9afb8";
}

/** Colour, dash and width (px) of the line number `index` in its chart. */
export function lineStyle(index, theme) {
  const [dash, width] = STROKES[index % STROKES.length];
  return { colour: shade(LINES[index % LINES.length], theme), dash, width };
}

/** `#rrggbb` with an opacity, as CSS and Plotly both take it. */
export function faded(colour, opacity) {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  return `rgba(${r},${g},${b},${opacity})`;
}

function shade(name, theme) {
  return (theme === "dark" && ON_DARK[name]) || OKABE_ITO[name];
}
