// SPDX-License-Identifier: GPL-2.0-or-later
// What needs no browser of the flame graph: unpacking, layout, derived trees, addresses. Run by web/tests/test_front.py.
import assert from "node:assert/strict";
import { test } from "node:test";
import { step } from "../flame-colours.js";
import { calledBy, inverted, matched, matching, withoutIdle } from "../flame-derive.js";
import { readDifference } from "../flame-difference.js";
import { paint } from "../flame-draw.js";
import { follow, frameAt, layout, nextSibling, pathTo, previousSibling } from "../flame-layout.js";
import { Model } from "../flame-model.js";
import { readState, writeState } from "../flame-state.js";
import { namesOf, TreeDamaged, unpack } from "../flame-tree.js";

// "outer;inner": samples → a tree.
function treeOf(...sides) {
  const nodes = [{ name: "all", parent: -1, own: sides.map(() => 0), below: new Map() }];
  sides.forEach((stacks, side) => {
    for (const [stack, count] of Object.entries(stacks)) {
      let here = nodes[0];
      for (const name of stack.split(";")) {
        if (!here.below.has(name)) {
          here.below.set(name, { name, own: sides.map(() => 0), below: new Map() });
        }
        here = here.below.get(name);
      }
      here.own[side] += count;
    }
  });
  const order = [];
  const walk = (node, parent) => {
    const index = order.push({ ...node, parent }) - 1;
    for (const child of node.below.values()) walk(child, index);
  };
  walk(nodes[0], -1);
  const names = [...new Set(order.map((node) => node.name))];
  return {
    names: namesOf(names), parent: Int32Array.from(order, (node) => node.parent), q: null,
    name: Int32Array.from(order, (node) => names.indexOf(node.name)),
    columns: sides.map((_, side) => Float64Array.from(order, (node) => node.own[side])),
  };
}

const drawn = (frames) => Array.from({ length: frames.count }, (_, i) => `${frames.names.get(frames.name[i])} ${frames.total[i]}`);
const plain = (tree) => layout(tree, tree.columns[0]);

function packed({ names, up, name, own }) {
  const out = [0x4b, 0x50, 0x54, 0x31];
  const varint = (value) => {
    for (; value > 127; value = Math.floor(value / 128)) out.push((value % 128) | 128);
    out.push(value);
  };
  varint(names.length);
  for (const text of names) {
    const bytes = new TextEncoder().encode(text);
    varint(bytes.length);
    out.push(...bytes);
  }
  varint(up.length);
  for (const column of [up, name, own]) column.forEach(varint);
  return Uint8Array.from(out);
}

const SMALL = { names: ["all", "ä<img src=x onerror=alert(1)>"], up: [0, 0, 1], name: [0, 1, 1], own: [0, 5, 2 ** 40] };

test("a packed tree is unpacked, numbers beyond 32 bits with it", () => {
  const tree = unpack(packed(SMALL));
  assert.deepEqual([...tree.parent], [-1, 0, 0]);
  assert.deepEqual([...tree.columns[0]], [0, 5, 2 ** 40]);
  assert.equal(tree.names.get(1), "ä<img src=x onerror=alert(1)>");
});

test("a damaged tree is refused, wherever it is cut", () => {
  const whole = packed(SMALL);
  for (let end = 0; end < whole.length; end++) assert.throws(() => unpack(whole.subarray(0, end)), TreeDamaged, `cut at ${end}`);
  assert.throws(() => unpack(Uint8Array.from([...whole, 0])), TreeDamaged);
  assert.throws(() => unpack(packed({ ...SMALL, up: [0, 1, 1] })), TreeDamaged);
  assert.throws(() => unpack(packed({ ...SMALL, name: [0, 1, 2] })), TreeDamaged);
});

test("names cannot hide or reorder what stands beside them", () => {
  assert.equal(unpack(packed({ ...SMALL, names: ["all", "a\u202eb\u0000c"] })).names.get(1), "a\ufffdb\ufffdc");
});

test("siblings stand widest first, and frames without samples are left out", () => {
  const frames = plain(treeOf({ "a;b": 1, "c;d": 5, "c;e": 7, c: 2, f: 0 }));
  assert.deepEqual(drawn(frames), ["all 15", "c 14", "e 7", "d 5", "a 1", "b 1"]);
  assert.deepEqual([...frames.x], [0, 0, 0, 7, 14, 14]);
  assert.deepEqual([...frames.end], [6, 4, 3, 4, 6, 6]);
  assert.deepEqual([...frames.depth], [0, 1, 2, 2, 1, 2]);
});

