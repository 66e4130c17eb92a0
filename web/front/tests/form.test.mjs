// SPDX-License-Identifier: GPL-2.0-or-later
// The submission form. Run by web/tests/test_front.py.
import assert from "node:assert/strict";
import { test } from "node:test";

// What form.js uses of a page with one form.
async function page() {
  const listeners = {}, button = { type: "submit", disabled: false };
  const said = { textContent: "It queues nothing.", dataset: { busy: "Working on it." } };
  const form = { id: "new", elements: [button], querySelector: () => said, addEventListener: (name, act) => { listeners[name] = act; } };
  const found = {
    "form[method=post]": () => [form], 'button[form="new"]': () => [],
    "button[disabled]": () => (button.disabled ? [button] : []), "[data-idle]": () => ("idle" in said.dataset ? [said] : []),
  };
  globalThis.document = { getElementById: () => null, querySelectorAll: (selector) => found[selector]() };
  globalThis.addEventListener = (name, act) => { listeners[name] = act; };
  globalThis.setTimeout = (act) => act();
  await import(`../form.js?${Math.random()}`);
  return { listeners, said, button };
}

test("a reader who comes back finds the form as it was before it was sent", async () => {
  const { listeners, said, button } = await page();
  listeners.submit();
  listeners.submit();
  assert.deepEqual([said.textContent, button.disabled], ["Working on it.", true]);
  listeners.pageshow();
  assert.deepEqual([said.textContent, button.disabled], ["It queues nothing.", false]);
});
