# SPDX-License-Identifier: GPL-2.0-or-later
# device.sh BLOCKS: a loop device over a sparse file with room for the highest block, were blocks pages.
highest=0  # a multiple of the page in size: blocks are pages until told otherwise
for block in $(echo "$1" | tr , ' '); do
    [ "$block" -gt "$highest" ] && highest=$block
done
mkdir -p /tmp/bh
mount -t tmpfs tmpfs /tmp/bh
truncate -s "$(((highest + 1) * 4096))" /tmp/bh/sparse
losetup /dev/loop0 /tmp/bh/sparse
