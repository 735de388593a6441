/** Building page elements and icons. Data only ever enters as text: nothing here parses markup. */

import { t } from "../locale/i18n.js";

const SVG = "http://www.w3.org/2000/svg";

/** An element. `attributes` with value null or false are left out; children are nodes or text. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** An SVG element, for icons. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) throw new TypeError("listeners are added with addEventListener");
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
}

/** Text that is only written when it changed, so that screen readers hear changes only. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A measured value; null means that nobody measured it, and the page says so. */
export function setValue(element, text) {
  setText(element, text ?? "–");
  element.classList.toggle("none", text === null);
  if (text === null) element.title = t("not measured");
  else if (element.title) element.removeAttribute("title");
}

const STROKES = {
  ok: ["M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z", "m5.2 8.2 2 2 3.6-4.2"],
  warning: ["M8 2 1.6 13.4h12.8L8 2Z", "M8 6.4v3.4", "M8 11.6v.1"],
  critical: ["M5.3 1.8h5.4l3.5 3.5v5.4l-3.5 3.5H5.3l-3.5-3.5V5.3z", "m5.8 5.8 4.4 4.4", "m10.2 5.8-4.4 4.4"],
  stopped: ["M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z", "M6.3 5.5v5M9.7 5.5v5"],
  info: ["M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z", "M8 7.4v3.6", "M8 5v.1"],
  unknown: [
    "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z",
    "M6.2 6.3c.2-2.3 3.8-2.2 3.6.1-.1 1.3-1.7 1.3-1.8 2.6",
    "M8 11.2v.1",
  ],
  copy: ["M5.5 5.5h8v8h-8z", "M3.2 10.5h-.7v-8h8v.7"],
  auto: ["M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z", "M8 1.8v12.4", "M10 4.2v7.6", "M12 5.6v4.8"],
  light: [
    "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z", "M8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  ],
  dark: ["M13.4 9.6A5.8 5.8 0 0 1 6.4 2.6a5.8 5.8 0 1 0 7 7Z"],
  keys: ["M1.5 4h13v8h-13z", "M4 6.5h.1M6.7 6.5h.1M9.3 6.5h.1M12 6.5h.1M5 9.6h6"],
  language: [
    "M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z",
    "M1.8 8h12.4M8 1.8c-4.4 4-4.4 8.4 0 12.4M8 1.8c4.4 4 4.4 8.4 0 12.4",
  ],
  list: ["M5.5 4h8M5.5 8h8M5.5 12h8", "M2.5 4h.1M2.5 8h.1M2.5 12h.1"],
  more: ["M3 8h.1M8 8h.1M13 8h.1"],
  flag: ["M3.5 14.5V2", "M3.5 2.5h8.5l-2 3 2 3H3.5"],
};

/** The drawing called `name`; decoration only, since a word always stands beside it. */
export function icon(name) {
  const strokes = STROKES[name] ?? STROKES.unknown;
  const frame = { viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true", focusable: "false" };
  return svg("svg", frame, ...strokes.map((d) => svg("path", { d })));
}
