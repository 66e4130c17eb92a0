// SPDX-License-Identifier: GPL-2.0-or-later
// The description of a frame: in the detail line, to screen readers, and as its label in a difference.
import { CERTAIN } from "./flame-colours.js";
import { grouped } from "./numbers.js";

const LONGEST = 240;

export function percent(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(share < 0.0001 && share > 0 ? 4 : 2)}\u00a0%` : "–";
}

export function cut(name) {
  return name.length > LONGEST ? `${name.slice(0, LONGEST)}… (${name.length} characters)` : name;
}

export function samples(count) {
  const text = count >= 1000 || Number.isInteger(count) ? grouped(Math.round(count)) : count.toFixed(1);
  return `${text} ${count === 1 ? "sample" : "samples"}`;
}

export function instructions(count) {
  return `${grouped(Math.round(count))} ${count === 1 ? "instruction" : "instructions"}`;
}

export function cycles(count) {
  return `${grouped(Math.round(count))} ${count === 1 ? "cycle" : "cycles"} per operation`;
}

const TIMES = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

// Nanoseconds in the largest unit that makes at least 1.
export function time(ns) {
  const [unit, size] = TIMES.find(([, least]) => ns >= least) ?? TIMES[3];
  return `${grouped(ns / size, { maximumSignificantDigits: 4 })}\u00a0${unit}`;
}

// one: {name, total, own, whole}; say(weight) → text.
export function ofFrame(one, say = samples) {
  const inside = one.own ? `, ${percent(one.own / one.whole)} in itself` : "";
  return `${cut(one.name)}: ${percent(one.total / one.whole)}, ${say(one.total)}${inside}`;
}

export function certainty(q) {
  if (!(q >= 0)) return "certainty not known";
  const p = q < 0.001 ? "q < 0.001" : `q ${q.toFixed(3)}`;
  return q <= CERTAIN ? `certain (${p})` : `may be chance (${p})`;
}

// Of exact counts: nothing is sampled, but boots of one kernel differ by where ticks and allocations fall.
function causeOf(one) {
  if (one.base === one.candidate) return "not one instruction more or less";
  return one.q <= CERTAIN ? "changed by the patch" : "boots of one kernel differ by as much";
}

export function ratio(base, candidate) {
  if (base <= 0) return "new here";
  if (candidate <= 0) return "gone here";
  return `×\u00a0${(candidate / base).toFixed(2)}`;
}

// one: {name, base, candidate (both as shown: shares or samples), q}; labels: {base, candidate}; say(value) → text.
export function ofDifference(one, labels, say, unit = "samples") {
  const change = ratio(one.base, one.candidate);
  const sides = `${labels.base} ${say(one.base)}, ${labels.candidate} ${say(one.candidate)}`;
  const sure = unit === "instructions" ? causeOf(one) : certainty(one.q);
  return `${cut(one.name)}: ${sides}, ${change}, ${sure}`;
}

// A shape beside the colour: the direction of a certain change, or the one side that has the frame.
export function mark(one) {
  const side = one.base <= 0 ? "+ " : one.candidate <= 0 ? "− " : "";
  if (!(one.q <= CERTAIN)) return side;
  return side || (one.candidate > one.base ? "▲ " : "▼ ");
}
