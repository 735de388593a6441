/** Reads from the hub over HTTP. All addresses are relative, so that a path prefix changes nothing. */

import { t, word } from "../locale/i18n.js";

/** What went wrong, with the HTTP status (0 when the hub did not answer at all). */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** `{body, hubUnixS}`: the JSON at `path` and the hub's clock (Date header, whole seconds, or null). */
export async function read(path, { signal, query = {} } = {}) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
  const { response, body } = await ask(url, { signal, headers: { accept: "application/json" } });
  const date = Date.parse(response.headers.get("date") ?? "");
  return { body, hubUnixS: Number.isNaN(date) ? null : date / 1000 };
}

/** Has the hub change something; the JSON that it answers with. */
export async function send(path, change) {
  const headers = { accept: "application/json", "content-type": "application/json" };
  const { body } = await ask(new URL(path, document.baseURI), {
    method: "POST", headers, body: JSON.stringify(change),
  });
  return body;
}

async function ask(url, options) {
  const response = await fetch(url, options).catch((error) => {
    throw error.name === "AbortError" ? error : new ApiError(0, t("the hub does not answer"));
  });
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new ApiError(response.status, refusal(body ?? {}) ?? response.statusText);
  return { response, body };
}

/**
 * Why the hub does not do it, in the viewer's language. Its parameters are names and stay as they are: a run may
 * be called "slow".
 */
function refusal({ i18n, error }) {
  return Array.isArray(i18n) ? t(...i18n) : error && word(error);
}

/** Path below which everything about one run lies. */
export function runPath(run) {
  return `api/runs/${encodeURIComponent(run)}`;
}
