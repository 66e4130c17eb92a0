// SPDX-License-Identifier: GPL-2.0-or-later
// What the viewer shows of a tree in a state: its layout, and for each frame its numbers, colour and words.
import { divergingStyle, shadesOf } from "./flame-colours.js";
import { calledBy, inverted, matched, matching, withoutAside, withoutIdle } from "./flame-derive.js";
import { layout, sandwiched, totals } from "./flame-layout.js";
import { cycles, instructions, mark, ofDifference, ofFrame, percent, samples, time } from "./flame-words.js";
import { grouped } from "./numbers.js";

const sum = (column) => column.reduce((all, value) => all + value, 0);

// The trees of a view: the callees and callers of a symbol, the callers of a symbol or of every one, or the tree itself.
function seenFrom(tree, { around, callers }) {
  if (around) return [calledBy(tree, around), inverted(tree, around)];
  return [callers ? inverted(tree, callers === "*" ? "" : callers) : tree];
}

export class Model {
  // labels: names of the two sides of a difference. told: its trees as seen from a symbol, if the server has sent them already;
  // without them they are made here, and nothing in them is known to be certain.
  constructor(tree, state, labels, told = null) {
    this.labels = labels;
    this.state = state;
    this.amount = { ns: time, instructions, cycles }[state.unit] ?? samples;
    const busy = state.idle || ["ns", "cycles"].includes(state.unit) ? tree : state.unit === "instructions" ? withoutAside(tree) : withoutIdle(tree);
    this.wholes = busy.columns.map((column) => sum(column));
    // One tree, or the two halves of a sandwich.
    this.trees = told ?? seenFrom(busy, state);
    this.sums = this.trees.map((one) => one.columns.map((column) => totals(one, column)));
    this.differs = tree.columns.length === 2;
    // The unit of shares, all weight of a side; or the unit of samples, one boot.
    this.units = state.counts ? tree.boots ?? [1, 1] : this.wholes.map((whole) => whole || 1);
    const halves = this.trees.map((one, half) => layout(one, this.differs ? this.blend(one, this.sums[half]) : one.columns[0]));
    this.frames = halves.length > 1 ? sandwiched(...halves) : halves[0];
    this.whole = this.differs ? sum(this.wholes.map((whole, side) => whole / this.units[side] / 2)) : this.wholes[0];
    this.shade = shadesOf(this.frames.names);
    this.search(state.search);
    this.idleShare = 1 - sum(this.wholes) / (sum(tree.columns.map((column) => sum(column))) || 1);
  }

  // Width of a frame in a difference: the mean of both sides, so that frames on one side only are kept.
  blend(tree, sums) {
    const [a, b] = tree.columns;
    const units = this.units.map((unit) => 2 * unit);
    const own = Float64Array.from(a, (value, i) => value / units[0] + b[i] / units[1]);
    if (!this.state.common) return own;
    // The weight of a frame on one side only goes to its caller.
    for (let i = own.length - 1; i > 0; i--) {
      if (sums[0][i] > 0 && sums[1][i] > 0) continue;
      own[tree.parent[i]] += own[i];
      own[i] = 0;
    }
    return own;
  }

  search(term) {
    this.marks = matching(this.frames.names, term);
  }

  name(i) {
    return this.frames.names.get(this.frames.name[i]);
  }

  // Both sides of one frame as they are compared now: shares, or samples.
  sides(i) {
    const node = this.frames.source[i];
    const half = Number(i >= this.frames.callers);
    const [base, candidate] = this.sums[half].map((column, side) => column[node] / this.units[side]);
    const { q, qSamples } = this.trees[half];
    const certainty = this.state.counts ? qSamples ?? q : q;
    return { name: this.name(i), base, candidate, q: certainty ? certainty[node] : NaN };
  }

  style(i, colours, root) {
    const hit = this.marks[this.frames.name[i]];
    if (!this.differs && hit) return colours.match;
    if (i < root && this.frames.end[i] > root) return colours.faded;
    if (!this.differs) return colours.shades[this.shade(this.frames.name[i])];
    if (this.state.search && !hit) return colours.dimmed;
    const { base, candidate, q } = this.sides(i);
    return divergingStyle(colours, base, candidate, q);
  }

  text(i) {
    return this.differs ? mark(this.sides(i)) + this.name(i) : this.name(i);
  }

  oneSided(i) {
    if (!this.differs) return false;
    const { base, candidate } = this.sides(i);
    return base <= 0 || candidate <= 0;
  }

  say(i) {
    if (this.differs) return ofDifference(this.sides(i), this.labels, this.state.counts ? this.amount : percent, this.state.unit);
    const { total, own, callers } = this.frames;
    // All weight of a caller is in its callees here.
    const inside = this.state.callers || i >= callers ? 0 : own[i];
    return ofFrame({ name: this.name(i), total: total[i], own: inside, whole: this.whole || 1 }, this.amount);
  }

  found() {
    const { found, share } = matched(this.frames, this.marks);
    const frames = `${grouped(found)} ${found === 1 ? "frame matches" : "frames match"}`;
    // A sample is in both halves of a sandwich.
    if (this.trees.length > 1) return frames;
    const part = share * (this.frames.total[0] / (this.whole || 1));
    return `${frames}: ${percent(part)} of ${{ ns: "waiting", cycles: "waiting", instructions: "instructions" }[this.state.unit] ?? "samples"}`;
  }
}
