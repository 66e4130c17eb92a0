// SPDX-License-Identifier: GPL-2.0-or-later
// A growing log. Run by web/tests/test_front.py.
import assert from "node:assert/strict";
import { test } from "node:test";

class Headers extends Map {}

// What tail.js uses of a page with one log.
function page(answers) {
  const shown = [], state = { textContent: "" }, asked = [];
  const code = { get lastChild() { return null; }, get textContent() { return shown.join(""); }, childNodes: [], append: (node) => shown.push(node) };
  const box = {
    dataset: { follow: "/log", state: "log-state", offset: "3" }, querySelector: () => code, removeAttribute() {}, dispatchEvent() {},
  };
  globalThis.document = { querySelectorAll: () => [box], getElementById: () => state, createTextNode: (text) => text, hidden: false };
  globalThis.fetch = async (address) => { asked.push(address); return answers.shift(); };
  globalThis.CustomEvent = class {};
  return { shown, state, asked };
}

function answer(text, headers) {
  return { ok: true, headers: new Headers(Object.entries(headers)), text: async () => text };
}

async function follow(answers) {
  const seen = page(answers);
  const timers = [];
  globalThis.setTimeout = (look) => timers.push(look);
  await import(`../tail.js?${Math.random()}`);
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
  return { ...seen, timers };
}

test("what comes is appended, and the next part is asked for", async () => {
  const seen = await follow([answer("line\n", { "Log-Offset": "8" })]);
  assert.deepEqual([seen.shown, seen.asked, seen.timers.length], [["line\n"], ["/log?offset=3"], 1]);
});

test("the page of a sign-in is not shown as a part of the log, and is not asked for again", async () => {
  const seen = await follow([answer("<!doctype html>Sign in", {})]);
  assert.deepEqual([seen.shown, seen.timers.length], [[], 0]);
  assert.match(seen.state.textContent, /sign in/);
});