test("a stack of a hundred thousand frames is laid out without recursion", () => {
  const count = 100_000;
  const parent = Int32Array.from({ length: count }, (_, i) => i - 1);
  const own = new Float64Array(count);
  own[count - 1] = 3;
  const frames = layout({ names: namesOf(["f"]), parent, name: new Int32Array(count) }, own);
  assert.equal(frames.deepest, count - 1);
  assert.equal(frames.total[0], 3);
});

test("an empty profile has a root and no width", () => {
  assert.deepEqual(drawn(plain(treeOf({}))), ["all 0"]);
});

test("a place finds its frame, a path its way back", () => {
  const frames = plain(treeOf({ "a;b": 4, "a;c": 2, d: 1 }));
  assert.equal(frameAt(frames, 4.5, 2), 3);
  assert.equal(frameAt(frames, 6.5, 2), -1);
  assert.deepEqual(pathTo(frames, 3), ["a", "c"]);
  assert.equal(follow(frames, ["a", "c"]), 3);
  assert.equal(follow(frames, ["a", "nowhere"]), 1);
  assert.equal(nextSibling(frames, 1), 4);
  assert.equal(previousSibling(frames, 4), 1);
  assert.equal(nextSibling(frames, 0), -1);
});

test("idle CPUs are left out, interrupts they take are not", () => {
  const tree = treeOf({ "start;do_idle;halt": 90, "start;do_idle;sysvec_timer;tick": 4, work: 6 });
  assert.equal(plain(withoutIdle(tree)).total[0], 10);
  assert.equal(plain(tree).total[0], 100);
});

test("a search counts nested matches once", () => {
  const frames = plain(treeOf({ "lock;x;lock": 3, "y;lock": 2, z: 5 }));
  assert.deepEqual(matched(frames, matching(frames.names, " LOCK ")), { found: 3, share: 0.5 });
  assert.deepEqual(matched(frames, matching(frames.names, "")), { found: 0, share: 0 });
});

test("callers of a symbol stand below it, with all it calls counted to it", () => {
  const tree = treeOf({ "a;lock": 3, "b;a;lock;slow": 2, "b;lock;a;lock": 1, other: 9 });
  const frames = plain(inverted(tree, "lock"));
  assert.deepEqual(drawn(frames), ["lock 6", "lock 6", "a 5", "b 2", "b 1"]);
});

test("callers of every symbol begin with what samples were taken in", () => {
  const frames = plain(inverted(treeOf({ "a;x": 3, "b;x": 2, a: 1 }), ""));
  assert.deepEqual(drawn(frames), ["all 6", "x 5", "a 3", "b 2", "a 1"]);
});

test("what a symbol calls stands below it, from all its callers together", () => {
  const tree = treeOf({ "a;lock;spin": 3, "b;a;lock;slow;lock": 2, "b;lock": 1, other: 9 });
  assert.deepEqual(drawn(plain(calledBy(tree, "lock"))), ["lock 6", "lock 6", "spin 3", "slow 2", "lock 2"]);
  assert.deepEqual(drawn(plain(calledBy(tree, "LOCK"))), ["LOCK 0"]);
});

const sandwich = (tree, more = {}) => new Model(tree, { search: "", callers: "", at: [], ...more, around: "lock" }, { base: "base", candidate: "p" });

test("a sandwich has a symbol in the middle, its callers above and what it calls below", () => {
  const { frames } = sandwich(treeOf({ "a;lock;spin": 3, "b;a;lock;slow": 2, "b;lock": 1, other: 9 }));
  const placed = Array.from({ length: frames.count }, (_, i) => `${frames.names.get(frames.name[i])} ${frames.total[i]} in row ${frames.depth[i]}`);
  assert.deepEqual(placed, [
    "lock 6 in row 0", "spin 3 in row 1", "slow 2 in row 1",
    "lock 6 in row 0", "a 5 in row -1", "b 2 in row -2", "b 1 in row -1",
  ]);
  assert.deepEqual([frames.callers, frames.rise, frames.deepest], [3, 2, 1]);
  assert.equal(frames.names.get(frames.name[frameAt(frames, 1, -2)]), "b");
  assert.equal(frames.names.get(frames.name[frameAt(frames, 4, 1)]), "slow");
  for (let i = 0; i < frames.count; i++) assert.equal(follow(frames, pathTo(frames, i)), i === frames.callers ? 0 : i);
});

