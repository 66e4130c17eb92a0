// SPDX-License-Identifier: GPL-2.0-or-later
// The submission form: reports files that are too large before they are sent, and sends no form twice.

const files = document.getElementById("files");

files?.addEventListener("change", () => {
  const most = Number(files.dataset.most);
  const large = [...files.files].find((file) => file.size > most);
  const many = files.files.length > Number(files.dataset.files);
  const wrong = large ? `${large.name} is larger than ${most / 1048576} MiB.` : "";
  files.setCustomValidity(wrong || (many ? `At most ${files.dataset.files} files: pack them into one archive.` : ""));
  files.reportValidity();
});

for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => {
    const said = form.querySelector("[data-busy]");
    if (said) {
      said.dataset.idle ??= said.textContent;
      said.textContent = said.dataset.busy;
    }
    // Disabled only now: the value of a disabled button would not be sent.
    setTimeout(() => {
      for (const button of [...form.elements, ...document.querySelectorAll(`button[form="${form.id}"]`)]) {
        if (button.type === "submit") button.disabled = true;
      }
    });
  });
}

// Enables the buttons again when the reader comes back from the next page, where nothing is being worked on.
addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("button[disabled]")) button.disabled = false;
  for (const said of document.querySelectorAll("[data-idle]")) {
    said.textContent = said.dataset.idle;
    delete said.dataset.idle;
  }
});

document.getElementById("preview")?.focus();
