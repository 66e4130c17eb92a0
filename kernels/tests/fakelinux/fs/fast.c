// SPDX-License-Identifier: GPL-2.0-only
int fast_inodes = 1;
