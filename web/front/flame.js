// SPDX-License-Identifier: GPL-2.0-or-later
// The flame graph of a profile or of a difference: loads it, and keeps toolbar, view and address in step.
// Symbols are hostile text: they reach the page only as textContent or as drawn text.
import { palette } from "./flame-colours.js";
import { fetchDifference } from "./flame-difference.js";
import { follow, pathTo } from "./flame-layout.js";
import { Model } from "./flame-model.js";
import { readState, writeState } from "./flame-state.js";
import { fetchTree } from "./flame-tree.js";
import { FlameView } from "./flame-view.js";
import { cut } from "./flame-words.js";

const part = (name) => document.getElementById(`flame-${name}`);
const box = document.getElementById("flame");
// Of recorded waits, weights are nanoseconds.
const UNIT = { cpu: "samples", exact: "instructions", waiting: "cycles" }[box?.dataset.kind || "cpu"] ?? "ns";
const HINT = "Point at a frame to name it; click, or press Enter, to zoom.";

class Page {
  constructor(tree) {
    this.tree = tree;
    this.state = readState(new URL(location.href), UNIT);
    this.labels = { base: box.dataset.base, candidate: box.dataset.variant };
    this.view = new FlameView(box, {
      style: (i) => this.model.style(i, this.colours, this.view.root),
      text: (i) => this.model.text(i),
      edge: (i) => this.model.oneSided(i),
      hovered: (i) => { part("detail").textContent = this.line(i >= 0 ? i : this.view.focus); },
      focused: (i) => {
        part("live").textContent = part("detail").textContent = this.line(i);
        this.lead(i);
      },
      zoomed: (i) => this.keep({ at: pathTo(this.model.frames, i) }),
    });
    this.colours = palette(box);
    this.rebuild();
    this.listen();
    this.askForLines();
  }

  line(i) {
    if (!this.model.frames.total[0]) return HINT;
    const name = this.model.name(i);
    const place = this.lines?.get(name) ?? this.lines?.get(name.split(".")[0]);
    return place ? `${this.model.say(i)} · ${place}` : this.model.say(i);
  }

  // There is nothing to say about the root of the whole graph.
  hint(i) {
    return i > 0 || this.state.around ? this.line(i) : HINT;
  }

  // Fetches the file and line of functions, if there are line tables.
  async askForLines() {
    const response = await fetch(box.dataset.lines);
    if (!response.ok) return;
    this.lines = new Map(Object.entries(await response.json()));
    part("detail").textContent = this.hint(this.view.focus);
  }

  keep(changes) {
    Object.assign(this.state, changes);
    history.replaceState(null, "", writeState(new URL(location.href), this.state));
    // The links to other variants keep the view, but not the zoomed frame: it may not be there.
    for (const link of document.querySelectorAll("a[data-keeps-view]")) {
      const to = new URL(link.href);
      writeState(to, { ...this.state, at: [] });
      link.href = to;
    }
  }

  // Leads to the callers and callees of a frame's symbol, at an address of their own.
  lead(i) {
    const link = part("around");
    link.hidden = i <= 0 || this.model.name(i) === this.state.around;
    if (link.hidden) return;
    const name = this.model.name(i);
    link.href = writeState(new URL(location.href), { ...this.state, around: name, callers: "", search: "", at: [] });
    link.textContent = `Callers and callees of ${cut(name)}`;
  }

  // The certainty of a difference seen from a symbol depends on every boot: the server computes these trees.
  async askForTrees() {
    const { around, callers, idle } = this.state;
    const views = around ? [{ callees: around }, { callers: around }] : callers ? [{ callers }] : [];
    const wanted = box.dataset.diff ? views.map((view) => `${box.dataset.diff}&${new URLSearchParams({ ...view, ...(idle && { idle: 1 }) })}`) : [];
    const asked = wanted.join(" ");
    if (asked === (this.asked ?? "")) return;
    this.asked = asked;
    this.told = null;
    delete box.dataset.told;
    if (!asked) return;
    try {
      const trees = await Promise.all(wanted.map(fetchDifference));
      if (this.asked !== asked) return;
      this.told = trees;
      box.dataset.told = "all";
      this.rebuild();
    } catch (error) {
      part("mode").textContent += ` Significance is unknown: ${error.message}.`;
    }
  }

  rebuild() {
    this.askForTrees();
    this.model = new Model(this.tree, this.state, this.labels, this.told);
    const { frames } = this.model;
    part("empty").hidden = frames.total[0] > 0;
    this.view.show(frames, this.state.icicle || Boolean(this.state.callers || this.state.around), this.colours);
    const root = follow(frames, this.state.at);
    if (root > 0) {
      this.view.focus = root;
      this.view.zoom(root, { instantly: true });
      this.view.setFocus(root);
    } else {
      this.keep({ at: [] });
      this.lead(0);
    }
    part("detail").textContent = this.hint(root);
    this.mark();
  }

  mark() {
    part("share").textContent = this.state.search ? this.model.found() : "";
    for (const button of document.querySelectorAll("button[data-flag]")) {
      button.setAttribute("aria-pressed", String(this.state[button.dataset.flag]));
    }
    part("callers")?.setAttribute("aria-pressed", String(Boolean(this.state.callers)));
    const whose = this.state.callers === "*" ? "every symbol" : this.state.callers;
    part("mode").textContent = this.state.callers ? `Inverted: callers are below ${whose}.` : "";
  }

  // Toggles the callers of the focused frame's symbol, or else of the search, or else of every symbol.
  invert() {
    if (this.state.callers) this.keep({ callers: "", at: [] });
    else {
      const symbol = this.view.focus > 0 ? this.model.name(this.view.focus) : this.state.search || "*";
      this.keep({ callers: symbol, at: [] });
    }
    this.rebuild();
  }

  search(term) {
    this.keep({ search: term.trim() });
    this.model.search(this.state.search);
    this.mark();
    this.view.draw();
  }

  listen() {
    for (const button of document.querySelectorAll("button[data-flag]")) {
      button.addEventListener("click", () => {
        this.keep({ [button.dataset.flag]: !this.state[button.dataset.flag] });
        this.rebuild();
      });
    }
    part("callers")?.addEventListener("click", () => this.invert());
    part("find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.search(part("search").value);
    });
    part("search").addEventListener("search", () => this.search(part("search").value));
    part("reset").addEventListener("click", () => {
      part("search").value = "";
      this.keep({ search: "", callers: "", at: [] });
      this.rebuild();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = this.view.colours = palette(box);
      this.view.draw();
    });
    addEventListener("hashchange", () => {
      this.state = readState(new URL(location.href), UNIT);
      this.rebuild();
    });
  }
}

async function start() {
  try {
    const tree = box.dataset.diff ? await fetchDifference(box.dataset.diff) : await fetchTree(box.dataset.tree);
    part("tools").hidden = false;
    if (tree.doubt) part("doubt").textContent = tree.doubt;
    part("search").value = readState(new URL(location.href), UNIT).search;
    const page = new Page(tree);
    box.dataset.ready = String(page.model.frames.count);
  } catch (error) {
    box.hidden = true;
    part("error").hidden = false;
    part("error").textContent = `This flame graph cannot be shown: ${error.message}.`;
  }
}

if (box) start();
