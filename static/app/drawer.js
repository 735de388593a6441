/** Everything that is known of a run beyond the one screen: opened when wanted, and fetched only then. */

import { N, t } from "../locale/i18n.js";
import { read, runPath } from "../net/api.js";
import { h, icon } from "./dom.js";

const PARTS = [
  ["config", N("Configuration")], ["facts", N("Facts")], ["stacks", N("Stacks")], ["events", N("Events")],
  ["rows", N("Raw table")], ["downloads", N("Downloads")],
];

export class Drawer {
  /** What opens it; stands in the page's top line. */
  button = h(
    "button",
    { type: "button", class: "drawer-open", "aria-haspopup": "dialog", title: t("Details and downloads (d)") },
    icon("list"), h("span", {}, t("Details")),
  );
  #source;
  #close = h("button", { type: "button", class: "drawer-close" }, t("Close"));
  #tabs = PARTS.map(([id, label]) =>
    h("button", { type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "drawer-panel" }, t(label)),
  );
  #panel = h("div", { role: "tabpanel", id: "drawer-panel", tabindex: "0" });
  element = h("dialog", { class: "drawer", "aria-labelledby": "drawer-title" });
  #chosen = 0;
  #abort = new AbortController();

  /** `run`: its id; `range`: TimeRange; `streams()`: names of the streams that the page knows. */
  constructor(run, range, streams) {
    this.#source = { run, range, streams, snapshot: {}, update: {} };
    const list = h("div", { role: "tablist", "aria-labelledby": "drawer-title", class: "drawer-tabs" }, ...this.#tabs);
    const head = h("header", {}, h("h2", { id: "drawer-title" }, t("Details and downloads")), this.#close);
    this.element.append(head, list, this.#panel);
  }

  connect() {
    this.button.addEventListener("click", this.toggle);
    this.#close.addEventListener("click", this.toggle);
    this.#tabs.forEach((tab, i) => tab.addEventListener("click", () => this.#show(i)));
    this.element.addEventListener("keydown", this.#pressed);
    this.element.addEventListener("click", this.#outside);
  }

  disconnect() {
    this.#abort.abort();
    this.element.remove();
  }

  /** What the hub sent first: schema, meta, facts. */
  snapshot(snapshot) {
    this.#source.snapshot = snapshot;
  }

  update(update) {
    this.#source.update = update;
  }

  toggle = () => {
    if (this.element.open) return this.element.close();
    this.element.showModal();
    return this.#show(this.#chosen);
  };

  async #show(index) {
    this.#chosen = index;
    this.#tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
    });
    const [id] = PARTS[index];
    this.#panel.setAttribute("aria-labelledby", `tab-${id}`);
    this.#panel.replaceChildren(h("p", { class: "nothing" }, t("Looking…")));
    this.#abort.abort();
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    try {
      const { DRAWER } = await import("./drawerparts.js");
      if (this.#source.snapshot.meta === undefined)
        this.#source.snapshot = (await read(runPath(this.#source.run), { signal })).body;
      const content = await DRAWER[id](this.#source, signal);
      if (!signal.aborted) this.#panel.replaceChildren(...content);
    } catch (error) {
      if (!signal.aborted)
        this.#panel.replaceChildren(
          h("p", { role: "alert" }, t("This could not be loaded: {reason}.", { reason: error.message })),
        );
    }
  }

  #pressed = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined || event.target.getAttribute("role") !== "tab") return;
    event.preventDefault();
    const next = (this.#chosen + by + PARTS.length) % PARTS.length;
    this.#tabs[next].focus();
    this.#show(next);
  };

  #outside = (event) => {
    if (event.target === this.element) this.element.close();
  };
}
