// SPDX-License-Identifier: GPL-2.0-or-later
// The description of a point of a trend, and the stretch of the trend that an address keeps.
import { shown } from "./flame-tree.js";
import { grouped } from "./numbers.js";

const LONGEST = 200;

function value(data, number) {
  const text = grouped(number, { maximumSignificantDigits: 5 });
  return data.unit ? `${text}\u00a0${data.unit}` : text;
}

export function told(data, at) {
  const step = data.steps.find((one) => one.at === at);
  const parts = [
    `${data.commits[at]} ${shown(data.subjects[at]).slice(0, LONGEST)}`,
    shown(data.authors[at]).slice(0, LONGEST),
    `${value(data, data.median[at])} (${value(data, data.low[at])} to ${value(data, data.high[at])})`,
    `${data.boots[at]} ${data.boots[at] === 1 ? "boot" : "boots"}`,
  ];
  if (step) parts.push(step.title);
  for (const note of data.notes ?? []) {
    if (note.at === at) parts.push(`note of ${shown(note.author)}: ${shown(note.text).slice(0, LONGEST)}`);
  }
  return parts.filter(Boolean).join(" · ");
}

// Labels of an axis's marks; increment: from one to the next, which the default of three digits may hide.
export function marks(values, increment, unit) {
  const maximumFractionDigits = Math.min(20, Math.max(0, 1 - Math.floor(Math.log10(increment))));
  return values.map((value) => `${grouped(value, { maximumFractionDigits })}${unit ? ` ${unit}` : ""}`);
}

export function range(address, data) {
  const kept = ["from", "to"].map((name) => data.commits.indexOf(address.searchParams.get(name)));
  return kept[0] >= 0 && kept[1] > kept[0] ? { min: kept[0], max: kept[1] } : null;
}

export function address(url, data, min, max) {
  const ends = { from: Math.max(0, Math.ceil(min)), to: Math.min(data.commits.length - 1, Math.floor(max)) };
  const whole = ends.from <= 0 && ends.to >= data.commits.length - 1;
  for (const [name, at] of Object.entries(ends)) {
    if (whole) url.searchParams.delete(name);
    else url.searchParams.set(name, data.commits[at]);
  }
  return url;
}
