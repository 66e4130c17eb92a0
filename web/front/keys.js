// SPDX-License-Identifier: GPL-2.0-or-later
// Keys: ? lists them, / searches, g and a letter opens a page. The pages are the links that carry data-key.
const WAIT_MS = 1500;
const dialog = document.getElementById("keys");
const enabled = document.getElementById("keys-on");
let afterG = 0;

enabled.checked = setting() !== "off";
enabled.addEventListener("change", () => setting(enabled.checked ? "on" : "off"));
for (const button of document.querySelectorAll("button[data-shows=keys]")) {
  button.hidden = false;
  button.addEventListener("click", () => dialog.showModal());
}
document.addEventListener("keydown", (event) => {
  if (!enabled.checked || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Shift" || dialog.open || takesText(event.target)) return;
  if (pressed(event.key)) event.preventDefault();
});

// A browser may forbid storage; the keys then work, and cannot be turned off for longer than this page.
function setting(value) {
  try {
    if (value) localStorage.setItem("keys", value);
    return localStorage.getItem("keys");
  } catch {
    return null;
  }
}

function takesText(element) {
  const typed = element.closest("input, textarea, select, [contenteditable]");
  return Boolean(typed) && !["checkbox", "radio", "button", "submit"].includes(typed.type);
}

// Returns whether the key meant something.
function pressed(key) {
  const second = Date.now() - afterG < WAIT_MS;
  afterG = key === "g" && !second ? Date.now() : 0;
  if (second) return open(key);
  if (key === "?") dialog.showModal();
  else if (key === "/") search();
  else return key === "g";
  return true;
}

function open(key) {
  const link = [...document.querySelectorAll("a[data-key]")].find((one) => one.dataset.key === key);
  link?.click();
  return Boolean(link);
}

function search() {
  const field = document.querySelector("input[type=search]");
  if (field) field.focus();
  else location.assign(`${document.querySelector("a[data-key=e]").href}#search`);
}

if (location.hash === "#search") search();
