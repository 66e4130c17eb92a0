// SPDX-License-Identifier: GPL-2.0-or-later
// A button that copies a text, where the browser can; the text can be selected by hand all the same.
for (const button of document.querySelectorAll("button[data-copies]")) {
  const source = document.getElementById(button.dataset.copies);
  const said = document.getElementById(button.dataset.says);
  if (!source || !said) continue;
  button.hidden = false;
  button.addEventListener("click", async () => {
    said.textContent = (await copied(source)) ? "Copied." : "Selected: copy it with your keyboard.";
  });
}

// Browsers give the clipboard to secure pages alone, and may be told not to.
async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.value);
    return true;
  } catch {
    source.focus();
    source.select();
    return false;
  }
}
