/** Building page elements. Data only ever enters as text: nothing here parses markup. */

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
