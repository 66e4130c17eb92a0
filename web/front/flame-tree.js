// SPDX-License-Identifier: GPL-2.0-or-later
// A profile in the browser: the packed form of lab/profiles/analysis/frame_tree.py, unpacked into typed arrays.
//
// A tree is {names, parent, name, columns, q}: nodes in preorder, node 0 the root, parent[i] < i. Each column counts
// the samples whose innermost frame is the node: one column for a profile, two (base, candidate) for a difference.
// q is null or one value per node; a difference also has qSamples, and boots: the number of boots counted on each side. names.get(i) is text to show; it must never become markup.

export class TreeDamaged extends Error {}

const MAGIC = [0x4b, 0x50, 0x54, 0x31];
// Characters that would hide or reorder their neighbours: controls, zero-width characters, changes of direction.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export const shown = (text) => text.replace(UNSEEN, "\ufffd");

export function namesOf(list) {
  const own = list.map((name) => shown(String(name)));
  return { length: own.length, get: (index) => own[index] };
}

// Names are decoded when first asked for: of a million nodes few are ever drawn.
function packedNames(bytes, starts, count) {
  const decoder = new TextDecoder();
  const known = new Array(count);
  return {
    length: count,
    get: (index) => (known[index] ??= shown(decoder.decode(bytes.subarray(starts[2 * index], starts[2 * index + 1])))),
  };
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    let byte = this.bytes[this.at++];
    if (byte < 128) return byte;
    let value = 0;
    let unit = 1;
    for (let length = 0; length < 8; length++) {
      if (byte === undefined) break;
      value += (byte & 127) * unit;
      if (byte < 128) return value;
      unit *= 128;
      byte = this.bytes[this.at++];
    }
    throw new TreeDamaged("a number in it has no end");
  }
}

function readNames(reader) {
  const count = reader.number();
  if (count > reader.bytes.length) throw new TreeDamaged("it has fewer names than it says");
  const starts = new Int32Array(2 * count);
  for (let i = 0; i < count; i++) {
    const length = reader.number();
    starts[2 * i] = reader.at;
    reader.at += length;
    starts[2 * i + 1] = reader.at;
  }
  if (reader.at > reader.bytes.length) throw new TreeDamaged("it ends within a name");
  return packedNames(reader.bytes, starts, count);
}

export function unpack(bytes) {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) throw new TreeDamaged("it is not a packed tree");
  const reader = new Reader(bytes);
  reader.at = MAGIC.length;
  const names = readNames(reader);
  const count = reader.number();
  if (count < 1 || count > bytes.length) throw new TreeDamaged("it has fewer frames than it says");
  const parent = new Int32Array(count);
  const name = new Int32Array(count);
  const own = new Float64Array(count);
  const open = [];
  let depth = -1;
  for (let i = 0; i < count; i++) {
    depth += 1 - reader.number();
    if (depth < 0 || (depth === 0) !== (i === 0)) throw new TreeDamaged("a frame in it has no caller");
    parent[i] = depth ? open[depth - 1] : -1;
    open[depth] = i;
  }
  for (let i = 0; i < count; i++) {
    name[i] = reader.number();
    if (name[i] >= names.length) throw new TreeDamaged("a frame in it has no name");
  }
  for (let i = 0; i < count; i++) own[i] = reader.number();
  if (reader.at !== bytes.length) throw new TreeDamaged("more follows where it should end");
  return { names, parent, name, columns: [own], q: null };
}

export async function fetchBytes(address) {
  const response = await fetch(address);
  if (!response.ok) {
    const type = response.headers.get("Content-Type") ?? "";
    const why = type.startsWith("text/plain") ? shown((await response.text()).slice(0, 300)) : response.statusText;
    throw new TreeDamaged(`${response.status} ${why}`);
  }
  return response.body;
}

export async function fetchTree(address) {
  const body = await fetchBytes(address);
  let whole;
  try {
    whole = await new Response(body.pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  } catch {
    throw new TreeDamaged("it does not decompress");
  }
  return unpack(new Uint8Array(whole));
}
