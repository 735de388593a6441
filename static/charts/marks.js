/** The selected finding's steps as a band behind every chart: two numbers of the style sheet, and no drawing. */

export class Marks {
  #grid;
  #range;
  #selection;
  #span;

  /** `grid` holds the charts; `span(finding)` gives its `[from, to]` in seconds since start. */
  constructor(grid, range, selection, span) {
    this.#grid = grid;
    this.#range = range;
    this.#selection = selection;
    this.#span = span;
  }

  connect() {
    this.#range.connect(this.show);
    this.#selection.connect(this.show);
  }

  disconnect() {
    this.#range.disconnect(this.show);
    this.#selection.disconnect(this.show);
  }

  /** Place the band anew. */
  show = () => {
    const { finding } = this.#selection;
    const shares = finding === null ? null : sharesOf(this.#span(finding), this.#range.bounds);
    this.#grid.classList.toggle("marked", shares !== null);
    if (shares === null) return;
    this.#grid.dataset.mark = finding.severity;
    this.#grid.style.setProperty("--mark-from", shares[0].toFixed(4));
    this.#grid.style.setProperty("--mark-to", shares[1].toFixed(4));
  };
}

/** Where a span of time lies in the range shown, both ends as shares of its width; null outside of it. */
export function sharesOf([start, end], [from, to]) {
  if (!(to > from) || end < from || start > to) return null;
  const share = (time) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return [share(start), share(end)];
}

/** Whether two spans of time have anything in common. */
export function overlaps([start, end], [from, to]) {
  return start <= to && end >= from;
}
