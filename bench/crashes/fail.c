// SPDX-License-Identifier: GPL-2.0-or-later
/* Fails in the ways that LKDTM does not know: insmod fail.ko how=divide */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

static char *how = "";
module_param(how, charp, 0);

static void spin(struct work_struct *work)
{
	unsigned long end = jiffies + 14 * HZ;

	preempt_disable();
	while (time_before(jiffies, end))
		cpu_relax();
	preempt_enable();
}
static DECLARE_WORK(spinning, spin);

static void divide(void)
{
	asm volatile("xor %%edx, %%edx; mov $1, %%eax; xor %%ecx, %%ecx; div %%ecx" ::: "eax", "ecx", "edx");
}

static void stack_segment(void)
{
	asm volatile("mov %%rsp, %%rbx; movabs $0x8000dead00000000, %%rsp; push %%rax; mov %%rbx, %%rsp" ::: "rbx", "memory");
}

static void hold_inode(void)
{
	struct path path;

	if (!kern_path("/tmp/held", LOOKUP_FOLLOW, &path)) {
		igrab(d_inode(path.dentry));
		path_put(&path);
	}
}

static void hold_device(void)
{
	struct net_device *device = alloc_netdev(0, "held%d", NET_NAME_UNKNOWN, ether_setup);
	static const struct net_device_ops none;

	device->netdev_ops = &none;
	if (register_netdev(device) == 0) {
		dev_hold(device);
		unregister_netdev(device);
	}
}

static void bad_page_state(void)
{
	struct page *page = alloc_page(GFP_KERNEL);

	page->mapping = (void *)0x1234;
	__free_page(page);
}

static void leak_cache(void)
{
	struct kmem_cache *cache = kmem_cache_create("leaking", 40, 0, 0, NULL);

	if (kmem_cache_alloc(cache, GFP_KERNEL))
		kmem_cache_destroy(cache);
}

static void triple_fault(void)
{
	struct desc_ptr nothing = { 0 };

	asm volatile("lidt %0; int3" : : "m"(nothing));
}

static void protection(void)
{
	*(volatile char *)0x1234dead00000000;
}

static void int3(void)
{
	asm volatile("int3");
}

static void opcode(void)
{
	asm volatile("ud2");
}

static void segment(void)
{
	asm volatile("mov $0x1003, %%eax; mov %%eax, %%fs" ::: "eax");
}

static void atomic(void)
{
	preempt_disable();
	msleep(10);
	preempt_enable();
}

static void workqueue(void)
{
	queue_work(system_wq, &spinning);
}

static void free_nothing(void)
{
	vfree((void *)0x1001);
}

static void proc_twice(void)
{
	proc_mkdir("twice", NULL);
	proc_mkdir("twice", NULL);
}

static void count_pages(void)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
	atomic_long_add(7, &current->mm->rss_stat.count[MM_ANONPAGES]);
#else
	percpu_counter_add(&current->mm->rss_stat[MM_ANONPAGES], 7);
#endif
}

static const struct {
	const char *name;
	void (*call)(void);
} ways[] = {
	{ "divide", divide },
	{ "stack-segment", stack_segment },
	{ "protection", protection },
	{ "int3", int3 },
	{ "opcode", opcode },
	{ "segment", segment },
	{ "atomic", atomic },
	{ "workqueue", workqueue },
	{ "busy-inodes", hold_inode },
	{ "netdevice", hold_device },
	{ "page", bad_page_state },
	{ "cache", leak_cache },
	{ "vfree", free_nothing },
	{ "proc", proc_twice },
	{ "rss", count_pages },
	{ "triple", triple_fault },
};

static int __init fail(void)
{
	int i;

	pr_info("fail: %s\n", how);
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		if (!strcmp(how, ways[i].name))
			ways[i].call();
	return 0;
}
module_init(fail);
MODULE_LICENSE("GPL");
