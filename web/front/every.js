// SPDX-License-Identifier: GPL-2.0-or-later
// What every page has: buttons that copy, and keys.
import "./copy.js";
import "./keys.js";
