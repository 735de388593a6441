/** Fewer points than pixels: more cannot be seen, and each costs time to draw. Pure. */

/**
 * A line `{t, min, max, mean}` over [from, to] in at most about `points` points. Points fall into spans of
 * a power of two seconds, counted from the run's start, so that they stay put while time goes on.
 */
export function reduced({ t, min, max, mean }, from, to, points) {
  if (t.length <= points) return { t, min, max, mean };
  const width = 2 ** Math.ceil(Math.log2(Math.max(to - from, 1e-9) / points));
  const out = { t: [], min: [], max: [], mean: [] };
  for (let i = 0; i < t.length;) {
    const span = Math.floor(t[i] / width);
    let end = i + 1;
    while (end < t.length && Math.floor(t[end] / width) === span) end += 1;
    out.t.push((t[i] + t[end - 1]) / 2);
    out.min.push(fold(min, i, end, Math.min));
    out.max.push(fold(max, i, end, Math.max));
    out.mean.push(average(mean, i, end));
    i = end;
  }
  return out;
}

function fold(values, start, end, choose) {
  let result = null;
  for (let i = start; i < end; i += 1) if (values[i] !== null) result = result === null ? values[i] : choose(result, values[i]);
  return result;
}

function average(values, start, end) {
  let [sum, known] = [0, 0];
  for (let i = start; i < end; i += 1) {
    if (values[i] === null) continue;
    sum += values[i];
    known += 1;
  }
  return known === 0 ? null : sum / known;
}
