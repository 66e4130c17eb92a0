# SPDX-License-Identifier: GPL-2.0-or-later
# A directory on a ramdisk for the filling threads, and a loop device for the flushing one.
mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm  # cyclictest publishes its state there
mke2fs -b 1024 /dev/ram0 >/dev/null
mkdir -p /tmp/ram /tmp/loop
mount -t ext4 -o noatime /dev/ram0 /tmp/ram
# Long names, so that the directory has some thirty blocks: twice what an LRU of 16 holds.
mkdir /tmp/ram/listed
name=$(printf '%0200d' 0)
number=0
while [ "$number" -lt 128 ]; do
    : >"/tmp/ram/listed/$name$number"
    number=$((number + 1))
done
sync
mount -t tmpfs tmpfs /tmp/loop
truncate -s 1M /tmp/loop/file
losetup /dev/loop0 /tmp/loop/file
