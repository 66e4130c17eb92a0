// SPDX-License-Identifier: GPL-2.0-or-later
// A trend as a chart to walk through: uPlot over the numbers in the page. Subjects and authors are others' text: they
// reach the page as textContent only.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { address, marks, range, told } from "./trend-words.js";

const box = document.getElementById("trend");
const said = document.getElementById("trend-said");
const data = JSON.parse(document.getElementById("trend-data").textContent);
const HEIGHT = 340;

function colours() {
  const styles = getComputedStyle(document.documentElement);
  const value = (name) => styles.getPropertyValue(`--${name}`).trim();
  return {
    line: value("series-1"), level: value("series-0"), grid: value("line"), text: value("dim"),
    regression: value("regression"), improvement: value("improvement"), unchanged: value("unchanged"), note: value("series-4"),
  };
}

// Steps as vertical lines, dashed while pending, and the level of each stretch between them; under the points.
function drawSteps(chart) {
  const { ctx, bbox } = chart;
  const paint = colours();
  const x = (index) => chart.valToPos(index - 0.5, "x", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = 2 * devicePixelRatio;
  for (const step of data.steps) {
    ctx.strokeStyle = paint[step.verdict] ?? paint.unchanged;
    ctx.setLineDash(step.pending ? [6, 6] : []);
    ctx.beginPath();
    ctx.moveTo(x(step.at), bbox.top);
    ctx.lineTo(x(step.at), bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.strokeStyle = paint.level;
  ctx.lineWidth = devicePixelRatio;
  const ends = [0, ...data.steps.map((step) => step.at), data.median.length];
  data.levels.forEach((level, index) => {
    const y = chart.valToPos(level, "y", true);
    ctx.beginPath();
    ctx.moveTo(x(ends[index]), y);
    ctx.lineTo(x(ends[index + 1]), y);
    ctx.stroke();
  });
  ctx.restore();
}

// Notes as marks at the top, above their revisions; their text is shown with the revision.
function drawNotes(chart) {
  const { ctx, bbox } = chart;
  const size = 6 * devicePixelRatio;
  ctx.save();
  ctx.fillStyle = colours().note;
  for (const note of data.notes) {
    const x = chart.valToPos(note.at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top + 2 * size);
    ctx.lineTo(x - size, bbox.top);
    ctx.lineTo(x + size, bbox.top);
    ctx.fill();
  }
  ctx.restore();
}

function say(chart) {
  const at = chart.cursor.idx;
  if (at !== null && at !== undefined) said.textContent = told(data, at);
}

function keep(chart) {
  const { min, max } = chart.scales.x;
  history.replaceState(null, "", address(new URL(location.href), data, min, max));
}

function options() {
  const paint = colours();
  const axis = { stroke: paint.text, grid: { stroke: paint.grid, width: 1 }, ticks: { stroke: paint.grid, width: 1 } };
  const few = data.median.length <= 400;
  return {
    width: box.clientWidth, height: HEIGHT, padding: [null, 44, null, null], legend: { show: false }, focus: { prox: 30 },
    scales: { x: { time: false, range: (_, min, max) => (min === max ? [min - 1, max + 1] : [min, max]) } },
    cursor: { y: false, points: { size: 9 }, drag: { x: true, y: false } },
    axes: [
      { ...axis, space: 90, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000], values: (_, at) => at.map((i) => data.commits[i] ?? "") },
      { ...axis, size: 74, values: (_, at, axis, space, increment) => marks(at, increment, data.unit) },
    ],
    // The boots' range is the band between the two outer columns.
    bands: [{ series: [3, 1], fill: `${paint.line}33` }],
    series: [
      {},
      { stroke: "transparent", points: { show: false } },
      { stroke: paint.line, width: few ? 0 : 1, points: { show: few, size: 7, fill: paint.line, stroke: paint.line } },
      { stroke: "transparent", points: { show: false } },
    ],
    hooks: { drawAxes: [drawSteps], draw: [drawNotes], setCursor: [say], setSelect: [(chart) => setTimeout(() => keep(chart))] },
  };
}

function make() {
  const columns = [data.median.map((_, index) => index), data.low, data.median, data.high];
  const chart = new uPlot(options(), columns, box);
  const kept = range(new URL(location.href), data);
  if (kept) chart.setScale("x", kept);
  return chart;
}

// Arrows walk from revision to revision, Home and End to the ends of what is shown, Escape shows all again.
function walk(chart, event) {
  const last = data.median.length - 1;
  const first = Math.max(0, Math.ceil(chart.scales.x.min));
  const end = Math.min(last, Math.floor(chart.scales.x.max));
  const here = chart.cursor.idx ?? end;
  const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: first, End: end }[event.key];
  if (event.key === "Escape") {
    chart.setScale("x", { min: 0, max: last });
    keep(chart);
  } else if (to === undefined) return;
  else {
    // Outside of the picture there is no cursor, and the next key would begin at the end.
    const at = Math.max(first, Math.min(end, to));
    const left = chart.valToPos(at, "x");
    chart.setCursor({ left, top: chart.valToPos(data.median[at], "y") });
    said.textContent = told(data, at);
  }
  event.preventDefault();
}

if (data.median.length) {
  document.getElementById("trend-still")?.remove();
  box.hidden = false;
  let chart = make();
  said.textContent = told(data, data.median.length - 1);
  box.addEventListener("keydown", (event) => walk(chart, event));
  box.addEventListener("dblclick", () => setTimeout(() => keep(chart)));
  new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: HEIGHT })).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chart.destroy();
    chart = make();
  });
  box.dataset.ready = String(data.median.length);
}
