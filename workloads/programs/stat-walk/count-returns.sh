# SPDX-License-Identifier: GPL-2.0-or-later
# count-returns.sh FUNCTION THREAD: from now on the kernel counts what the function returns
# in threads of that name, by stack: NULL or not. What the mail does with bpftrace, by kprobe
# events and hist triggers.
cd /sys/kernel/tracing
# A compiler may have made several functions of one: all its clones are counted.
symbols=$(awk -v name="$1" '{
    stem = $3
    while (sub(/\.(isra|constprop)\.[0-9]+$/, "", stem));
    if (tolower($2) == "t" && stem == name && NF == 3) print $3
}' /proc/kallsyms | sort -u)
[ -n "$symbols" ] || { echo "this kernel has no function $1 to count (inlined?)" >&2; exit 1; }
number=0
for symbol in $symbols; do
    event=returns$number
    # 512: calls that may sleep inside at once; misses are in kprobe_profile.
    echo "r512:kperflab/$event $symbol value=\$retval" >>kprobe_events
    echo "hist:keys=stacktrace:size=4096 if comm == \"$2\" && value == 0" >"events/kperflab/$event/trigger"
    echo "hist:keys=stacktrace:size=4096 if comm == \"$2\" && value != 0" >>"events/kperflab/$event/trigger"
    number=$((number + 1))
done
