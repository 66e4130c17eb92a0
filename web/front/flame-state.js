// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of a view that its address keeps. Short ones are in the query, which the server may read; the zoomed frame's
// names are in the fragment, whose length no server limits.

const FLAGS = { icicle: ["view", "icicle"], idle: ["idle", "shown"], counts: ["scale", "samples"], common: ["sides", "both"] };
// For waits and instructions, amounts are compared unless shares are requested.
const AMOUNTS = { ...FLAGS, counts: ["scale", "shares"] };
// around: the symbol whose callers and callees the picture and the server's tables show.
const TEXTS = ["search", "callers", "around"];

// unit: of the profile's weights.
export function readState(address, unit = "samples") {
  const amounts = unit !== "samples";
  const query = address.searchParams;
  const state = { at: [] };
  for (const [name, [key, value]] of Object.entries(amounts ? AMOUNTS : FLAGS)) state[name] = query.get(key) === value;
  if (amounts) Object.assign(state, { unit, counts: !state.counts });
  for (const name of TEXTS) state[name] = query.get(name) ?? "";
  const kept = address.hash.match(/^#at=(.*)$/);
  if (kept) {
    try {
      state.at = kept[1].split("/").map(decodeURIComponent);
    } catch {
      state.at = [];
    }
  }
  return state;
}

export function writeState(address, state) {
  const query = address.searchParams;
  const amounts = (state.unit ?? "samples") !== "samples";
  for (const [name, [key, value]] of Object.entries(amounts ? AMOUNTS : FLAGS)) {
    if (state[name] !== (amounts && name === "counts")) query.set(key, value);
    else query.delete(key);
  }
  for (const name of TEXTS) {
    if (state[name]) query.set(name, state[name]);
    else query.delete(name);
  }
  // encodeURIComponent leaves no slash in a name, nor what ends a fragment.
  address.hash = state.at.length ? `at=${state.at.map(encodeURIComponent).join("/")}` : "";
  return address;
}
