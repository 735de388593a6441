/** The drawer's tabs about single streams: a stream as a table, and the downloads. */

import { language, t, word } from "../locale/i18n.js";
import { read, runPath } from "../net/api.js";
import { h } from "./dom.js";
import { count, finite, number, timeText } from "./format.js";

/** A list of links; where a library is missing on the hub's machine, how to install it. */
export async function downloads({ run, range, streams }, signal) {
  const { body } = await read("api/exports", { signal });
  const names = [...new Set(["rank/0", ...streams()])].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const choice = h(
    "select",
    { id: "export-stream" },
    ...names.map((name) => h("option", { value: name, selected: name === "rank/0" }, name)),
  );
  const links = (body.formats ?? []).map((format) => ({ format, link: h("a", { download: "" }, word(format.what)) }));
  const aim = () =>
    links.forEach(({ format, link }) => link.setAttribute("href", address(run, range, format, choice.value)));
  choice.addEventListener("change", aim, { signal });
  aim();
  const items = links.map(({ format, link }) => h("li", {}, h("code", {}, format.format), " ",
    ...(format.install ? [word(format.what), " ", h("code", {}, format.install)] : [link])));
  return [
    h("p", { class: "nothing" }, rangeText(range)),
    h("p", { class: "choice" }, h("label", { for: "export-stream" }, t("Stream of a table")), choice),
    h("ul", { class: "downloads" }, ...items),
  ];
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

const MOST_ROWS = 200;
const MOST_KEYS = 48; // the hub takes 64

/** A choice of streams, and the table of the one chosen. */
export async function rows(source, signal) {
  const names = [...new Set(["rank/0", ...source.streams()])].sort((a, b) =>
    a.localeCompare(b, "en", { numeric: true }),
  );
  const choice = h(
    "select",
    { id: "row-stream" },
    ...names.map((name) => h("option", { value: name, selected: name === "rank/0" }, name)),
  );
  const place = h("div");
  const show = async () => place.replaceChildren(...(await table(source, choice.value, signal)));
  choice.addEventListener(
    "change",
    () => show().catch((error) => place.replaceChildren(h("p", { role: "alert" }, error.message))),
    { signal },
  );
  await show();
  return [h("p", { class: "choice" }, h("label", { for: "row-stream" }, t("Stream")), choice), place];
}

async function table({ run, range, snapshot, update }, stream, signal) {
  const schema = snapshot.meta?.schema?.metrics ?? [];
  const origin = { rank: "step" }[stream.split("/")[0]] ?? stream.split("/")[0];
  const keys = schema.filter((metric) => metric.origin === origin).map(({ key }) => key).slice(0, MOST_KEYS);
  if (keys.length === 0) return [h("p", { class: "nothing" }, t("Nothing is kept of this stream."))];
  const [from, to] = range.following ? [0, update.now_s ?? 0] : range.bounds;
  const query = { stream, keys: keys.join(","), from, to, points: MOST_ROWS };
  const { body } = await read(`${runPath(run)}/series`, { signal, query });
  const shown = keys.filter((key) => body.series[key]?.mean.some((value) => value !== null));
  const heads = [t("Time"), t("Rows"), ...shown.map((key) => h("code", {}, key))].map((head) =>
    h("th", { scope: "col" }, head),
  );
  const step = to - from < 60 ? 0.1 : 1;
  const row = (at, i) => h("tr", {}, h("th", { scope: "row" }, timeText(at, step)), cell(count(body.rows?.[i] ?? 1)),
    ...shown.map((key) => cell(number(finite(body.series[key].mean[i])))));
  const note = h("p", { class: "nothing" }, t("Means over the rows of each line; the downloads have every row."));
  const frame = { class: "table-frame", tabindex: "0", role: "region", "aria-label": t("Raw table") };
  return [
    note, h("div", frame, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...body.t.map(row)))),
  ];
}

function cell(text) {
  return h("td", { class: "number" }, text ?? "–");
}
