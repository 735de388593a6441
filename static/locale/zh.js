/** Simplified Chinese, all of it. Loaded only by who reads it. */

import { FINDINGS } from "./zh-findings.js";
import { GPUS } from "./zh-gpu.js";
import { PAGE } from "./zh-page.js";
import { RANKS } from "./zh-ranks.js";
import { RUNS } from "./zh-runs.js";

/** English text → Chinese text; `{name}` stands for the same parameter in both. */
export const MESSAGES = { ...FINDINGS, ...GPUS, ...RANKS, ...RUNS, ...PAGE };
