// SPDX-License-Identifier: GPL-2.0-or-later
// Draws the visible part of a layout. The cost depends on the visible part, not on the tree: a frame under a pixel ends
// its row of siblings (they are no wider), and frames outside the range or the rows are skipped with all below them.

export const ROW = 18;
const FONT = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const LEAST_TEXT = 28;
const labels = { frame: new Int32Array(8192), left: new Float64Array(8192), wide: new Float64Array(8192) };
const widths = new Map();

// scene: {range(i) → [from, to] in units of weight, of the half with frame i, width, height, top (pixels scrolled), rows, rootsOnTop,
//         style(i) → CSS colour, text(i) → string, edge(i) → dashed or not, focus, paper, rest, ink}
export function paint(context, frames, scene) {
  context.fillStyle = scene.paper;
  context.fillRect(0, 0, scene.width, scene.height);
  const below = boxes(context, frames, scene, { first: 0, last: frames.callers, noted: 0 });
  const drawn = boxes(context, frames, scene, { first: frames.callers + 1, last: frames.count, noted: below });
  context.font = FONT;
  context.textBaseline = "middle";
  context.fillStyle = scene.ink;
  const letter = widthOf(context);
  for (let k = 0; k < drawn; k++) {
    const letters = Math.floor((labels.wide[k] - 6) / letter);
    const text = scene.text(labels.frame[k]);
    const cut = text.length > letters ? `${text.slice(0, Math.max(1, letters - 1))}…` : text;
    context.fillText(cut, labels.left[k] + 3, rowTop(frames, labels.frame[k], scene) + ROW / 2);
  }
  // The symbol in the middle of a sandwich stands out.
  if (frames.callers < frames.count) {
    context.lineWidth = 2;
    context.strokeStyle = scene.ink;
    context.strokeRect(1, rowTop(frames, 0, scene), scene.width - 2, ROW - 1);
  }
  if (scene.focus >= 0) outline(context, frames, scene);
}

function widthOf(context) {
  if (!widths.has(FONT)) widths.set(FONT, context.measureText("MMMMMMMMMM").width / 10);
  return widths.get(FONT);
}

function rowTop(frames, i, scene) {
  return (scene.rootsOnTop ? frames.depth[i] + frames.rise : scene.rows - 1 - frames.depth[i]) * ROW - scene.top;
}

// Fills the frames of one half, first to last, and notes those with room for a name; returns the number of all noted frames.
function boxes(context, frames, scene, { first, last, noted }) {
  const { x, total, end, parent, own } = frames;
  const { width, height } = scene;
  const downwards = scene.rootsOnTop && first === 0;
  const [from, to] = scene.range(first);
  const scale = width / (to - from);
  let i = first;
  while (i < last) {
    const left = (x[i] - from) * scale;
    const wide = total[i] * scale;
    const above = parent[i];
    if (wide < 1 || left >= width) {
      if (above < 0) break;
      const rest = (x[above] + total[above] - own[above] - x[i]) * scale;
      if (rest >= 1 && left < width) fill(context, scene.rest, left, rest, rowTop(frames, i, scene), scene);
      i = end[above];
      continue;
    }
    const y = rowTop(frames, i, scene);
    const beyond = downwards ? y >= height : y + ROW <= 0;
    if (left + wide <= 0 || beyond) {
      i = end[i];
      continue;
    }
    if (y < height && y + ROW > 0) {
      fill(context, scene.style(i), left, wide, y, scene);
      if (scene.edge(i)) dash(context, scene, left, wide, y);
      const start = Math.max(left, 0);
      const room = Math.min(left + wide, width) - start;
      if (room >= LEAST_TEXT && noted < labels.frame.length) {
        labels.frame[noted] = i;
        labels.left[noted] = start;
        labels.wide[noted++] = room;
      }
    }
    i++;
  }
  return noted;
}

function fill(context, style, left, wide, y, scene) {
  const start = Math.max(left, 0);
  const room = Math.min(left + wide, scene.width) - start;
  context.fillStyle = style;
  context.fillRect(start, y, room > 3 ? room - 0.75 : room, ROW - 1);
}

function dash(context, scene, left, wide, y) {
  if (wide < 6) return;
  context.strokeStyle = scene.ink;
  context.lineWidth = 1;
  context.setLineDash([3, 2]);
  const start = Math.max(left, -2);
  context.strokeRect(start + 1, y + 1, Math.min(wide, scene.width + 4 - start) - 3, ROW - 3);
  context.setLineDash([]);
}

function outline(context, frames, scene) {
  const [from, to] = scene.range(scene.focus);
  const scale = scene.width / (to - from);
  const left = Math.max(0, (frames.x[scene.focus] - from) * scale);
  const right = Math.min(scene.width, (frames.x[scene.focus] + frames.total[scene.focus] - from) * scale);
  if (right < 0 || left > scene.width) return;
  const y = rowTop(frames, scene.focus, scene);
  context.lineWidth = 2;
  context.strokeStyle = scene.paper;
  context.strokeRect(left + 3, y + 3, Math.max(2, right - left - 6), ROW - 7);
  context.strokeStyle = scene.ring;
  context.strokeRect(left + 1, y + 1, Math.max(2, right - left - 2), ROW - 3);
}
