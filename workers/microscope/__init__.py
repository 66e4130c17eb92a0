# SPDX-License-Identifier: GPL-2.0-or-later
"""Exact profiles from an emulated boot: a plugin of QEMU that keeps the call tree, and the reader of what it wrote."""
