// SPDX-License-Identifier: GPL-2.0-or-later
// The flame graph of one variant. Its stacks come as JSON in the page; names are set as text, never as markup.
import flamegraph from "d3-flame-graph";
import { select } from "d3-selection";

const box = document.getElementById("flame");
const source = document.getElementById("flame-stacks");
const detail = document.getElementById("flame-detail");
const field = document.getElementById("flame-search");
const share = document.getElementById("flame-share");
const CELL = 20;

function percent(part, whole) {
  return whole ? `${((100 * part) / whole).toFixed(2)} %` : "–";
}

// A symbol has the same shade everywhere, so that it is recognised in another variant's graph.
function colour(frame) {
  if (frame.highlight) return "var(--flame-match)";
  const name = frame.data.name;
  let sum = 0;
  for (let i = 0; i < Math.min(name.length, 24); i++) sum = (sum * 31 + name.charCodeAt(i)) % 997;
  return `var(--flame-${sum % 5})`;
}

function draw() {
  const stacks = JSON.parse(source.textContent);
  const total = stacks.value;
  const say = (frame) => `${frame.data.name}: ${percent(frame.data.value, total)}, ${frame.data.value} samples`;
  const chart = flamegraph()
    .width(box.clientWidth)
    .cellHeight(CELL)
    .minFrameSize(1)
    .transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 200)
    .sort(true)
    .inverted(box.dataset.inverted === "yes")
    .setColorMapper(colour)
    .label(say)
    .setDetailsHandler((text) => { detail.textContent = text || "Point at a frame to name it; click to zoom."; })
    .setSearchMatch((frame, term) => Boolean(term) && frame.data.name.toLowerCase().includes(term.toLowerCase()))
    .setSearchHandler((found, sum, whole) => {
      share.textContent = `${found.length} frames match: ${percent(sum, whole)} of samples`;
    });
  select(box).datum(stacks).call(chart);
  return chart;
}

function listen(chart) {
  document.getElementById("flame-find").addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim()) chart.search(field.value.trim());
    else clear(chart);
  });
  document.getElementById("flame-reset").addEventListener("click", () => {
    field.value = "";
    clear(chart);
    chart.resetZoom();
  });
  let pending = 0;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => chart.width(box.clientWidth).update(), 150);
  });
}

function clear(chart) {
  share.textContent = "";
  chart.clear();
}

if (box && source) {
  const chart = draw();
  listen(chart);
  if (field.value.trim()) chart.search(field.value.trim());
}
