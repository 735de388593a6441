import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { ApiError, read, send } from "../../../static/net/api.js";
import { useMessages } from "../../../static/locale/i18n.js";

globalThis.document = { baseURI: "http://hub/prefix/" };
afterEach(() => useMessages("en", {}));

/** Has the hub answer so, once. */
function hubAnswers(status, body) {
  globalThis.fetch = async () => new Response(JSON.stringify(body), { status });
}

const REFUSAL = {
  error: "digits is not over; end it first", i18n: ["{run} is not over; end it first", { run: "digits" }],
};

test("a refusal is said in the page's language, by its template", async () => {
  useMessages("zh-CN", { "{run} is not over; end it first": "{run} 尚未结束" });
  hubAnswers(409, REFUSAL);
  await assert.rejects(send("api/runs/digits/delete", {}), { name: "ApiError", status: 409, message: "digits 尚未结束" });
});

test("a refusal without a template is looked up whole, and stays as it came where nobody translated it", async () => {
  useMessages("zh-CN", { "on is true or false": "on 只能是 true 或 false" });
  hubAnswers(400, { error: "on is true or false" });
  await assert.rejects(send("x", {}), { message: "on 只能是 true 或 false" });
  hubAnswers(400, { error: "of a newer hub" });
  await assert.rejects(read("x"), { message: "of a newer hub" });
});

test("a run's name is no word to translate", async () => {
  useMessages("zh-CN", { "{run} is not over; end it first": "{run} 尚未结束", slow: "偏慢" });
  hubAnswers(409, { error: "slow is not over", i18n: ["{run} is not over; end it first", { run: "slow" }] });
  await assert.rejects(send("x", {}), { message: "slow 尚未结束" });
});

test("in English it is the hub's own sentence", async () => {
  hubAnswers(409, REFUSAL);
  await assert.rejects(send("x", {}), { message: REFUSAL.error });
});

test("no answer at all, and one that is no JSON, are errors with their status", async () => {
  globalThis.fetch = async () => { throw new TypeError("network"); };
  await assert.rejects(read("x"), (error) => error instanceof ApiError && error.status === 0);
  globalThis.fetch = async () => new Response("<html>", { status: 502, statusText: "Bad Gateway" });
  await assert.rejects(read("x"), { status: 502, message: "Bad Gateway" });
});
