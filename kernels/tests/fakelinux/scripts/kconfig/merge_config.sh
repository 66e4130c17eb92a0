#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Pretends to be the kernel's script of this name. Usage: merge_config.sh -m -O DIR BASE FRAGMENT...
[ "$1 $2" = "-m -O" ] || { echo "usage" >&2; exit 1; }
out=$3; shift 3
cat "$@" > "$out/.config.merged" && mv "$out/.config.merged" "$out/.config"
