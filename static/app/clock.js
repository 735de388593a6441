/** How old the newest data is, though the hub's clock and the viewer's differ. */

/** Data older than this while the run is running is stale, in seconds. */
export const STALE_S = 5;

export class HubClock {
  #aheadS = -Infinity; // hub's clock minus ours
  #nowS;

  /** `nowS()` is the viewer's clock in unix seconds. */
  constructor(nowS = () => Date.now() / 1000) {
    this.#nowS = nowS;
  }

  /**
   * A time that the hub's clock had already reached when the message came. Each such time is a lower
   * bound of how far the hub is ahead, so the largest is the best; a fast message makes it exact.
   */
  note(hubUnixS) {
    if (Number.isFinite(hubUnixS)) this.#aheadS = Math.max(this.#aheadS, hubUnixS - this.#nowS());
  }

  /** Seconds since `dataUnixS` on the hub's clock; null when either is unknown. */
  age(dataUnixS) {
    if (!Number.isFinite(dataUnixS) || this.#aheadS === -Infinity) return null;
    return Math.max(0, this.#nowS() + this.#aheadS - dataUnixS);
  }
}
