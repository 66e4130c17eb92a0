# SPDX-License-Identifier: GPL-2.0-or-later
# read-returns.sh FILE: what count-returns.sh has counted.
cat /sys/kernel/tracing/events/kperflab/returns*/hist >"$1"
