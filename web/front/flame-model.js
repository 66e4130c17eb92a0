// SPDX-License-Identifier: GPL-2.0-or-later
// What the viewer shows of a tree in a state: its layout, and for each frame its numbers, colour and words.
import { divergingStyle, shadesOf } from "./flame-colours.js";
import { inverted, matched, matching, withoutAside, withoutIdle } from "./flame-derive.js";
import { layout, totals } from "./flame-layout.js";
import { cycles, instructions, mark, ofDifference, ofFrame, percent, samples, time } from "./flame-words.js";
import { grouped } from "./numbers.js";

const sum = (column) => column.reduce((all, value) => all + value, 0);

export class Model {
  // labels: names of the two sides of a difference. callers: its tree of callers, if the server has told it already; without
  // it one is made here, in which nothing is known to be certain.
  constructor(tree, state, labels, callers = null) {
    this.labels = labels;
    this.state = state;
    this.amount = { ns: time, instructions, cycles }[state.unit] ?? samples;
    const busy = state.idle || ["ns", "cycles"].includes(state.unit) ? tree : state.unit === "instructions" ? withoutAside(tree) : withoutIdle(tree);
    this.wholes = busy.columns.map((column) => sum(column));
    this.tree = state.callers ? callers ?? inverted(busy, state.callers === "*" ? "" : state.callers) : busy;
    this.sums = this.tree.columns.map((column) => totals(this.tree, column));
    this.differs = this.sums.length === 2;
    // What a share is of, or samples are counted for: all of a side's, or one boot.
    this.units = state.counts ? this.tree.boots ?? [1, 1] : this.wholes.map((whole) => whole || 1);
    this.frames = layout(this.tree, this.differs ? this.blend() : this.tree.columns[0]);
    this.whole = this.differs ? sum(this.wholes.map((whole, side) => whole / this.units[side] / 2)) : this.wholes[0];
    this.shade = shadesOf(this.tree.names);
    this.search(state.search);
    this.idleShare = 1 - sum(this.wholes) / (sum(tree.columns.map((column) => sum(column))) || 1);
  }

  // Width of a frame in a difference: the mean of both sides, so that what is on one side only is kept.
  blend() {
    const [a, b] = this.tree.columns;
    const units = this.units.map((unit) => 2 * unit);
    const own = Float64Array.from(a, (value, i) => value / units[0] + b[i] / units[1]);
    if (!this.state.common) return own;
    // What is on one side only falls to the frame it was called from.
    for (let i = own.length - 1; i > 0; i--) {
      if (this.sums[0][i] > 0 && this.sums[1][i] > 0) continue;
      own[this.tree.parent[i]] += own[i];
      own[i] = 0;
    }
    return own;
  }

  search(term) {
    this.marks = matching(this.tree.names, term);
  }

  name(i) {
    return this.frames.names.get(this.frames.name[i]);
  }

  // Both sides of one frame as they are compared now: shares, or samples.
  sides(i) {
    const node = this.frames.source[i];
    const [base, candidate] = this.sums.map((column, side) => column[node] / this.units[side]);
    const certainty = this.state.counts ? this.tree.qSamples ?? this.tree.q : this.tree.q;
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
    const node = this.frames.source[i];
    return this.sums[0][node] <= 0 || this.sums[1][node] <= 0;
  }

  say(i) {
    if (this.differs) return ofDifference(this.sides(i), this.labels, this.state.counts ? this.amount : percent, this.state.unit);
    const { total, own } = this.frames;
    return ofFrame({ name: this.name(i), total: total[i], own: own[i], whole: this.whole || 1 }, this.amount);
  }

  found() {
    const { found, share } = matched(this.frames, this.marks);
    const part = share * (this.frames.total[0] / (this.whole || 1));
    return `${grouped(found)} ${found === 1 ? "frame matches" : "frames match"}: ${percent(part)} of ${{ ns: "waiting", cycles: "waiting", instructions: "instructions" }[this.state.unit] ?? "samples"}`;
  }
}
