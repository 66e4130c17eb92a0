// SPDX-License-Identifier: GPL-2.0-or-later
// Where each frame lies. Widest siblings come first, so that drawing may stop at the first one under a pixel.

// Samples in each node or below it, of one column.
export function totals(tree, column) {
  const sum = Float64Array.from(column);
  for (let i = sum.length - 1; i > 0; i--) sum[tree.parent[i]] += sum[i];
  return sum;
}

// Links each node's children, widest first; nodes without weight are left out.
// A comparator would cost a second at a million nodes: weight and index are sorted as one number instead.
function link(tree, total) {
  const count = total.length;
  const room = 2 ** Math.ceil(Math.log2(count + 1));
  const steps = 2 ** 52 / room / (total[0] || 1);
  const keys = new Float64Array(count);
  let used = 0;
  for (let i = 1; i < count; i++) if (total[i] > 0) keys[used++] = Math.floor(total[i] * steps) * room + i;
  const ranked = keys.subarray(0, used).sort();
  const first = new Int32Array(count).fill(-1);
  const next = new Int32Array(count).fill(-1);
  for (const key of ranked) {
    const node = key % room;
    const above = tree.parent[node];
    next[node] = first[above];
    first[above] = node;
  }
  return { first, next, kept: used + 1 };
}

// A layout is columns in drawing order: source (index into the tree), name, parent, depth, end (behind the last frame
// below), x and total in units of weight, own (weight of the frame itself, at its right). callers: where the frames begin
// that stand above the root, in rows 1 to rise; behind the last frame if none do.
export function layout(tree, weight) {
  const sums = totals(tree, weight);
  const { first, next, kept } = link(tree, sums);
  const out = {
    names: tree.names, count: kept, callers: kept, deepest: 0, rise: 0,
    source: new Int32Array(kept), name: new Int32Array(kept), parent: new Int32Array(kept), depth: new Int32Array(kept),
    end: new Int32Array(kept), x: new Float64Array(kept), total: new Float64Array(kept), own: new Float64Array(kept),
  };
  let node = 0;
  let above = -1;
  let depth = 0;
  let free = 0;
  for (let place = 0; place < kept; place++) {
    out.source[place] = node;
    out.name[place] = tree.name[node];
    out.parent[place] = above;
    out.depth[place] = depth;
    out.x[place] = free;
    out.total[place] = sums[node];
    out.own[place] = weight[node];
    if (depth > out.deepest) out.deepest = depth;
    let here = place;
    if (first[node] >= 0) {
      node = first[node];
      above = place;
      depth++;
      continue;
    }
    // Climb until there is a next sibling; the frames left behind end here.
    for (;;) {
      out.end[here] = place + 1;
      free = out.x[here] + out.total[here];
      if (here === 0) break;
      node = next[out.source[here]];
      above = out.parent[here];
      if (node >= 0) break;
      here = above;
      depth--;
    }
  }
  return out;
}

// Two layouts that have one symbol below their roots, as one: the symbol with its callees, and its callers above it. The
// callers' own frame of the symbol, at the index `callers`, only represents its half; depths above the symbol are negative.
export function sandwiched(callees, callers) {
  const below = callees.count - 1;
  const count = below + callers.count - 1;
  if (below < 1) return callees;
  const joined = (key, lower, upper) => {
    const column = new callees[key].constructor(count);
    for (let i = 0; i < count; i++) column[i] = i < below ? lower(callees[key][i + 1]) : upper(callers[key][i - below + 1]);
    return column;
  };
  const same = (value) => value;
  const out = {
    names: {
      length: callees.names.length + callers.names.length,
      get: (i) => (i < callees.names.length ? callees.names.get(i) : callers.names.get(i - callees.names.length)),
    },
    count, callers: below, deepest: callees.deepest - 1, rise: callers.deepest - 1,
    name: joined("name", same, (name) => name + callees.names.length),
    parent: joined("parent", (at) => at - 1, (at) => at - 1 + below),
    depth: joined("depth", (depth) => depth - 1, (depth) => 1 - depth),
    end: joined("end", (at) => at - 1, (at) => at - 1 + below),
  };
  for (const key of ["source", "x", "total", "own"]) out[key] = joined(key, same, same);
  out.parent[below] = -1;
  return out;
}

// The frame at a place in units of weight and a depth, or -1.
export function frameAt(frames, place, depth) {
  let here = depth < 0 ? frames.callers : 0;
  while (Math.abs(frames.depth[here]) < Math.abs(depth)) {
    let child = here + 1;
    while (child < frames.end[here] && frames.x[child] + frames.total[child] <= place) child = frames.end[child];
    if (child >= frames.end[here] || frames.x[child] > place) return -1;
    here = child;
  }
  return here;
}

// In a path: the way goes up, to the callers.
const UP = "..";

// An address keeps a frame as the names from below the root to it; follow() leads back, and stops at a missing name.
export function pathTo(frames, index) {
  const path = [];
  for (let i = index; i > 0 && i !== frames.callers; i = frames.parent[i]) path.push(frames.names.get(frames.name[i]));
  if (index >= frames.callers) path.push(UP);
  return path.reverse();
}

export function follow(frames, path) {
  const up = path[0] === UP && frames.callers < frames.count;
  let here = up ? frames.callers : 0;
  for (const name of up ? path.slice(1) : path) {
    let child = here + 1;
    while (child < frames.end[here] && frames.names.get(frames.name[child]) !== name) child = frames.end[child];
    if (child >= frames.end[here]) break;
    here = child;
  }
  return here === frames.callers ? 0 : here;
}

export function nextSibling(frames, index) {
  const place = frames.end[index];
  return index > 0 && place < frames.end[frames.parent[index]] ? place : -1;
}

export function previousSibling(frames, index) {
  if (index <= 0) return -1;
  let before = -1;
  for (let i = frames.parent[index] + 1; i < index; i = frames.end[i]) before = i;
  return before;
}
