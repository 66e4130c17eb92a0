// SPDX-License-Identifier: GPL-2.0-only
#include <linux/fs.h>

/* Where an x86_64 kernel is entered; the microscope looks for it. */
void entry_SYSCALL_64(void)
{
}

/* Walks a chain. */
struct inode *find_inode_fast(struct inode *head, unsigned long ino)
{
	struct inode *inode;

	for (inode = head; inode; inode = inode->i_next)
		if (inode->i_ino == ino)
			return inode;
	WARN_HERE();
	return 0;
}
