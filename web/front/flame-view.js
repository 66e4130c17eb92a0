// SPDX-License-Identifier: GPL-2.0-or-later
// One layout on one canvas: range, scrolling, focus, pointer and keys. What is shown and said comes from its owner.
import { paint, ROW } from "./flame-draw.js";
import { frameAt, nextSibling, previousSibling } from "./flame-layout.js";

const ZOOM_MS = 180;

export class FlameView {
  // box scrolls and has the keyboard's focus; owner: {style(i), text(i), edge(i), hovered(i), focused(i), zoomed(i)}.
  constructor(box, owner) {
    this.box = box;
    this.owner = owner;
    this.canvas = box.querySelector("canvas");
    this.spacer = box.querySelector(".flame-rows");
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.root = this.focus = 0;
    this.hover = -1;
    this.listen();
  }

  show(frames, rootsOnTop, colours) {
    this.frames = frames;
    this.rootsOnTop = rootsOnTop;
    this.colours = colours;
    this.rows = frames.rise + frames.deepest + 1;
    this.root = this.focus = 0;
    this.from = 0;
    this.to = frames.total[0] || 1;
    // The canvas is only as tall as its box: browsers refuse taller ones than 32,767 pixels.
    this.spacer.style.height = `${this.rows * ROW}px`;
    this.measure();
    // The root's end of the picture, or the symbol in the middle.
    this.box.scrollTop = !rootsOnTop ? this.box.scrollHeight : frames.rise ? (frames.rise + 1) * ROW - this.height / 2 : 0;
    this.draw();
  }

  // The visible range of weight in the half of a frame: a symbol's callers and callees are zoomed separately.
  range(index) {
    const { callers, total } = this.frames;
    return (index >= callers) === (this.root >= callers) ? [this.from, this.to] : [0, total[0]];
  }

  row(index) {
    const depth = this.frames.depth[index];
    return this.rootsOnTop ? depth + this.frames.rise : this.rows - 1 - depth;
  }

  measure() {
    const ratio = devicePixelRatio || 1;
    this.width = this.box.clientWidth;
    this.height = this.box.clientHeight;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw() {
    if (!this.frames) return;
    const start = performance.now();
    const { paper, rest, ink, ring } = this.colours;
    const focused = document.activeElement === this.box || this.focus > 0;
    paint(this.context, this.frames, {
      ...this.owner, range: (i) => this.range(i), width: this.width, height: this.height, top: this.box.scrollTop,
      rows: this.rows, rootsOnTop: this.rootsOnTop, focus: focused ? this.focus : -1, paper, rest, ink, ring,
    });
    this.lastDraw = performance.now() - start;
  }

  soon() {
    this.waiting ??= requestAnimationFrame(() => {
      this.waiting = null;
      this.draw();
    });
  }

  zoom(index, { instantly = false } = {}) {
    if ((index >= this.frames.callers) !== (this.root >= this.frames.callers)) [this.from, this.to] = [0, this.frames.total[0]];
    this.root = index;
    const from = this.frames.x[index];
    const to = from + (this.frames.total[index] || 1);
    cancelAnimationFrame(this.flight);
    if (instantly || this.still.matches) {
      [this.from, this.to] = [from, to];
      this.draw();
    } else this.fly(from, to);
    this.owner.zoomed(index);
  }

  fly(from, to) {
    const [a, b] = [this.from, this.to];
    let start = null;
    const next = (now) => {
      start ??= now;
      const t = Math.min(1, (now - start) / ZOOM_MS);
      const eased = 1 - (1 - t) ** 3;
      this.from = a + (from - a) * eased;
      this.to = b + (to - b) * eased;
      this.draw();
      if (t < 1) this.flight = requestAnimationFrame(next);
    };
    this.flight = requestAnimationFrame(next);
  }

  setFocus(index) {
    if (index < 0) return;
    this.focus = index;
    const y = this.row(index) * ROW;
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    else if (y + ROW > this.box.scrollTop + this.height) this.box.scrollTop = y + ROW - this.height;
    this.soon();
    this.owner.focused(index);
  }

  wide(index) {
    if (index < 0) return false;
    const [from, to] = this.range(index);
    return (this.frames.total[index] / (to - from)) * this.width >= 1;
  }

  at(event) {
    const edge = this.canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - edge.top + this.box.scrollTop) / ROW);
    const depth = this.rootsOnTop ? row - this.frames.rise : this.rows - 1 - row;
    const [from, to] = this.range(depth < 0 ? this.frames.callers : 0);
    const place = from + ((event.clientX - edge.left) / this.width) * (to - from);
    const found = frameAt(this.frames, place, depth);
    return this.wide(found) ? found : -1;
  }

  step(key) {
    const { frames } = this;
    // From the symbol in the middle the way up leads to its callers.
    const focus = this.focus === 0 && frames.rise && key === "ArrowUp" ? frames.callers : this.focus;
    const inwards = this.rootsOnTop && focus < frames.callers ? "ArrowDown" : "ArrowUp";
    if (key === "ArrowLeft") return previousSibling(frames, focus);
    if (key === "ArrowRight") return nextSibling(frames, focus);
    if (key === "Home") return this.root;
    if (key === inwards) return focus + 1 < frames.end[focus] ? focus + 1 : -1;
    return frames.parent[focus] === frames.callers ? 0 : frames.parent[focus];
  }

  keyed(event) {
    if (!this.frames || event.ctrlKey || event.altKey || event.metaKey) return;
    if (["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home"].includes(event.key)) {
      const found = this.step(event.key);
      // Frames under a pixel are not drawn: they are reached by zooming in.
      if (this.wide(found)) this.setFocus(found);
    } else if (event.key === "Enter" || event.key === " ") this.zoom(this.focus);
    else if (event.key === "Escape") {
      this.zoom(0);
      this.setFocus(0);
    } else return;
    event.preventDefault();
  }

  listen() {
    this.box.addEventListener("keydown", (event) => this.keyed(event));
    this.box.addEventListener("scroll", () => this.soon(), { passive: true });
    this.box.addEventListener("focus", () => this.soon());
    this.box.addEventListener("blur", () => this.soon());
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.frames) return;
      this.hover = this.at(event);
      this.canvas.classList.toggle("over", this.hover >= 0);
      this.owner.hovered(this.hover);
    });
    this.canvas.addEventListener("pointerleave", () => this.owner.hovered(-1));
    this.canvas.addEventListener("click", (event) => {
      const found = this.frames ? this.at(event) : -1;
      if (found < 0) return;
      this.setFocus(found);
      this.zoom(found);
    });
    new ResizeObserver(() => {
      this.measure();
      this.soon();
    }).observe(this.box);
  }
}
