// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers as web/words.py writes them: a thin space between thousands.

export function grouped(number, options) {
  return number.toLocaleString("en-GB", options).replaceAll(",", "\u202f");
}
