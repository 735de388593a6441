import assert from "node:assert/strict";
import { test } from "node:test";

import { isPowerCapped, isThrottled, ranksOn, throttleReasons, whatIs } from "../../../static/gpu/facts.js";
import { CUDA_KEYS, drawings, GPU_KEYS, readings, rowAt, summed } from "../../../static/gpu/readings.js";
import { eccNotes } from "../../../static/gpu/row.js";
import { pieces, stretches } from "../../../static/gpu/spark.js";
import { keysByOrigin, streamsOf } from "../../../static/charts/panels.js";

const THIN = "\u202f";
const words = (bits) => throttleReasons(bits).map((reason) => reason.words);
const same = (values) => ({ min: values, max: values, mean: values });
const view = (t, columns) => ({
  t, series: Object.fromEntries(Object.entries(columns).map(([key, values]) => [key, same(values)])),
});
const nothing = Object.fromEntries([...GPU_KEYS, ...CUDA_KEYS].map((key) => [key, null]));
const colours = Object.fromEntries(
  ["line", "soft", "tensor", "allocated", "split", "cached", "others", "edge", "limit", "capped", "bad"].map((name) => [
    name, name,
  ]),
);

test("reasons that take speed are told from a power limit, which is no fault", () => {
  for (const bits of [0x8, 0x20, 0x40, 0x80, 0x4 | 0x40]) assert.equal(isThrottled(bits), true, String(bits));
  for (const bits of [0, 0x1, 0x2, 0x4, 0x10, 0x100, null]) assert.equal(isThrottled(bits), false, String(bits));
  assert.equal(isPowerCapped(0x4), true);
  assert.equal(isPowerCapped(0x4 | 0x20), false);
  assert.equal(isPowerCapped(null), false);
});

test("reasons are said worst first, and the general bit only where no other says what it is", () => {
  assert.deepEqual(words(0x4 | 0x40), ["too hot (hardware)", "at its power limit"]);
  assert.deepEqual(words(0x48), ["too hot (hardware)"]);
  assert.deepEqual(words(0x8), ["hardware slowdown"]);
  assert.deepEqual(words(0), []);
  assert.deepEqual(words(null), []);
});

test("a bit that nobody has named yet is no reason, and no error", () => {
  assert.deepEqual(words(0x4000), []);
});

test("nothing measured is nothing said: no cell invents a value", () => {
  for (const [id, { text, note }] of Object.entries(readings(nothing))) {
    assert.equal(text, null, id);
    assert.equal(note ?? "", "", id);
  }
});

test("utilisation says what the Tensor Cores do inside it", () => {
  const { util } = readings({ ...nothing, gpu_util: 85.4, gpu_tensor_activity: 19.2, gpu_sm_activity: 60 });
  assert.deepEqual(util, { text: "85", unit: "%", note: "tensor 19 % · SM 60 %", bad: false });
  assert.match(readings({ ...nothing, gpu_util: 10, gpu_others_util: 33 }).util.note, /^others 33 %$/);
});

test("memory is split into what torch holds, all in the unit of the device", () => {
  const row = {
    ...nothing, gpu_memory_used_mb: 61_200, gpu_memory_total_mb: 81_559, cuda_allocated_mb: 40_300,
    cuda_reserved_mb: 58_100, cuda_split_mb: 900,
  };
  const { memory } = readings(row);
  assert.equal(memory.text, "61.2");
  assert.equal(memory.unit, `of 81.6${THIN}GB`);
  assert.equal(memory.note, "allocated 40.3 · split 0.900 · reserved 58.1");
});

test("a small device's memory is told in megabytes", () => {
  const { memory } = readings({ ...nothing, gpu_memory_used_mb: 3_100, gpu_memory_total_mb: 6_144 });
  assert.equal(memory.text, `3${THIN}100`);
  assert.equal(memory.unit, `of 6${THIN}144${THIN}MB`);
});

test("power stands against its limit, clocks against their highest, and throttling is bad", () => {
  const row = {
    ...nothing, gpu_power_w: 312.4, gpu_power_limit_w: 400, gpu_sm_clock_mhz: 1_110, gpu_sm_clock_max_mhz: 1_980,
    gpu_throttle_bits: 0x40,
  };
  const { power, clock } = readings(row);
  assert.equal(`${power.text} ${power.unit}`, `312 of 400${THIN}W`);
  assert.equal(clock.note, "too hot (hardware)");
  assert.equal(clock.bad, true);
  assert.equal(readings({ ...row, gpu_throttle_bits: 0x4 }).clock.bad, false);
});

test("a value whose limit is not known is told without it", () => {
  assert.equal(readings({ ...nothing, gpu_power_w: 100 }).power.unit, "W");
});