test("a sandwich of a symbol that nothing calls, that calls nothing, or that is not there has what there is", () => {
  assert.deepEqual(drawn(sandwich(treeOf({ "lock;spin": 3 })).frames), ["lock 3", "spin 3", "lock 3"]);
  assert.deepEqual(drawn(sandwich(treeOf({ "a;lock": 3 })).frames), ["lock 3", "lock 3", "a 3"]);
  assert.deepEqual(drawn(sandwich(treeOf({ a: 3 })).frames), ["lock 0"]);
});

test("both halves of a sandwich of a difference compare shares of all samples, as certain as the server says", () => {
  const tree = treeOf({ "a;lock;spin": 6, rest: 4 }, { "a;lock;spin": 1, rest: 9 });
  const here = sandwich(tree);
  const say = (model) => Array.from({ length: model.frames.count }, (_, i) => model.say(i).replaceAll("\u00a0", " "));
  assert.equal(say(here)[1], "spin: base 60.00 %, p 10.00 %, × 0.17, certainty not known");
  assert.equal(say(here)[3], "a: base 60.00 %, p 10.00 %, × 0.17, certainty not known");
  const told = ["lock;spin", "lock;a"].map((stack) => ({ ...treeOf({ [stack]: 6 }, { [stack]: 1 }), q: Float64Array.of(NaN, 1, 0.01) }));
  const sure = new Model(tree, here.state, here.labels, told);
  assert.match(say(sure)[1], /spin: base 60.00 %, p 10.00 %, × 0.17, certain/);
  assert.match(say(sure)[3], /a: base 60.00 %, p 10.00 %, × 0.17, certain/);
});

test("a difference keeps what is on one side only, or folds it into its caller", () => {
  const tree = treeOf({ "a;gone": 50, "a;b": 50 }, { "a;b": 75, "a;new": 25 });
  const state = { at: [], search: "", callers: "" };
  const kept = new Model(tree, state, {});
  assert.deepEqual(drawn(kept.frames), ["all 1", "a 1", "b 0.625", "gone 0.25", "new 0.125"]);
  assert.equal(kept.oneSided(3), true);
  const folded = new Model(tree, { ...state, common: true }, {});
  assert.deepEqual(drawn(folded.frames), ["all 1", "a 1", "b 0.625"]);
});

test("a difference is of shares, or of samples where asked", () => {
  const tree = { ...treeOf({ a: 10, b: 10 }, { a: 40, b: 10 }), q: Float64Array.from([1, 0.01, 0.5]) };
  const shares = new Model(tree, { search: "", callers: "" }, { base: "base", candidate: "p" });
  assert.equal(shares.say(1).replaceAll("\u00a0", " "), "a: base 50.00 %, p 80.00 %, × 1.60, certain (q 0.010)");
  assert.equal(shares.text(1), "▲ a");
  const counts = new Model(tree, { search: "", callers: "", counts: true }, { base: "base", candidate: "p" });
  assert.match(counts.say(2), /10 samples, p 10 samples, ×.1\.00, may be chance/);
  assert.equal(counts.text(2), "b");
  const boots = new Model({ ...tree, boots: [1, 4], qSamples: Float64Array.from([1, 1, 0.01]) }, { search: "", callers: "", counts: true }, {});
  assert.match(boots.say(1), /10 samples, .* 10 samples, ×.1\.00, may be chance/);
  assert.equal(boots.text(2), "▼ b");
});

test("colour goes by the logarithm: twice and half are equally far", () => {
  assert.equal(step(1, 2), -step(2, 1));
  assert.deepEqual([step(1, 1), step(1, 1000), step(0, 1), step(1, 0)], [0, 4, 4, -4]);
});

test("a difference whose columns do not fit is refused", () => {
  const told = { names: ["all"], parent: [-1], name: [0], base: [1], candidate: [1], q: [null] };
  assert.ok(Number.isNaN(readDifference(told).q[0]));
  for (const key of ["name", "base", "q"]) assert.throws(() => readDifference({ ...told, [key]: [] }), TreeDamaged);
  assert.throws(() => readDifference({ ...told, parent: [0] }), TreeDamaged);
});

