# SPDX-License-Identifier: GPL-2.0-or-later
# mount.sh SERIAL DIRECTORY: mounts the virtio disk of that serial.
for disk in /sys/block/vd*; do
    [ "$(cat "$disk/serial")" = "$1" ] || continue
    mkdir -p "$2"
    # noatime: a stat must not cause writes of its own.
    exec mount -t ext4 -o noatime "/dev/${disk##*/}" "$2"
done
echo "no virtio disk has the serial $1" >&2
exit 1
