import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";

import { install } from "../browser.js";
import { useMessages } from "../../../static/locale/i18n.js";
import { note } from "../../../static/ranks/view.js";
import { about, columnsOf } from "../../../static/ranks/charts.js";
import { RanksFeed, seriesOf } from "../../../static/ranks/feed.js";
import { cellText, endText, ODD, oddOnes, oddText, ownMs, rankList, stateWord } from "../../../static/ranks/words.js";

const THIN = "\u202f";
const rank = (fields) => ({
  rank: 3, host: "node1", steps: 1200, phase: "forward", phase_since_s: 60, ended: null, step_ms: 49, comm_ms: 3.2,
  comm_share: 0.07, last_share: null, worst: null, ...fields,
});

test("every reason of the hub's has an icon, a word and a meaning: colour is never the only sign", () => {
  assert.deepEqual(Object.keys(ODD), ["died", "stopped", "behind", "late", "slow"]);
  for (const odd of Object.values(ODD))
    for (const part of ["icon", "tone", "word", "means"]) assert.ok(odd[part], part);
});

test("a rank that died says how", () => {
  const ended = { reason: "killed by SIGKILL", code: null, signal: "SIGKILL", clean: false, t_s: 1 };
  assert.deepEqual(oddText(rank({ worst: "died", ended }), 70), { head: "rank 3 died", detail: "killed by SIGKILL" });
  assert.equal(endText({ reason: null, signal: "SIGSEGV" }), "signal SIGSEGV");
  assert.equal(endText({ reason: null, signal: null, code: 3 }), "exit code 3");
  assert.equal(endText({ reason: null, signal: null, code: null }), "");
  assert.equal(endText(null), "");
});

test("a rank that stopped says where and since when, as far as it is known", () => {
  const detail = (fields) => oddText(rank({ worst: "stopped", ...fields }), 70).detail;
  assert.equal(detail({}), `in forward for 10${THIN}s`);
  assert.equal(detail({ phase_since_s: null }), "in forward");
  assert.equal(detail({ phase: null }), "");
});

test("ranks are listed as people write them, and a thousand of them stay short", () => {
  assert.equal(rankList([3]), "3");
  assert.equal(rankList([7, 0, 1, 2, 3, 5, 6]), "0–3, 5–7");
  assert.equal(rankList([0, 1]), "0, 1");
  assert.equal(rankList(Array.from({ length: 1024 }, (_, i) => i)), "0–1023");
  assert.equal(rankList(Array.from({ length: 10 }, (_, i) => 2 * i)), "0, 2, 4, 6, 8, 10, and 4 more");
});

test("the others say what makes them stand out", () => {
  const detail = (fields) => oddText(rank(fields), 70).detail;
  assert.equal(detail({ worst: "late", last_share: 0.93 }), "last in 93 % of exchanges");
  assert.equal(detail({ worst: "late" }), "");
  assert.equal(detail({ worst: "late", last_share: 0.001 }), "");
  assert.equal(detail({ worst: "slow" }), `45.8${THIN}ms of own work a step`);
  assert.equal(detail({ worst: "behind" }), "at step 1200");
});

test("a rank in order is called running or ended, and so is one with a reason from the future", () => {
  assert.equal(stateWord(rank({})), "running");
  assert.equal(stateWord(rank({ ended: { clean: true } })), "ended");
  assert.equal(stateWord(rank({ worst: "asleep" })), "running");
});

test("only ranks with a reason stand out, in the hub's order", () => {
  const all = [
    rank({ rank: 7, worst: "died" }), rank({ rank: 1, worst: "late" }), rank({ rank: 2 }),
    rank({ rank: 4, worst: "asleep" }),
  ];
  assert.deepEqual(oddOnes(all).map((one) => one.rank), [7, 1]);
});

test("own work is what a step takes without waiting, and unknown where the step is", () => {
  assert.equal(ownMs({ step_ms: 50, comm_ms: null }), 50);
  assert.equal(ownMs({ step_ms: null, comm_ms: 3 }), null);
});

test("a cell tells what was measured and leaves out the rest", () => {
  assert.deepEqual(cellText({ phase: "comm", stepMs: 40, commMs: 30 }), [
    ["mostly", "comm"], ["step", `40${THIN}ms`], ["of it waiting", `30${THIN}ms`],
  ]);
  assert.deepEqual(cellText({ phase: null, stepMs: null, commMs: 2 }), [["of it waiting", `2${THIN}ms`]]);
  assert.deepEqual(cellText({ phase: null, stepMs: null, commMs: null }), []);
});

test("what is known of one rank stands in one line", () => {
  assert.equal(
    about(rank({}), 70), `1${THIN}200 steps · 49${THIN}ms a step, of it waiting 3.20${THIN}ms · now in forward`,
  );
  assert.equal(about(rank({ comm_ms: null, phase: null }), 70), `1${THIN}200 steps · 49${THIN}ms a step`);
  assert.match(about(rank({ worst: "stopped" }), 70), /^stopped · in forward for/);
  assert.match(about(rank({ reduced: true }), 70), /averages over about a second$/);
  assert.equal(about({ rank: 3 }, 70), "");
});

test("ranks not seen and ranks told as averages are said, and nothing else", () => {
  assert.equal(note({ world_size: 8, known: 8, reduced: 0 }), "");
  assert.equal(note({ world_size: 8, known: 5, reduced: 0 }), "3 not seen yet");
  assert.equal(note({ world_size: 1024, known: 1024, reduced: 896 }), "896 told as averages over about a second");
});

test("ranks with unequal numbers of batches are told before the run hangs", () => {
  const text = note({ world_size: 2, known: 2, reduced: 0, batches: [50, 51] });
  assert.match(text, /^ranks have 50 to 51 batches: the run hangs when the first is done, unless .* Join$/);
  assert.equal(note({ world_size: 2, known: 2, reduced: 0, batches: null }), "");
});

