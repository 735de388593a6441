/** Painting a heat map on its canvas: cells, numbers of ranks, marks of those that stand out, time axis. */

import { timeTicks } from "../charts/picture.js";
import { FRAME, ROOMY_PX } from "./heatmapcells.js";

const PX_PER_MARK = 72; // room for one mark on the time axis
const LABEL_PX = 11; // between two numbers of ranks
const WORD_PX = 48; // room that a word in a row needs

/** The cells as a small picture, a pixel each, to be stretched over the plot. */
export function cellImage(bytes, columns, rows) {
  const image = document.createElement("canvas");
  Object.assign(image, { width: Math.max(columns, 1), height: Math.max(rows, 1) });
  if (columns > 0 && rows > 0) image.getContext("2d").putImageData(new ImageData(bytes, columns, rows), 0, 0);
  return image;
}

/** Make the canvas as large as its box on this screen; its context, cleared, in CSS px. */
export function cleared(canvas, width, height) {
  const scale = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** Cells of `image` at their times; columns next to one another are stretched in one go. */
export function paintCells(context, place, { image, t, columnS, rows }) {
  context.save();
  context.beginPath();
  context.rect(FRAME.l, FRAME.t, place.wide, place.high);
  context.clip();
  context.imageSmoothingEnabled = false;
  for (const [first, last] of runs(t, columnS)) {
    const [x0, x1] = [place.x(t[first] - columnS / 2), place.x(t[last] + columnS / 2)];
    context.drawImage(image, first, 0, last - first + 1, rows, x0, FRAME.t, Math.max(x1 - x0, 1), place.high);
  }
  context.restore();
}

/** Index ranges of columns that follow one another without a gap. Pure. */
export function runs(t, columnS) {
  const found = [];
  for (let i = 0; i < t.length; i += 1) {
    const first = i;
    while (i + 1 < t.length && t[i + 1] - t[i] < columnS * 1.5) i += 1;
    found.push([first, i]);
  }
  return found;
}

/** Lines between rows that are high enough for it. */
export function paintLines(context, place, rows, ink) {
  if (place.rowPx < 8) return;
  context.fillStyle = ink.ground;
  for (let row = 1; row < rows; row += 1) context.fillRect(FRAME.l, place.y(row) - 0.5, place.wide, 1);
}

/** Stretches in which a rank no longer steps: `{row, from, to, colour, text}` (seconds), hatched, with a word. */
export function paintSilence(context, place, silences, [from, to], ink) {
  for (const { row, from: since, to: until, colour, text } of silences) {
    const [x0, x1] = [place.x(Math.max(since, from)), place.x(Math.min(until, to))];
    if (x1 - x0 < 1) continue;
    const [y, high] = [place.y(row), Math.max(place.rowPx - (place.rowPx >= 8 ? 1 : 0), 1)];
    hatch(context, x0, y, x1 - x0, high, colour);
    if (place.rowPx < ROOMY_PX || x1 - x0 < WORD_PX) continue;
    context.font = `600 11px ${ink.font}`;
    const wide = context.measureText(text).width + 8;
    if (wide > x1 - x0) continue;
    context.fillStyle = ink.ground;
    context.fillRect(x0 + 2, y + 1, wide, high - 2);
    context.fillStyle = colour;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText(text, x0 + 6, y + high / 2 + 0.5);
  }
}

function hatch(context, x, y, wide, high, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, wide, high);
  context.clip();
  context.globalAlpha = high < 4 ? 0.75 : 0.16;
  context.fillStyle = colour;
  context.fillRect(x, y, wide, high);
  context.globalAlpha = 0.55;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = Math.floor((x - high) / 6) * 6; high >= 4 && at < x + wide; at += 6) {
    context.moveTo(at, y + high);
    context.lineTo(at + high, y);
  }
  context.stroke();
  context.restore();
}

/**
 * Numbers at the left: of every row that has room, else of those that stand out as far as they fit, and of
 * round rows. `rows` is `[{rank, sign, colour, strong}]` from top to bottom; sign is "died", "stopped" or "odd".
 */
export function paintNumbers(context, place, rows, ink) {
  context.textAlign = "right";
  context.textBaseline = "middle";
  let free = -Infinity;
  const roomy = place.rowPx >= ROOMY_PX;
  rows.forEach(({ rank, sign, colour, strong }, row) => {
    const y = place.y(row) + place.rowPx / 2;
    if (sign && !roomy) tick(context, FRAME.l - 4, y, colour);
    const wanted = roomy || sign || strong || row === 0;
    if (!wanted || y - free < LABEL_PX) return;
    free = y;
    context.font = `${strong || sign ? 650 : 400} 11px ${ink.font}`;
    context.fillStyle = colour ?? ink.text;
    context.fillText(String(rank), FRAME.l - 7, y + 0.5);
    if (sign) paintSign(context, sign, 7, y, colour);
  });
}

function tick(context, x, y, colour) {
  context.fillStyle = colour;
  context.fillRect(x, y - 1, 3, 2);
}

/** A cross, two bars or a triangle of about 8 px around (x, y). */
function paintSign(context, sign, x, y, colour) {
  const paths = {
    died: [[-3.5, -3.5, 3.5, 3.5], [3.5, -3.5, -3.5, 3.5]],
    stopped: [[-2, -3.5, -2, 3.5], [2, -3.5, 2, 3.5]],
    odd: [[0, -3.5, -4, 3.5], [-4, 3.5, 4, 3.5], [4, 3.5, 0, -3.5]],
  };
  context.strokeStyle = colour;
  context.lineWidth = 1.75;
  context.lineCap = "round";
  context.beginPath();
  for (const [x0, y0, x1, y1] of paths[sign]) {
    context.moveTo(x + x0, y + y0);
    context.lineTo(x + x1, y + y1);
  }
  context.stroke();
}

/** Marks of the time axis below the cells. */
export function paintTimes(context, place, [from, to], ink) {
  const { values, texts } = timeTicks(from, to, Math.max(2, Math.floor(place.wide / PX_PER_MARK)));
  context.font = `11px ${ink.font}`;
  context.fillStyle = ink.text;
  context.textAlign = "center";
  context.textBaseline = "top";
  const edge = FRAME.l + place.wide + FRAME.r; // beyond it a mark would be cut
  values.forEach((value, i) => {
    const middle = Math.min(place.x(value), edge - context.measureText(texts[i]).width / 2);
    context.fillText(texts[i], middle, FRAME.t + place.high + 8);
  });
}

/** A frame around a row, and around the cell the keyboard stands on. */
export function paintFrame(context, place, row, colour, x0 = FRAME.l, x1 = FRAME.l + place.wide) {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.setLineDash([]);
  context.strokeRect(x0 - 0.75, place.y(row) - 0.75, x1 - x0 + 1.5, Math.max(place.rowPx, 2) + 0.5);
}
