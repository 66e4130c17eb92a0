// SPDX-License-Identifier: GPL-2.0-or-later
// The words and addresses of trends. Run by web/tests/test_front.py.
import assert from "node:assert/strict";
import { test } from "node:test";
import { address, marks, range, told } from "../trend-words.js";

const DATA = {
  unit: "ns", commits: ["aaa", "bbb", "ccc", "ddd"], subjects: ["one", "<b>two</b>\u202e", "three", "four"],
  authors: ["A", "B", "", "D"], median: [1, 2.25, 3, 4], low: [1, 2, 3, 4], high: [1, 2.5, 3, 4], boots: [1, 5, 5, 5],
  steps: [{ at: 1, verdict: "regression", pending: false, title: "regression of +125 %" }], levels: [1, 3],
};

test("a point tells revision, subject, author, value and the step that begins with it", () => {
  assert.equal(
    told(DATA, 1).replaceAll("\u00a0", " "),
    "bbb <b>two</b>\ufffd · B · 2.25 ns (2 ns to 2.5 ns) · 5 boots · regression of +125 %",
  );
  assert.match(told(DATA, 2), /^ccc three · 3.ns/);
});

test("the marks of an axis differ from one another however near they are", () => {
  assert.deepEqual(marks([0, 0.0001, 0.0002], 0.0001, "s"), ["0 s", "0.0001 s", "0.0002 s"]);
  assert.deepEqual(marks([114.02, 114.0225, 114.025], 0.0025, "ns"), ["114.02 ns", "114.0225 ns", "114.025 ns"]);
  assert.deepEqual(marks([10000, 20000], 10000, ""), ["10\u202f000", "20\u202f000"]);
});

test("an address keeps a stretch, and nothing where all is shown", () => {
  const url = address(new URL("http://lab/trends/x/"), DATA, 0.6, 2.9);
  assert.equal(url.search, "?from=bbb&to=ccc");
  assert.deepEqual(range(url, DATA), { min: 1, max: 2 });
  assert.equal(address(url, DATA, -0.1, 3.2).search, "");
  assert.equal(range(new URL("http://lab/?from=nobody&to=ccc"), DATA), null);
});
