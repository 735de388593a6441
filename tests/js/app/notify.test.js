import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { Notify } from "../../../static/app/browser.js";

/** A part of the page, as far as Notify touches it. */
class Part extends EventTarget {
  children = [];
  classList = { toggle() {} };
  append(...parts) { this.children.push(...parts); }
  replaceChildren(...parts) { this.children = parts; }
  hasChildNodes() { return this.children.length > 0; }
  setAttribute() {}
  click() { this.dispatchEvent(new Event("click")); }
}

const stall = {
  code: "stall", severity: "critical", title: "No progress", cause: "stalled in data", location: "data.py:9",
  raised_at_s: 5, cleared_at_s: null,
};
const update = (...findings) => ({ run: "r", name: "digits", status: "running", findings });
let shown;

beforeEach(() => {
  shown = [];
  const stored = new Map();
  globalThis.localStorage = {
    getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, value),
  };
  globalThis.document = { hidden: true, createElement: () => new Part(), createElementNS: () => new Part() };
  globalThis.isSecureContext = true;
  globalThis.Notification = class {
    static permission = "default";
    static async requestPermission() { this.permission = "granted"; }
    constructor(title, { body }) { shown.push(`${title}: ${body}`); }
  };
});

function buttons(notify) {
  return notify.element.children[0].children.slice(2);
}

test("it asks once, and the answer is remembered", async () => {
  const notify = new Notify();
  notify.update(update());
  assert.equal(notify.element.hasChildNodes(), true);
  buttons(notify)[1].click();
  notify.update(update());
  assert.equal(notify.element.hasChildNodes(), false);
  const other = new Notify();
  other.update(update());
  assert.equal(other.element.hasChildNodes(), false);
});

test("a stall is told once, while the tab is hidden", async () => {
  const notify = new Notify();
  notify.update(update());
  buttons(notify)[0].click();
  await Promise.resolve();
  notify.update(update(stall));
  notify.update(update(stall));
  assert.deepEqual(shown, ["digits: No progress: stalled in data\ndata.py:9"]);
  notify.update(update({ ...stall, cleared_at_s: 9 }));
  document.hidden = false;
  notify.update(update({ ...stall, raised_at_s: 50 }));
  assert.equal(shown.length, 1);
});

test("what stood when the page was opened, and what is no emergency, is not told", async () => {
  localStorage.setItem("torchvitals.notify", "on");
  Notification.permission = "granted";
  const notify = new Notify();
  notify.update(update(stall));
  notify.update(update(stall, { ...stall, code: "data_starvation", severity: "warning" }));
  assert.deepEqual(shown, []);
});

test("where the browser has none, nothing is asked", () => {
  globalThis.isSecureContext = false;
  const notify = new Notify();
  notify.update(update(stall));
  assert.equal(notify.element.hasChildNodes(), false);
});
