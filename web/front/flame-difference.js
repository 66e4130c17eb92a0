// SPDX-License-Identifier: GPL-2.0-or-later
// A difference of two variants as lab/profiles/exports/difference.py tells it: columns of equal length, frames in preorder.
import { fetchBytes, namesOf, TreeDamaged } from "./flame-tree.js";

export async function fetchDifference(address) {
  const told = await new Response(await fetchBytes(address)).json();
  return readDifference(told);
}

export function readDifference(told) {
  const { names, parent, name, base, candidate, q, q_samples: qSamples = q } = told;
  const count = parent.length;
  if (!count || [name, base, candidate, q, qSamples].some((column) => column.length !== count)) {
    throw new TreeDamaged("its columns differ in length");
  }
  for (let i = 0; i < count; i++) {
    if (parent[i] >= i || (parent[i] < 0) !== (i === 0)) throw new TreeDamaged("a frame in it has no caller");
    if (!(name[i] < names.length)) throw new TreeDamaged("a frame in it has no name");
  }
  return {
    names: namesOf(names), parent: Int32Array.from(parent), name: Int32Array.from(name),
    columns: [Float64Array.from(base), Float64Array.from(candidate)],
    q: certainties(q), qSamples: certainties(qSamples), doubt: String(told.doubt ?? ""),
    boots: (told.sides ?? []).length === 2 ? told.sides.map((side) => side.boots || 1) : [1, 1],
  };
}

// Null: the frame has too few samples for a test.
const certainties = (column) => Float64Array.from(column, (value) => value ?? NaN);
