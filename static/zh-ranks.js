/** Simplified Chinese for the views of ranks and GPUs. */

export const RANKS = {
};
