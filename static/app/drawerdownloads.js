/** Files to take along: what the hub can write of this run, over the visible range. */

import { read, runPath } from "../net/api.js";
import { h } from "./dom.js";
import { language, t, word } from "../locale/i18n.js";
import { timeText } from "../charts/ticks.js";

/** A list of links; where a library is missing on the hub's machine, how to install it. */
export async function downloads({ run, range, streams }, signal) {
  const { body } = await read("api/exports", { signal });
  const names = [...new Set(["rank/0", ...streams()])].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const choice = h("select", { id: "export-stream" }, ...names.map((name) => h("option", { value: name, selected: name === "rank/0" }, name)));
  const links = (body.formats ?? []).map((format) => ({ format, link: h("a", { download: "" }, word(format.what)) }));
  const aim = () => links.forEach(({ format, link }) => link.setAttribute("href", address(run, range, format, choice.value)));
  choice.addEventListener("change", aim, { signal });
  aim();
  const items = links.map(({ format, link }) => h("li", {}, h("code", {}, format.format), " ",
    ...(format.install ? [word(format.what), " ", h("code", {}, format.install)] : [link])));
  return [h("p", { class: "nothing" }, rangeText(range)), h("p", { class: "choice" }, h("label", { for: "export-stream" }, t("Stream of a table")), choice), h("ul", { class: "downloads" }, ...items)];
}

/**
 * Relative, so that a path prefix changes nothing; only the range that the viewer chose is asked for. What has texts
 * comes in the language of the page.
 */
export function address(run, range, { file, stream, language: speaks }, chosen) {
  const query = new URLSearchParams(stream ? { stream: chosen } : {});
  if (speaks && language() !== "en") query.set("language", language());
  if (!range.following) {
    const [from, to] = range.bounds;
    query.set("from", String(from));
    query.set("to", String(to));
  }
  return `${runPath(run)}/${encodeURIComponent(file)}${query.size > 0 ? `?${query}` : ""}`;
}

function rangeText({ following, bounds: [from, to] }) {
  return following ? t("The whole run.") : t("From {from} to {to}.", { from: timeText(from, 1), to: timeText(to, 1) });
}
