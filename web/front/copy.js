// SPDX-License-Identifier: GPL-2.0-or-later
// Buttons that copy a text, where the browser can; the text can be selected by hand all the same.
const SHOWN_MS = 4000;
const said = document.createElement("p");
said.className = "hide";
said.setAttribute("role", "status");
const buttons = document.querySelectorAll("button[data-copies]");
if (buttons.length > 0) document.body.append(said);

for (const button of buttons) {
  const source = document.getElementById(button.dataset.copies);
  if (!source) continue;
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    const copied = await copy(source);
    button.textContent = copied ? "Copied" : "Selected";
    said.textContent = copied ? "Copied." : "Selected: copy it with your keyboard.";
    setTimeout(() => { button.textContent = label; }, SHOWN_MS);
  });
}

// Browsers allow the clipboard to secure pages only, and users may forbid it.
async function copy(source) {
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    return true;
  } catch {
    select(source);
    return false;
  }
}

function select(source) {
  if (source.select) {
    source.focus();
    source.select();
    return;
  }
  getSelection().selectAllChildren(source);
}
