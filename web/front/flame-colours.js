// SPDX-License-Identifier: GPL-2.0-or-later
// Colours of frames. A profile: a symbol has the same shade everywhere. A difference: hue says more or less, depth of
// colour how much, greyness how uncertain. They come from the stylesheet, so that dark and light are decided there.

const SHADES = 5;
// Four times as much, or a quarter: the ends of the scale.
const ENDS = 2;
const STEPS = 4;
export const CERTAIN = 0.05;

export function palette(element) {
  const styles = getComputedStyle(element);
  const value = (name) => styles.getPropertyValue(name).trim();
  const shades = Array.from({ length: SHADES }, (_, index) => value(`--flame-${index}`));
  const [more, less, none, unsure] = ["more", "less", "none", "unsure"].map((name) => rgb(value(`--flame-${name}`)));
  // diverging[certainty][step + STEPS]: from "less" over "none" to "more".
  const diverging = [0, 0.5, 1].map((certainty) => Array.from({ length: 2 * STEPS + 1 }, (_, index) => {
    const step = (index - STEPS) / STEPS;
    const sure = mix(none, step < 0 ? less : more, Math.abs(step) ? 0.25 + 0.75 * Math.abs(step) : 0);
    return css(mix(unsure, sure, 0.22 + 0.78 * certainty));
  }));
  return {
    shades, diverging, match: value("--flame-match"), faded: value("--flame-faded"), dimmed: value("--flame-dimmed"), rest: value("--flame-rest"),
    paper: value("--surface"), ink: value("--flame-ink"), ring: value("--focus"),
  };
}

export function shadesOf(names) {
  const shade = new Int8Array(names.length).fill(-1);
  return (index) => {
    if (shade[index] < 0) {
      const name = names.get(index);
      let sum = 0;
      for (let i = 0; i < Math.min(name.length, 24); i++) sum = (sum * 31 + name.charCodeAt(i)) % 997;
      shade[index] = sum % SHADES;
    }
    return shade[index];
  };
}

// The place on the scale from -STEPS to STEPS, 0 for no change; frames on one side only are at its ends.
export function step(base, candidate) {
  if (base <= 0 && candidate <= 0) return 0;
  if (base <= 0) return STEPS;
  if (candidate <= 0) return -STEPS;
  return Math.max(-STEPS, Math.min(STEPS, Math.round((Math.log2(candidate / base) * STEPS) / ENDS)));
}

export function divergingStyle(colours, base, candidate, q) {
  const certainty = q <= CERTAIN ? 2 : q <= 0.2 ? 1 : 0;
  return colours.diverging[certainty][step(base, candidate) + STEPS];
}

function rgb(hex) {
  const digits = hex.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16) || 0);
}

function mix(one, other, part) {
  return one.map((value, index) => value + (other[index] - value) * part);
}

function css(colour) {
  return `#${colour.map((value) => Math.round(value).toString(16).padStart(2, "0")).join("")}`;
}