test("a rank's state is said in the viewer's language", () => {
  const catalogue = new URL("../../../static/locale/zh-CN.json", import.meta.url);
  useMessages("zh-CN", JSON.parse(readFileSync(catalogue, "utf8")).messages);
  try {
    assert.equal(oddText(rank({ worst: "late", last_share: 0.5 }), 70).head, "rank 3 迟到");
  } finally {
    useMessages("en", {});
  }
});

test("the band's middle line carries the span from fastest to slowest", () => {
  const { t, series } = columnsOf({ t: [1], min: [10], median: [11], max: [19] });
  assert.deepEqual(t, [1]);
  assert.deepEqual(series.ranks_median, { min: [10], max: [19], mean: [11] });
  assert.deepEqual(series.ranks_max.mean, [19]);
});

const question = {
  bounds: [0, 60], held: "all", all: false, mode: "phase", selected: null, live: true, phases: ["data", "comm"],
};
const settle = () => new Promise((resolve) => { setTimeout(resolve, 150); });
let [asked, answers, now] = [[], null, 0];

beforeEach(() => {
  install();
  [asked, answers, now] = [[], (path) => ({ from: path }), 0];
  globalThis.fetch = async (url) => {
    asked.push(url);
    const body = answers(url.pathname);
    return {
      ok: body !== null, status: body === null ? 503 : 200, statusText: "no", headers: new Headers(),
      json: async () => body,
    };
  };
});

async function feed(...questions) {
  let loaded = 0;
  const one = new RanksFeed("run 1", () => { loaded += 1; }, () => now);
  for (const [more, hurry] of questions) {
    one.ensure({ ...question, ...more }, hurry);
    await settle();
  }
  return { one, loaded };
}

const paths = () => asked.map((url) => url.pathname.split("/").at(-1));

test("ranks and band are asked for together, a rank's own phases only when one is picked", async () => {
  const { one, loaded } = await feed([{}]);
  assert.deepEqual(paths(), ["ranks", "band"]);
  assert.equal(loaded, 1);
  assert.match(one.ranks.from, /^\/api\/runs\/run%201\/ranks$/);
  assert.equal(one.series, null);
  const { one: other } = await feed([{ selected: 7 }]);
  assert.equal(paths().at(-1), "ranks");
  assert.equal(asked.at(-1).searchParams.get("only"), "7");
  assert.equal(asked.at(-1).searchParams.get("cells"), "data_ms,comm_ms");
  assert.equal(other.series.rank, 7);
});

test("one rank's cells become columns, and none where the hub has none", () => {
  const line = { min: [3, null], max: [3, null], mean: [3, null] };
  assert.deepEqual(seriesOf({ t: [1, 2], cells: { data_ms: [[3, null]] } }), { t: [1, 2], series: { data_ms: line } });
  assert.deepEqual(seriesOf({ t: [], cells: { data_ms: [] } }).series.data_ms.mean, []);
});

test("a few ranks come with all their cells, a thousand only with those that are drawn", async () => {
  await feed([{}], [{ all: true }], [{ all: true, mode: "wait" }]);
  const queries = asked.filter((url) => url.pathname.endsWith("/ranks")).map((url) => url.searchParams);
  assert.deepEqual(
    queries.map((query) => [query.get("limit"), query.get("cells")]),
    [
      ["16", "phase,step_ms,comm_ms"], ["1024", "phase"], ["1024", "comm_ms"],
    ],
  );
});

test("the same question is asked again only after a while, sooner when a rank ended", async () => {
  await feed([{}], [{}], [{ bounds: [0, 61] }]);
  assert.equal(asked.length, 2);
  await feed([{}], [{}, true]);
  assert.equal(asked.length, 6);
});

test("time going on is no new question, but is asked about when it is due", async () => {
  const one = new RanksFeed("r", () => {}, () => now);
  one.ensure(question);
  await settle();
  now = 1_900;
  one.ensure(question);
  await settle();
  assert.equal(asked.length, 2);
  now = 2_100;
  one.ensure({ ...question, bounds: [0, 62] });
  await settle();
  assert.equal(asked.length, 4);
  assert.equal(asked.at(-1).searchParams.get("to"), "62");
});

test("a run that is over is asked about once", async () => {
  const one = new RanksFeed("r", () => {}, () => now);
  for (now of [0, 60_000, 120_000]) {
    one.ensure({ ...question, live: false });
    await settle();
  }
  assert.equal(asked.length, 2);
});

test("questions in quick succession become one, about the last range", async () => {
  const one = new RanksFeed("r", () => {}, () => now);
  one.ensure(question);
  await settle();
  for (const to of [50, 40, 30]) one.ensure({ ...question, bounds: [0, to], held: [0, to] });
  await settle();
  assert.equal(asked.length, 4);
  assert.equal(asked.at(-1).searchParams.get("to"), "30");
});

test("a hub that does not answer is asked again, also about a run that is over, and nothing is thrown", async () => {
  answers = () => null;
  const one = new RanksFeed("r", () => {}, () => now);
  for (now of [0, 1_000, 3_100]) {
    one.ensure({ ...question, live: false });
    await settle();
  }
  assert.equal(asked.length, 4);
  assert.equal(one.ranks, null);
  answers = () => ({});
  now = 7_000;
  one.ensure({ ...question, live: false });
  await settle();
  assert.deepEqual(one.ranks, {});
});

test("nothing is asked after the page was left", async () => {
  const one = new RanksFeed("r", () => {}, () => now);
  one.ensure(question);
  one.disconnect();
  await settle();
  assert.equal(asked.length, 0);
});