test("the newest row is read, and a value that comes seldom from a few rows before", () => {
  const one = view([1, 2, 3, 4], { gpu_util: [1, 2, 3, 4], gpu_power_w: [7, null, null, null] });
  assert.deepEqual(rowAt(one, ["gpu_util", "gpu_power_w"], null), { gpu_util: 4, gpu_power_w: 7 });
});

test("a device that stopped answering shows nothing, not its last value for ever", () => {
  const lost = view([1, 2, 3, 4, 5, 6, 7], { gpu_util: [90, null, null, null, null, null, null] });
  assert.deepEqual(rowAt(lost, ["gpu_util"], null), { gpu_util: null });
});

test("in a range of time stands its own newest row, none from beyond its edges", () => {
  const one = view([0, 10, 20, 30], { gpu_util: [1, 2, 3, 4] });
  assert.equal(rowAt(one, ["gpu_util"], null, [5, 25]).gpu_util, 3);
  assert.equal(rowAt(one, ["gpu_util"], null, [10, 10]).gpu_util, 2);
  assert.equal(rowAt(one, ["gpu_util"], null, [11, 19]).gpu_util, null);
  const gone = view([0, 10, 20], { gpu_util: [1, null, null] });
  assert.equal(rowAt(gone, ["gpu_util"], null, [5, 25]).gpu_util, null);
});

test("under the crosshair stands what was there, and nothing where no row is near", () => {
  const one = view([0, 10, 20, 100], { gpu_util: [1, 2, 3, 4] });
  assert.equal(rowAt(one, ["gpu_util"], 12).gpu_util, 2);
  assert.equal(rowAt(view([0, 1, 2], { gpu_util: [1, 2, 3] }), ["gpu_util"], 60).gpu_util, null);
  assert.equal(rowAt(view([], {}), ["gpu_util"], null).gpu_util, null);
});

test("peaks of memory and temperature count, means of the rest", () => {
  const series = {
    gpu_temperature_c: { min: [1], mean: [2], max: [3] }, gpu_power_w: { min: [1], mean: [2], max: [3] },
  };
  assert.deepEqual(rowAt({ t: [0], series }, ["gpu_temperature_c", "gpu_power_w"], null), {
    gpu_temperature_c: 3, gpu_power_w: 2,
  });
});

test("memory is painted as nested areas: in use, reserved, up to the split blocks, allocated", () => {
  const gpu = view([0, 1], { gpu_memory_used_mb: [60, 61], gpu_memory_total_mb: [80, 80] });
  const cuda = view([0, 1], { cuda_allocated_mb: [30, 31], cuda_reserved_mb: [50, 50], cuda_split_mb: [5, null] });
  const { memory } = drawings(gpu, cuda, [0, 1], 100, colours);
  assert.equal(memory.top, 80);
  assert.deepEqual(memory.areas.map(({ colour, values }) => [colour, values]), [
    ["others", [60, 61]], ["cached", [50, 50]], ["split", [35, 31]], ["allocated", [30, 31]],
  ]);
});

test("where torch tells nothing only what the driver tells is painted", () => {
  const { memory, clock } = drawings(view([0], { gpu_memory_used_mb: [60] }), null, [0, 1], 100, colours);
  assert.deepEqual(memory.areas.map(({ colour }) => colour), ["others"]);
  assert.deepEqual(clock.marks.map(({ on }) => on), [[], []]);
});

test("throttling and the power limit are marked each in its own colour", () => {
  const { clock } = drawings(
    view([0, 1, 2], { gpu_throttle_bits: [0, 0x4, 0x44], gpu_sm_clock_mhz: [1, 1, 1] }), null, [0, 3], 100, colours,
  );
  assert.deepEqual(
    clock.marks.map(({ colour, on }) => [colour, on]),
    [
      ["capped", [false, true, false]], ["bad", [false, false, true]],
    ],
  );
});

test("thousands of rows become at most about a point a pixel", () => {
  const t = Array.from({ length: 5_000 }, (_, i) => i);
  const { util } = drawings(view(t, { gpu_util: t.map(() => 50) }), null, [0, 5_000], 150, colours);
  assert.ok(util.lines[0].t.length <= 160);
});

test("several ranks on one device are summed, each with what it told last", () => {
  const a = view([0, 1, 2], { cuda_allocated_mb: [1, 2, 3] });
  const b = view([0.5, 1.5], { cuda_allocated_mb: [10, null] });
  assert.deepEqual(summed([a, b]).series.cuda_allocated_mb.max, [1, 12, 3]);
  assert.equal(summed([a]), a);
  assert.equal(summed([]), null);
});