test("an address keeps a view, whatever symbols are called", () => {
  const state = { at: ["a/b#c?d", "%", "<img src=x>"], search: "x&y=z", callers: "*", around: "<b>&", icicle: true, idle: true, counts: false, common: true };
  const address = writeState(new URL("http://lab/profile/?variant=p"), state);
  assert.deepEqual(readState(new URL(address.href)), state);
  assert.equal(address.searchParams.get("variant"), "p");
  assert.deepEqual(readState(new URL("http://lab/#at=%E0%A4%A")).at, []);
});

test("a million frames are drawn by visiting only those that are seen", () => {
  const wide = 1000;
  const tree = { names: namesOf(["all", "f"]), parent: new Int32Array(wide * wide + wide + 1), name: null };
  tree.parent[0] = -1;
  const own = new Float64Array(tree.parent.length);
  for (let i = 0, at = 1; i < wide; i++) {
    const above = at++;
    for (let k = 0; k < wide; k++) {
      tree.parent[at] = above;
      own[at++] = 1;
    }
  }
  tree.name = new Int32Array(own.length).fill(1);
  const frames = layout(tree, own);
  let filled = 0;
  const context = { fillRect: () => filled++, measureText: () => ({ width: 60 }), fillText() {}, strokeRect() {}, setLineDash() {} };
  const scene = {
    range: () => [0, frames.total[0]], width: 1200, height: 400, top: 0, rows: 3, rootsOnTop: true, focus: -1,
    style: () => "red", text: () => "f", edge: () => false,
  };
  paint(context, frames, scene);
  assert.equal(filled, 1 + 1 + wide + wide);
});

test("a difference's tree of callers is the server's once it has come", () => {
  const tree = treeOf({ "a;lock": 6, "b;lock": 4 }, { "a;lock": 1, "b;lock": 9 });
  const callers = { ...treeOf({ "lock;a": 6, "lock;b": 4 }, { "lock;a": 1, "lock;b": 9 }), q: Float64Array.of(NaN, 1, 0.01, 0.2) };
  const state = { ...readState(new URL("http://lab/?callers=lock")) };
  const here = new Model(tree, state, { base: "base", candidate: "p" });
  assert.match(here.say(2), /certainty not known/);
  const told = new Model(tree, state, { base: "base", candidate: "p" }, [callers]);
  const said = Array.from({ length: told.frames.count }, (_, i) => told.say(i));
  assert.ok(said.some((line) => /^a: base 60\.00.*certain \(q 0\.010\)/.test(line)), said.join("\n"));
});

test("of waits times are compared until shares are asked for, and the address says so", () => {
  const state = readState(new URL("http://lab/"), "ns");
  assert.equal(state.counts, true);
  assert.equal(writeState(new URL("http://lab/"), state).search, "");
  const shares = writeState(new URL("http://lab/"), { ...state, counts: false });
  assert.equal(shares.search, "?scale=shares");
  assert.equal(readState(shares, "ns").counts, false);
  assert.equal(new Model(treeOf({ "a": 4_200_000 }), state, {}).say(1), "a: 100.00\u00a0%, 4.2\u00a0ms, 100.00\u00a0% in itself");
});

test("an exact profile leaves interrupts out until they are asked for, and says instructions", () => {
  const tree = treeOf({ "main;open": 60, "main": 40, "[interrupts];tick": 900 });
  const state = readState(new URL("http://lab/"), "instructions");
  assert.equal(new Model(tree, state, {}).say(1), "main: 100.00\u00a0%, 100 instructions, 40.00\u00a0% in itself");
  assert.equal(new Model(tree, { ...state, idle: true }, {}).frames.total[0], 1000);
});

test("a search in a difference dims what does not match, in a colour of neither side", () => {
  const tree = { ...treeOf({ "open": 60, "close": 40 }) };
  tree.columns = [tree.columns[0], tree.columns[0]];
  const model = new Model(tree, { ...readState(new URL("http://lab/?search=open")) }, { base: "a", candidate: "b" });
  const colours = { faded: "faded", dimmed: "dimmed", match: "match", diverging: [[], [], []].map(() => Array(9).fill("side")) };
  const styles = Object.fromEntries([1, 2].map((i) => [model.name(i), model.style(i, colours, 0)]));
  assert.deepEqual(styles, { open: "side", close: "dimmed" });
});
