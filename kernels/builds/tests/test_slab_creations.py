# SPDX-License-Identifier: GPL-2.0-or-later
"""The sources of a kernel say which structure a slab cache holds."""

from __future__ import annotations

import pytest

from kernels.builds.slab_creations import Creation, creations, pointers


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("dentry_cache = KMEM_CACHE_USERCOPY(dentry,\n\t\tSLAB_PANIC, d_iname);", Creation("dentry", "dentry", True)),
        ("kiocb_cachep = KMEM_CACHE(aio_kiocb, 0);", Creation("aio_kiocb", "aio_kiocb", True)),
        (
            'x = kmem_cache_create_usercopy("ext4_inode_cache",\n\t\t\tsizeof(struct ext4_inode_info), 0,',
            Creation("ext4_inode_cache", "ext4_inode_info", True),
        ),
        ('kmem_cache_create("jbd2_journal_head",\n sizeof(struct journal_head),\n 0, /* offset */', Creation("jbd2_journal_head", "journal_head", True)),
        ('kmem_cache_create("jbd2_transaction_s", sizeof(transaction_t), 0,', Creation("jbd2_transaction_s", "transaction_t", True)),
        ('kmem_cache_create_usercopy("task_struct",\n arch_task_struct_size, align,', Creation("task_struct", "task_struct", False)),
        ('kmem_cache_create("request_queue_srcu", sizeof(struct request_queue) + sizeof(struct srcu_struct), 0,', Creation("request_queue_srcu", "request_queue_srcu", False)),
        ('kmem_cache_create("filp", sizeof(struct file), &args,', Creation("filp", "file", True)),
    ],
)  # fmt: skip
def test_a_cache_has_the_structure_that_it_is_created_for(source: str, found: Creation) -> None:
    assert creations(source) == [found]


@pytest.mark.parametrize(
    "source",
    [
        "slab = kmem_cache_create(name, size, 0, 0, NULL);",
        '/* kmem_cache_create("dentry", sizeof(struct inode), 0, */',
        "return KMEM_CACHE_NONE(dentry, 0);",
        'kmem_cache_create("<script>", sizeof(struct inode), 0,',
    ],
)
def test_a_cache_whose_name_does_not_stand_there_is_none(source: str) -> None:
    assert creations(source) == []


def test_static_variables_that_point_to_structures_are_found_unless_two_have_a_name() -> None:
    lines = """\
static struct kernfs_root *sysfs_root;
struct kernfs_node *sysfs_root_kn;
static struct hlist_head *inode_hashtable __read_mostly;
struct task_struct *kthreadd_task = NULL;
static struct class *list;
static struct device *list;
static struct inode *find(int which);
"""
    assert pointers(lines) == {
        "sysfs_root": "kernfs_root", "sysfs_root_kn": "kernfs_node", "inode_hashtable": "hlist_head",
        "kthreadd_task": "task_struct",
    }  # fmt: skip
