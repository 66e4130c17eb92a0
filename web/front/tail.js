// SPDX-License-Identifier: GPL-2.0-or-later
// A growing log: requests the part after the last known offset, and appends it as text.

const STEP = 1500;
const MOST_WAIT = 30000;
// More than this many characters make a page slow; the download has them all.
const MOST_SHOWN = 2_000_000;

for (const box of document.querySelectorAll("pre[data-follow]")) follow(box);

function follow(box) {
  const code = box.querySelector("code");
  const state = document.getElementById(box.dataset.state);
  let offset = Number(box.dataset.offset);
  let wait = STEP;

  async function look() {
    try {
      const answer = await fetch(`${box.dataset.follow}?offset=${offset}`, { headers: { Accept: "text/plain" } });
      if (!answer.ok) throw new Error(answer.status);
      // After a sign-out this is the page to sign in.
      if (!answer.headers.has("Log-Offset")) return stop();
      const text = await answer.text();
      offset = Number(answer.headers.get("Log-Offset"));
      wait = STEP;
      if (text) append(text);
      if (answer.headers.get("Log-Complete") === "true" && !text) return end();
      if (answer.headers.get("Log-More") === "true") wait = 0;
    } catch {
      wait = Math.min(2 * wait, MOST_WAIT);
    }
    setTimeout(look, document.hidden ? Math.max(wait, 5 * STEP) : wait);
  }

  function append(text) {
    const last = code.lastChild;
    if (last && last.length < 65536) last.appendData(text);
    else code.append(document.createTextNode(text));
    let length = code.textContent.length;
    while (length > MOST_SHOWN && code.childNodes.length > 1) {
      length -= code.firstChild.length;
      code.firstChild.remove();
    }
  }

  function stop() {
    if (state) state.textContent = "It is not followed any more: sign in and reload the page.";
  }

  function end() {
    if (state) state.textContent = "It is complete.";
    box.removeAttribute("data-follow");
    box.dispatchEvent(new CustomEvent("complete", { bubbles: true }));
  }

  look();
}
