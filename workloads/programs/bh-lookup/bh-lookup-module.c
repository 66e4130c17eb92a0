// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times __find_get_block() on chosen blocks of a block device; after the program
 * in the mail "[PATCH] fs/buffer.c: remove per-CPU buffer_head lookup cache".
 *
 * Each read of /proc/kperflab_bh_lookup runs the loops again and gives a line per block:
 *   <block> <loops> <found, both loops> <ns, each call timed> <ns, whole loop timed>
 * The first time is the mail's method: two ktime_get() are in every lookup. The
 * second holds the lookup and its __brelse() only.
 *
 * blocksize=512 makes the device's blocks as large as the lookups ask for, so that the
 * per-CPU LRU can hit. blocksize=0 leaves them as the kernel chose when the device
 * was opened, as the mail did: on a device that is a multiple of the page in size these
 * are pages. The buffers' b_size is then 4096, lookup_bh_lru() compares it with 512 and
 * never finds them, and each lookup pays for the LRU search, the slow path and the
 * install. That is the mail's 114 ns against 68.
 */
#include <linux/blkdev.h>
#include <linux/buffer_head.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/version.h>

#define ASKED_SIZE 512
#define LOOPS_BETWEEN_RESCHEDULES 1024

static char *device = "/dev/loop0";
module_param(device, charp, 0444);
static unsigned long loops = 200000;
module_param(loops, ulong, 0444);
static unsigned long long blocks[16] = { 1 };
static int block_count = 1;
module_param_array(blocks, ullong, &block_count, 0444);
static int blocksize = ASKED_SIZE;
module_param(blocksize, int, 0444);

static struct block_device *bdev;

/*
 * With the patch the size is gone from the signature; this module builds against both
 * trees. The two declared here are never defined: they give the branch not taken a type.
 */
typedef struct buffer_head *(*find_sized)(struct block_device *, sector_t, unsigned int);
struct buffer_head *absent_sized(struct block_device *bdev, sector_t block, unsigned int size);
struct buffer_head *absent_sizeless(struct block_device *bdev, sector_t block);
#define TAKES_SIZE __builtin_types_compatible_p(typeof(&__find_get_block), find_sized)

static __always_inline struct buffer_head *lookup(sector_t block)
{
	if (TAKES_SIZE)
		return __builtin_choose_expr(TAKES_SIZE, __find_get_block, absent_sized)(bdev, block, ASKED_SIZE);
	return __builtin_choose_expr(TAKES_SIZE, absent_sizeless, __find_get_block)(bdev, block);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
static int open_device(void)
{
	bdev = blkdev_get_by_path(device, FMODE_READ | FMODE_EXCL, &bdev);
	return PTR_ERR_OR_ZERO(bdev);
}

static int use_blocksize(void)
{
	return set_blocksize(bdev, blocksize);
}

static void close_device(void)
{
	blkdev_put(bdev, FMODE_READ | FMODE_EXCL);
}
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static struct file *bdev_file;

static int open_device(void)
{
	bdev_file = bdev_file_open_by_path(device, BLK_OPEN_READ, &bdev, NULL);
	if (IS_ERR(bdev_file))
		return PTR_ERR(bdev_file);
	bdev = file_bdev(bdev_file);
	return 0;
}

static int use_blocksize(void)
{
	return set_blocksize(bdev_file, blocksize);
}

static void close_device(void)
{
	bdev_fput(bdev_file);
}
#else
#error "bh-lookup knows the block device calls of Linux before 6.5 and since 6.11"
#endif

static unsigned long found_in(struct buffer_head *bh)
{
	if (!bh)
		return 0;
	__brelse(bh);
	return 1;
}

static s64 time_each_call(sector_t block, unsigned long *found)
{
	s64 sum = 0;

	for (unsigned long i = 0; i < loops; i++) {
		ktime_t start = ktime_get();
		struct buffer_head *bh = lookup(block);

		sum += ktime_to_ns(ktime_sub(ktime_get(), start));
		*found += found_in(bh);
		if (i % LOOPS_BETWEEN_RESCHEDULES == 0)
			cond_resched();
	}
	return sum;
}

static s64 time_whole_loop(sector_t block, unsigned long *found)
{
	s64 sum = 0;

	for (unsigned long i = 0; i < loops;) {
		unsigned long end = min(loops, i + LOOPS_BETWEEN_RESCHEDULES);
		ktime_t start = ktime_get();

		for (; i < end; i++)
			*found += found_in(lookup(block));
		sum += ktime_to_ns(ktime_sub(ktime_get(), start));
		cond_resched();
	}
	return sum;
}

static int show(struct seq_file *m, void *unused)
{
	for (int i = 0; i < block_count; i++) {
		struct buffer_head *bh = __bread(bdev, blocks[i], block_size(bdev));
		unsigned long found = 0;
		s64 each, whole;

		if (!bh)
			return -EIO;
		each = time_each_call(blocks[i], &found);
		whole = time_whole_loop(blocks[i], &found);
		seq_printf(m, "%llu %lu %lu %lld %lld\n", blocks[i], loops, found, each, whole);
		brelse(bh);
	}
	return 0;
}

static int __init start(void)
{
	int error = open_device();

	if (error) {
		pr_err("bh-lookup: cannot open %s: %d\n", device, error);
		return error;
	}
	if (blocksize)
		error = use_blocksize();
	if (!error && !proc_create_single("kperflab_bh_lookup", 0400, NULL, show))
		error = -ENOMEM;
	if (error)
		close_device();
	return error;
}

static void __exit stop(void)
{
	remove_proc_entry("kperflab_bh_lookup", NULL);
	close_device();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("ns per __find_get_block()");
MODULE_LICENSE("GPL");
