// SPDX-License-Identifier: GPL-2.0-or-later
// Trees made from trees: without idle CPUs, seen from one symbol, and what a search matches.
import { totals } from "./flame-layout.js";

const IDLE = "do_idle";
// Parts of the names of the functions through which an interrupt enters: as in lab/profiles/analysis/frame_names.py.
const INTERRUPTS = ["interrupt", "sysvec", "softirq"];
// Callers with less of the whole than this are not distinguished: they would be too thin to see.
const LEAST = 1 / 200_000;

function named(tree, test) {
  const marks = new Uint8Array(tree.names.length);
  for (let i = 0; i < marks.length; i++) marks[i] = test(tree.names.get(i)) ? 1 : 0;
  return marks;
}

// The same nodes without the samples in which a CPU idled; an interrupt taken by an idle CPU is work.
export function withoutIdle(tree) {
  const idle = named(tree, (name) => name === IDLE);
  if (!idle.includes(1)) return tree;
  const irq = named(tree, (name) => INTERRUPTS.some((part) => name.includes(part)));
  const count = tree.parent.length;
  const below = new Uint8Array(count);
  const columns = tree.columns.map((column) => Float64Array.from(column));
  for (let i = 0; i < count; i++) {
    const above = i ? below[tree.parent[i]] : 0;
    below[i] = above | idle[tree.name[i]] | (irq[tree.name[i]] << 1);
    if (below[i] === 1) for (const column of columns) column[i] = 0;
  }
  return { ...tree, columns };
}

// Roots of exact profiles that are not the workload's: as in lab/profiles/analysis/frame_names.py.
const ASIDE = ["[interrupts]", "[kernel threads]"];

// The same nodes without interrupts and kernel threads.
export function withoutAside(tree) {
  const aside = named(tree, (name) => ASIDE.includes(name));
  const below = new Uint8Array(tree.parent.length);
  const columns = tree.columns.map((column) => Float64Array.from(column));
  for (let i = 1; i < below.length; i++) {
    below[i] = tree.parent[i] ? below[tree.parent[i]] : aside[tree.name[i]];
    if (below[i]) for (const column of columns) column[i] = 0;
  }
  return { ...tree, columns };
}

// Marks the names that contain a term, one mark per name; without a term none.
export function matching(names, term) {
  const wanted = term.trim().toLowerCase();
  const marks = new Uint8Array(names.length);
  if (wanted) for (let i = 0; i < marks.length; i++) marks[i] = names.get(i).toLowerCase().includes(wanted) ? 1 : 0;
  return marks;
}

// Share of all weight in or below matching frames, none counted twice, and how many frames match.
export function matched(frames, marks) {
  let found = 0;
  let sum = 0;
  let covered = 0;
  for (let i = 0; i < frames.count; i++) {
    if (!marks[frames.name[i]]) continue;
    found++;
    if (i < covered) continue;
    sum += frames.total[i];
    covered = frames.end[i];
  }
  return { found, share: frames.total[0] ? sum / frames.total[0] : 0 };
}

// The nodes whose callers are wanted: every sample's own frame, or the outermost ones of a symbol with all below them.
function seeds(tree, symbol) {
  if (!symbol) {
    const all = [];
    for (let i = 1; i < tree.parent.length; i++) if (tree.columns.some((column) => column[i] > 0)) all.push(i);
    return { nodes: Int32Array.from(all), weights: tree.columns, title: tree.names.get(tree.name[0]) };
  }
  let marks = named(tree, (name) => name === symbol);
  if (!marks.includes(1)) marks = matching(tree.names, symbol);
  const inside = new Uint8Array(tree.parent.length);
  const outermost = [];
  for (let i = 1; i < inside.length; i++) {
    const own = marks[tree.name[i]];
    inside[i] = inside[tree.parent[i]] | own;
    if (own && !inside[tree.parent[i]]) outermost.push(i);
  }
  return { nodes: Int32Array.from(outermost), weights: tree.columns.map((one) => totals(tree, one)), title: symbol };
}

// The tree of callers: below the root the requested frames, below each its callers. All chains step outwards together,
// so that a million of them cost one pass per level; chains that are too thin to see stop.
export function inverted(tree, symbol) {
  const { nodes, weights, title } = seeds(tree, symbol);
  const sum = (node) => weights.reduce((all, column) => all + column[node], 0);
  const least = nodes.reduce((all, node) => all + sum(node), 0) * LEAST;
  const parent = [-1];
  const name = [tree.names.length];
  const columns = weights.map(() => [0]);
  let chains = Array.from(nodes, (node) => ({ seed: node, here: node, group: 0 }));
  while (chains.length) {
    const groups = new Map();
    const heavy = [];
    for (const chain of chains) {
      const key = chain.group * (tree.names.length + 1) + tree.name[chain.here];
      let group = groups.get(key);
      if (group === undefined) {
        group = parent.length;
        groups.set(key, group);
        parent.push(chain.group);
        name.push(tree.name[chain.here]);
        heavy[group] = 0;
        for (const column of columns) column.push(0);
      }
      chain.group = group;
      heavy[group] += sum(chain.seed);
      chain.here = tree.parent[chain.here];
    }
    const further = [];
    for (const chain of chains) {
      if (chain.here > 0 && heavy[chain.group] >= least) further.push(chain);
      else columns.forEach((column, which) => { column[chain.group] += weights[which][chain.seed]; });
    }
    chains = further;
  }
  return derived(tree, title, parent, name, columns);
}

// The tree of callees: below the root the symbol of exactly that name, below it its callees, from all its callers together.
export function calledBy(tree, symbol) {
  const marks = named(tree, (name) => name === symbol);
  const parent = [-1];
  const name = [tree.names.length];
  const columns = tree.columns.map(() => [0]);
  const groups = new Map();
  // The place of each node in the new tree; 0: outside of it.
  const place = new Int32Array(tree.parent.length);
  for (let i = 1; i < place.length; i++) {
    const above = place[tree.parent[i]];
    if (!above && !marks[tree.name[i]]) continue;
    const key = above * tree.names.length + tree.name[i];
    let group = groups.get(key);
    if (group === undefined) {
      group = parent.length;
      groups.set(key, group);
      parent.push(above);
      name.push(tree.name[i]);
      for (const column of columns) column.push(0);
    }
    place[i] = group;
    columns.forEach((column, which) => { column[group] += tree.columns[which][i]; });
  }
  return derived(tree, symbol, parent, name, columns);
}

// A new tree with the names of another; the root's name is title, and stands behind them.
function derived(tree, title, parent, name, columns) {
  const names = { length: tree.names.length + 1, get: (i) => (i < tree.names.length ? tree.names.get(i) : title) };
  return {
    names, q: null, boots: tree.boots, parent: Int32Array.from(parent), name: Int32Array.from(name),
    columns: columns.map((column) => Float64Array.from(column)),
  };
}
