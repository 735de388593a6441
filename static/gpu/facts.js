/** Which GPU is which: models, and the ranks whose memory lies on it. Asked of the hub until it is known. */

import { hubText, N, t } from "../locale/i18n.js";
import { read, runPath } from "../net/api.js";

const AGAIN_MS = 10_000; // between two questions
const TRIES = 12; // a run whose ranks tell nothing of their devices is not asked for ever

export class GpuFacts {
  /** `{facts, meta}` of the hub's snapshot, as far as they are known. */
  known = { facts: {}, meta: {} };
  #run;
  #nowMs;
  #askedMs = -Infinity;
  #tries = 0;
  #abort = new AbortController();
  #onKnown = () => {};

  constructor(run, nowMs = () => performance.now()) {
    this.#run = run;
    this.#nowMs = nowMs;
  }

  /** `onKnown()` when more is known. */
  connect(onKnown) {
    this.#onKnown = onKnown;
  }

  disconnect() {
    this.#abort.abort();
  }

  /** Ask if something about these streams (`gpu/HOST/I`) is not known yet. */
  ensure(streams) {
    const lacking = streams.some((stream) => device(stream, this.known) === undefined || !someRank(stream, this.known));
    if (!lacking || this.#tries >= TRIES || this.#nowMs() - this.#askedMs < AGAIN_MS) return;
    this.#askedMs = this.#nowMs();
    this.#tries += 1;
    this.#ask();
  }

  async #ask() {
    try {
      const { body } = await read(runPath(this.#run), { signal: this.#abort.signal });
      this.known = { facts: body.facts ?? {}, meta: body.meta ?? {} };
      this.#onKnown();
    } catch {
      // The rows stand without names until the next question.
    }
  }
}

function split(stream) {
  const [, host, index] = stream.split("/");
  return { host, index };
}

function device(stream, { meta }) {
  const { host, index } = split(stream);
  // a part of a board is "0.2"
  return meta.host_facts?.[host]?.gpus?.find((gpu) => String(gpu.gpu ?? gpu.index) === index);
}

/** torch writes a UUID without "GPU-" or "MIG-" before it. */
function bare(uuid) {
  return uuid.toLowerCase().replace(/^(gpu|mig)-/, "");
}

function ranksKnown(stream, { facts, meta }) {
  const { host, index } = split(stream);
  const uuid = device(stream, { meta })?.uuid;
  const mine = ([scope, { cuda }]) => {
    const rank = scope.split("/")[1];
    if (!scope.startsWith("rank/") || cuda === undefined || cuda === null) return false;
    if ((meta.processes?.[rank]?.host ?? host) !== host) return false;
    return cuda.uuid && uuid ? bare(cuda.uuid) === bare(uuid) : String(cuda.device) === index;
  };
  return Object.entries(facts).filter(mine).map(([scope]) => scope.split("/")[1]);
}

function someRank(stream, known) {
  return ranksKnown(stream, known).length > 0;
}

/** Streams `cuda/R`, among `names`, of the ranks whose tensors lie on the device `gpu/HOST/I`. Pure. */
export function ranksOn(stream, known, names) {
  return ranksKnown(stream, known).map((rank) => `cuda/${rank}`).filter((name) => names.includes(name));
}

/** What a device is called, its model, and what findings that stand say of it: `{name, model, notes}`. Pure. */
export function whatIs(stream, known, manyHosts, findings) {
  const { host, index } = split(stream);
  const name = manyHosts ? t("{host} · GPU {index}", { host, index }) : t("GPU {index}", { index });
  const about = findings.filter(
    ({ code, cleared_at_s: over, evidence }) =>
      code.startsWith("gpu_") && over === null && concerns(evidence, host, index),
  );
  return { name, model: device(stream, known)?.name ?? "", notes: about.map(noteOf) };
}

function concerns({ gpu } = {}, host, index) {
  return String(gpu).split(", ").some((named) => named === `${host}/${index}` || named === index);
}

function noteOf({ severity, title, cause, i18n }) {
  const what = hubText(i18n?.title, title);
  return { tone: severity, text: cause ? `${what}: ${hubText(i18n?.cause, cause)}` : what };
}

/** `[bit, words, harm]`: harm is true where the device is slower than its power limit and load make it. */
const REASONS = [
  [0x40, N("too hot (hardware)"), true],
  [0x20, N("too hot (driver)"), true],
  [0x80, N("power brake"), true],
  [0x8, N("hardware slowdown"), true],
  [0x4, N("at its power limit"), false],
  [0x10, N("sync boost"), false],
  [0x2, N("clocks set by hand"), false],
  [0x100, N("clocks set for a display"), false],
  [0x1, N("idle"), false],
];
const HARMFUL = REASONS.reduce((mask, [bit, , harm]) => (harm ? mask | bit : mask), 0);

/** Whether any of `bits` takes speed; null (not measured) does not. */
export function isThrottled(bits) {
  return bits !== null && (bits & HARMFUL) !== 0;
}

/** Whether the power limit, and nothing worse, holds the clocks: usual at full load, and no fault. */
export function isPowerCapped(bits) {
  return bits !== null && (bits & 0x4) !== 0 && !isThrottled(bits);
}

/** The reasons among `bits`, worst first: `[{words, harm}]`; those we have no words for are left out. */
export function throttleReasons(bits) {
  if (bits === null) return [];
  const found = REASONS.filter(([bit]) => (bits & bit) !== 0);
  // NVML sets the general bit beside the one that says what it is.
  const precise = found.some(([bit, , harm]) => harm && bit !== 0x8);
  return found.filter(([bit]) => bit !== 0x8 || !precise).map(([, words, harm]) => ({ words, harm }));
}