test("stretches of marks last until the next row, and the last until the edge", () => {
  assert.deepEqual(stretches([0, 1, 2, 3], [true, true, false, true], 10), [[0, 2], [3, 10]]);
  assert.deepEqual(stretches([0], [false], 1), []);
});

test("a line breaks where nothing was measured", () => {
  assert.deepEqual(pieces([null, 1, 2, null, 3]), [[1, 2], [4, 4]]);
  assert.deepEqual(pieces([]), []);
});

const known = {
  facts: {
    "rank/0": { cuda: { device: 0, uuid: "GPU-b" } }, "rank/1": { cuda: { device: 1, uuid: null } },
    "rank/2": { cuda: { device: 0, uuid: "GPU-a" } }, "host/h1": {},
  },
  meta: {
    host_facts: {
      h1: {
        gpus: [
          { index: 0, uuid: "GPU-a", name: "A100" }, { index: 1, uuid: "GPU-b", name: "A100" },
        ],
      },
    },
    processes: { 2: { host: "h2" } },
  },
};

test("a rank's memory lies on the device whose UUID it names, whatever its index there", () => {
  assert.deepEqual(ranksOn("gpu/h1/1", known, ["cuda/0", "cuda/1"]), ["cuda/0", "cuda/1"]);
  assert.deepEqual(ranksOn("gpu/h1/0", known, ["cuda/0", "cuda/1", "cuda/2"]), []);
  assert.deepEqual(ranksOn("gpu/h1/1", known, []), []);
});

test("a part of a board is a device of its own", () => {
  const gpus = [
    { gpu: "0.1", index: 0, uuid: "MIG-AA", name: "Part" }, { gpu: "0.2", index: 0, uuid: "MIG-bb", name: "Other" },
  ];
  const parts = { facts: { "rank/0": { cuda: { uuid: "GPU-aa", device: 0 } } }, meta: { host_facts: { h: { gpus } } } };
  assert.equal(whatIs("gpu/h/0.2", parts, false, []).model, "Other");
  assert.deepEqual(ranksOn("gpu/h/0.1", parts, ["cuda/0"]), ["cuda/0"]);
  assert.deepEqual(ranksOn("gpu/h/0.2", parts, ["cuda/0"]), []);
});

test("a device is named by index, by its host too where there are several", () => {
  assert.deepEqual(whatIs("gpu/h1/0", known, false, []), { name: "GPU 0", model: "A100", notes: [] });
  assert.equal(whatIs("gpu/h1/0", known, true, []).name, "h1 · GPU 0");
  assert.equal(whatIs("gpu/h9/3", known, false, []).model, "");
});

test("findings that stand about a device are noted beside it, others' and those that are over are not", () => {
  const finding = (fields) => ({
    code: "gpu_error", severity: "critical", title: "GPU error", cause: "Xid 79", cleared_at_s: null,
    evidence: { gpu: "h1/0" }, ...fields,
  });
  const notes = (...findings) => whatIs("gpu/h1/0", known, false, findings).notes;
  assert.deepEqual(notes(finding({})), [{ tone: "critical", text: "GPU error: Xid 79" }]);
  assert.deepEqual(notes(finding({ evidence: { gpu: 0 } })).length, 1);
  assert.deepEqual(
    notes(
      finding({ evidence: { gpu: "h1/1" } }), finding({ cleared_at_s: 3 }), finding({ code: "stall" }),
      finding({ evidence: {} }),
    ),
    [],
  );
});

test("memory errors are noted, corrected ones quietly, none where none were counted", () => {
  assert.deepEqual(
    eccNotes({ gpu_ecc_uncorrected: 2, gpu_ecc_corrected: 5 }).map(({ tone }) => tone), ["critical", "info"],
  );
  assert.deepEqual(eccNotes({ gpu_ecc_uncorrected: 0, gpu_ecc_corrected: null }), []);
  assert.deepEqual(eccNotes({}), []);
});

test("the hub is asked for what the rows show, as far as the run's schema has it", () => {
  const schema = {
    metrics: [
      { key: "gpu_throttle_bits", origin: "gpu" },
      { key: "cuda_split_mb", origin: "cuda" },
      { key: "gpu_energy_j", origin: "gpu" },
    ],
  };
  assert.deepEqual(keysByOrigin(schema), { gpu: ["gpu_throttle_bits"], cuda: ["cuda_split_mb"] });
});

test("devices beyond the eighth have a history too", () => {
  const names = Array.from({ length: 12 }, (_, i) => `gpu/h/${i}`);
  assert.equal(streamsOf("gpu", names, 16).length, 12);
  assert.equal(streamsOf("gpu", names).length, 8);
});
