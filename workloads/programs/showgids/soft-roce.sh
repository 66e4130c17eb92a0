# SPDX-License-Identifier: GPL-2.0-or-later
# Makes an RDMA device of a dummy interface, so that /sys/class/infiniband holds the mail's files.
# A kernel without soft RoCE is no failure: the program falls back, and says so.
{
    ip link add d0 type dummy &&
    ip link set d0 up &&
    rdma link add rxe0 type rxe netdev d0
} || echo "no soft RoCE here; the fallback's files are opened" >&2
