#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Pretends to be Kconfig: keeps what its own table knows and whose needs are met.
# Usage: conf.sh SRCTREE TARGET < .config > .config
echo "# Linux/x86 6.1.7 Kernel Configuration"
case $2 in
tinyconfig) exit ;;
defconfig) echo "CONFIG_BLOCK=y"; exit ;;
esac
grep -q 'config BROKEN_KCONFIG' "$1/Kconfig" && { echo "Kconfig:1: syntax error: broken" >&2; exit 1; }
# A copy of this tree may know more symbols: those of the lab's own fragments, for one.
awk -F= -v more="$(cat "$1/scripts/kconfig/known" 2>/dev/null)" '
    /^CONFIG_/ { value[substr($1, 8)] = $2 }
    /^# CONFIG_.* is not set/ { split($0, word, " "); delete value[substr(word[2], 8)] }
    END {
        needs["INODES"] = "BLOCK"; needs["FAST_INODES"] = "INODES EXPERT"; needs["DUMMY"] = "MODULES"
        if (!("HZ" in value)) value["HZ"] = 250
        known = "EXPERT MODULES BLOCK INODES FAST_INODES DUMMY HZ " more
        count = split(known, symbol, " ")
        for (i = 1; i <= count; i++) {
            name = symbol[i]; met = name in value
            split(needs[name], need, " ")
            for (n in need) if (!(need[n] in value)) met = 0
            if (!met) delete value[name]
            if (met) print "CONFIG_" name "=" value[name]; else print "# CONFIG_" name " is not set"
        }
    }'
