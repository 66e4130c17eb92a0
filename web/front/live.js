// SPDX-License-Identifier: GPL-2.0-or-later
// Live pages: htmx, held to our content security policy (no eval, no injected styles).
import htmx from "htmx.org";

htmx.config.allowEval = false;
htmx.config.allowScriptTags = false;
htmx.config.includeIndicatorStyles = false;
htmx.config.selfRequestsOnly = true;
htmx.config.historyEnabled = false;
// A fragment may swap without a jump: what was open or focused stays so.
const kept = new Set();

document.addEventListener("htmx:beforeSwap", (event) => {
  kept.clear();
  for (const part of event.detail.target.querySelectorAll("details[id][open]")) kept.add(part.id);
});

document.addEventListener("htmx:afterSwap", () => {
  for (const id of kept) document.getElementById(id)?.setAttribute("open", "");
});
