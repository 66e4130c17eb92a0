// SPDX-License-Identifier: GPL-2.0-or-later
/* Breaks one rule that a debugging option watches, in a function way_uaf_read or the like: insmod checks.ko how=uaf_read */
#include <linux/debugobjects.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kfence.h>
#include <linux/kobject.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/platform_device.h>
#include <linux/rcupdate.h>
#include <linux/sched/task_stack.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <asm/msr.h>

static char *how = "";
module_param(how, charp, 0);

static volatile int zero, big = 300;
static volatile long sink;
static char global[16];
static DEFINE_SPINLOCK(lock_a);
static DEFINE_SPINLOCK(lock_b);
static DEFINE_MUTEX(mutex_a);
static DEFINE_MUTEX(mutex_b);
static struct timer_list timer;
static struct rcu_head head;
static int __rcu *shared;

/* What the compiler's checks cannot see. */
static void write_unseen(char *at, char value)
{
	asm volatile("movb %1, (%0)" : : "r"(at), "q"(value) : "memory");
}

/* No name here begins as the names of reporting functions do, which a reader of stacks passes over. */
#define WAY(name) static noinline void way_##name(void)

/* KASAN */
WAY(uaf_read)
{
	char *object = kmalloc(40, GFP_KERNEL);

	kfree(object);
	sink = READ_ONCE(object[3]);
}

WAY(uaf_write)
{
	char *object = kmalloc(40, GFP_KERNEL);

	kfree(object);
	WRITE_ONCE(object[3], 1);
}

WAY(oob_read)
{
	char *object = kmalloc(40, GFP_KERNEL);

	sink = READ_ONCE(object[40 + zero]);
}

WAY(oob_write)
{
	char *object = kmalloc(40, GFP_KERNEL);

	WRITE_ONCE(object[40 + zero], 1);
}

WAY(oob_memset)
{
	char *object = kmalloc(40, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(object);
	memset(object, 1, 41 + zero);
}

WAY(stack_oob)
{
	volatile char array[10] = { 0 };

	sink = array[10 + zero];
}

WAY(global_oob)
{
	char *at = global;

	OPTIMIZER_HIDE_VAR(at);
	sink = READ_ONCE(at[18 + zero]);
}

WAY(vmalloc_oob)
{
	char *area = vmalloc(3333);

	OPTIMIZER_HIDE_VAR(area);
	sink = READ_ONCE(area[3400]);
}

WAY(page_uaf)
{
	char *page = (char *)__get_free_page(GFP_KERNEL);

	free_page((unsigned long)page);
	sink = READ_ONCE(page[7]);
}

WAY(double_free)
{
	char *object = kmalloc(40, GFP_KERNEL);

	kfree(object);
	OPTIMIZER_HIDE_VAR(object);
	kfree(object);
}

WAY(invalid_free)
{
	char *object = kmalloc(40, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(object);
	kfree(object + 8);
}

WAY(null_read)
{
	sink = *(volatile char *)0x10;
}

WAY(wild_read)
{
	sink = *(volatile char *)0x1234dead00000000;
}

WAY(user_read)
{
	sink = *(volatile char *)0x123400000;
}

static noinline void uaf_in_work(struct work_struct *work)
{
	way_uaf_read();
}
static DECLARE_WORK(work_uaf, uaf_in_work);

WAY(uaf_work)
{
	schedule_work(&work_uaf);
	flush_work(&work_uaf);
}

static noinline void uaf_in_timer(struct timer_list *unused)
{
	way_uaf_read();
}

WAY(uaf_timer)
{
	timer_setup(&timer, uaf_in_timer, 0);
	mod_timer(&timer, jiffies + 1);
	msleep(100);
}

/* UBSAN */
WAY(shift_big)
{
	volatile int value = 1;

	sink = value << big;
}

WAY(index_big)
{
	volatile int array[4] = { 0 };
	volatile int index = 4 + zero;

	array[index] = 3;
}

WAY(load_bool)
{
	volatile unsigned char byte = 7;

	sink = *(volatile bool *)&byte;
}

/* KFENCE */
static char *fenced(void)
{
	char *object;
	int tries;

	for (tries = 0; tries < 200000; tries++) {
		object = kmalloc(32, GFP_KERNEL);
		if (is_kfence_address(object))
			return object;
		kfree(object);
		if (tries % 100 == 99)
			msleep(1);
	}
	return NULL;
}

WAY(kfence_oob)
{
	char *object = fenced();

	sink = READ_ONCE(object[-1]) + READ_ONCE(object[32]);
}

WAY(kfence_uaf)
{
	char *object = fenced();

	kfree(object);
	sink = READ_ONCE(object[1]);
}

WAY(kfence_double_free)
{
	char *object = fenced();

	kfree(object);
	OPTIMIZER_HIDE_VAR(object);
	kfree(object);
}

WAY(kfence_corruption)
{
	char *object = fenced();

	/* Whichever side the redzone is on. */
	if (offset_in_page(object) == 0)
		write_unseen(object + 33, 1);
	else
		write_unseen(object - 2, 1);
	kfree(object);
}

/* SLUB's own */
WAY(slub_redzone)
{
	struct kmem_cache *cache = kmem_cache_create("watched", 40, 0, SLAB_POISON | SLAB_RED_ZONE, NULL);
	char *object = kmem_cache_alloc(cache, GFP_KERNEL);

	write_unseen(object + 40, 1);
	kmem_cache_free(cache, object);
}

WAY(slub_poison)
{
	struct kmem_cache *cache = kmem_cache_create("watched", 40, 0, SLAB_POISON | SLAB_RED_ZONE, NULL);
	char *object = kmem_cache_alloc(cache, GFP_KERNEL);
	int i;

	kmem_cache_free(cache, object);
	write_unseen(object + 9, 1);
	for (i = 0; i < 100; i++)
		object = kmem_cache_alloc(cache, GFP_KERNEL);
	kmem_cache_shrink(cache);
}

WAY(slub_remaining)
{
	struct kmem_cache *cache = kmem_cache_create("watched", 40, 0, SLAB_POISON | SLAB_RED_ZONE, NULL);

	if (kmem_cache_alloc(cache, GFP_KERNEL))
		kmem_cache_destroy(cache);
}

/* lockdep */
WAY(lock_recursive)
{
	static spinlock_t two[2];
	int i;

	for (i = 0; i < 2; i++)
		spin_lock_init(&two[i]);
	spin_lock(&two[0]);
	spin_lock(&two[1]);
	spin_unlock(&two[1]);
	spin_unlock(&two[0]);
}

WAY(lock_circular)
{
	mutex_lock(&mutex_a);
	mutex_lock(&mutex_b);
	mutex_unlock(&mutex_b);
	mutex_unlock(&mutex_a);
	mutex_lock(&mutex_b);
	mutex_lock(&mutex_a);
	mutex_unlock(&mutex_a);
	mutex_unlock(&mutex_b);
}

static noinline void take_in_timer(struct timer_list *unused)
{
	spin_lock(&lock_a);
	spin_unlock(&lock_a);
}

static void run_timer(void)
{
	timer_setup(&timer, take_in_timer, 0);
	mod_timer(&timer, jiffies + 1);
	msleep(100);
}

WAY(lock_inconsistent)
{
	spin_lock(&lock_a);
	spin_unlock(&lock_a);
	run_timer();
}

WAY(lock_irq_order)
{
	run_timer();
	spin_lock(&lock_b);
	spin_unlock(&lock_b);
	spin_lock_bh(&lock_a);
	spin_lock(&lock_b);
	spin_unlock(&lock_b);
	spin_unlock_bh(&lock_a);
}

WAY(lock_irq_inversion)
{
	spin_lock_bh(&lock_a);
	spin_lock(&lock_b);
	spin_unlock(&lock_b);
	spin_unlock_bh(&lock_a);
	spin_lock(&lock_b);
	spin_unlock(&lock_b);
	run_timer();
}

WAY(lock_unbalanced)
{
	mutex_lock(&mutex_a);
	mutex_unlock(&mutex_a);
	mutex_unlock(&mutex_a);
}

WAY(lock_freed)
{
	struct mutex *mutex = kmalloc(sizeof(*mutex), GFP_KERNEL);

	mutex_init(mutex);
	mutex_lock(mutex);
	kfree(mutex);
}

WAY(lock_to_user)
{
	mutex_lock(&mutex_a);
}

static int exit_with_lock(void *unused)
{
	mutex_lock(&mutex_a);
	return 0;
}

WAY(lock_at_exit)
{
	kthread_run(exit_with_lock, NULL, "holder");
	msleep(500);
}

WAY(lock_no_key)
{
	spinlock_t *lock = kzalloc(sizeof(*lock), GFP_KERNEL);

	lockdep_set_class(lock, (struct lock_class_key *)lock);
	spin_lock(lock);
}

WAY(lock_never_set_up)
{
	static spinlock_t *lock;

	lock = kzalloc(sizeof(*lock), GFP_KERNEL);
	spin_lock(lock);
}

WAY(lock_depth)
{
	static spinlock_t many[60];
	static struct lock_class_key keys[60];
	int i;

	for (i = 0; i < 60; i++) {
		spin_lock_init(&many[i]);
		lockdep_set_class(&many[i], &keys[i]);
		spin_lock(&many[i]);
	}
}

WAY(lock_asserted)
{
	lockdep_assert_held(&mutex_a);
}

static noinline void leak_lock(struct work_struct *work)
{
	mutex_lock(&mutex_a);
}
static DECLARE_WORK(work_leak, leak_lock);

WAY(lock_work)
{
	schedule_work(&work_leak);
	flush_work(&work_leak);
}

WAY(spin_magic)
{
	static spinlock_t lock = __SPIN_LOCK_UNLOCKED(lock);

#ifdef CONFIG_DEBUG_SPINLOCK
	lock.rlock.magic = 0;
#endif
	spin_lock(&lock);
}

WAY(spin_unlocked)
{
	lockdep_off();
	spin_unlock(&lock_a);
}

WAY(spin_twice)
{
	lockdep_off();
	spin_lock(&lock_a);
	spin_lock(&lock_a);
}

/* RCU */
WAY(rcu_unprotected)
{
	sink = (long)rcu_dereference(shared);
}

WAY(rcu_sleep)
{
	rcu_read_lock();
	msleep(10);
	rcu_read_unlock();
}

static void no_callback(struct rcu_head *unused)
{
}

WAY(rcu_twice)
{
	call_rcu(&head, no_callback);
	call_rcu(&head, no_callback);
}

/* sleeping, preemption */
WAY(sleep_atomic)
{
	preempt_disable();
	might_sleep();
	preempt_enable();
}

WAY(sleep_irqs_off)
{
	local_irq_disable();
	mutex_lock(&mutex_a);
	mutex_unlock(&mutex_a);
	local_irq_enable();
}

WAY(sleep_state)
{
	set_current_state(TASK_INTERRUPTIBLE);
	might_sleep();
	__set_current_state(TASK_RUNNING);
}

WAY(cpu_preemptible)
{
	sink = smp_processor_id();
}

static noinline void leave_preempt(struct timer_list *unused)
{
	preempt_disable();
}

WAY(timer_imbalance)
{
	timer_setup(&timer, leave_preempt, 0);
	mod_timer(&timer, jiffies + 1);
	msleep(100);
}

WAY(init_imbalance)
{
	preempt_disable();
}

/* objects */
WAY(timer_active_init)
{
	timer_setup(&timer, take_in_timer, 0);
	mod_timer(&timer, jiffies + 1000);
	timer_setup(&timer, take_in_timer, 0);
}

WAY(timer_active_free)
{
	struct timer_list *own = kmalloc(sizeof(*own), GFP_KERNEL);

	timer_setup(own, take_in_timer, 0);
	mod_timer(own, jiffies + 1000);
	kfree(own);
}

static int notified(struct notifier_block *block, unsigned long action, void *data)
{
	return 0;
}

WAY(notifier_twice)
{
	static RAW_NOTIFIER_HEAD(chain);
	static struct notifier_block block = { .notifier_call = notified };

	raw_notifier_chain_register(&chain, &block);
	raw_notifier_chain_register(&chain, &block);
}

WAY(kobject_twice)
{
	static struct kobject object;
	static struct kobj_type type;

	kobject_init(&object, &type);
	kobject_init(&object, &type);
}

WAY(kobject_name_twice)
{
	sink = (long)kobject_create_and_add("twice", kernel_kobj);
	sink = (long)kobject_create_and_add("twice", kernel_kobj);
}

WAY(dma_size)
{
	struct platform_device *device = platform_device_register_simple("checked", -1, NULL, 0);
	char *object = kmalloc(512, GFP_KERNEL);
	dma_addr_t address;

	dma_coerce_mask_and_coherent(&device->dev, DMA_BIT_MASK(64));
	address = dma_map_single(&device->dev, object, 512, DMA_TO_DEVICE);
	dma_unmap_single(&device->dev, address, 256, DMA_TO_DEVICE);
}

WAY(percpu_leak)
{
	sink = (long)__alloc_percpu(64, 8);
}

/* pages and stacks */
WAY(page_twice)
{
	struct page *page = alloc_page(GFP_KERNEL);

	__free_page(page);
	__free_page(page);
}

WAY(page_mapping)
{
	struct page *page = alloc_page(GFP_KERNEL);

	page->mapping = (void *)0x1234;
	__free_page(page);
}

WAY(page_bug_on)
{
	struct page *page = alloc_page(GFP_KERNEL);

	sink = (long)page;
	VM_BUG_ON_PAGE(zero == 0, page);
}

WAY(page_poison)
{
	char *page = (char *)__get_free_page(GFP_KERNEL);
	int i;

	free_page((unsigned long)page);
	write_unseen(page + 99, 1);
	for (i = 0; i < 4000; i++)
		sink = __get_free_page(GFP_KERNEL);
}

WAY(stack_end)
{
	*end_of_stack(current) = 1;
	schedule();
}

/* others */
WAY(skb_over)
{
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);

	skb_put(skb, 4096);
}

WAY(skb_under)
{
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);

	skb_push(skb, 4096);
}

WAY(msr_write)
{
	wrmsrl(0x7fffffff, 1);
}

WAY(warn_message)
{
	WARN(1, "checked: %d is too many\n", big);
}

static noinline void null_in_timer(struct timer_list *unused)
{
	way_null_read();
}

WAY(null_timer)
{
	timer_setup(&timer, null_in_timer, 0);
	mod_timer(&timer, jiffies + 1);
	msleep(100);
}

static noinline int null_in_thread(void *unused)
{
	*(volatile int *)8 = 1;
	return 0;
}

WAY(null_thread)
{
	kthread_run(null_in_thread, NULL, "doomed: thread");
	msleep(500);
}

WAY(jump_null)
{
	void (*volatile nowhere)(void) = NULL;

	nowhere();
}

/* Nothing is wrong here, whatever the words are. */
WAY(clean_notices)
{
	pr_warn("checked: WARNING: firmware is old, some features are off\n");
	pr_info("checked: debugging for BUG reports is enabled (KASAN, UBSAN, lockdep)\n");
	pr_info("kfence: 255 objects, double free detection on, corruption check on\n");
	pr_notice("INFO: checked is experimental\n");
	pr_err("checked: Oops counter at 0, panic_on_oops off, no general protection\n");
	dump_stack();
}

#define ENTRY(name) { #name, way_##name }
static const struct {
	const char *name;
	void (*call)(void);
} ways[] = {
	ENTRY(uaf_read), ENTRY(uaf_write), ENTRY(oob_read), ENTRY(oob_write), ENTRY(oob_memset), ENTRY(stack_oob),
	ENTRY(global_oob), ENTRY(vmalloc_oob), ENTRY(page_uaf), ENTRY(double_free), ENTRY(invalid_free),
	ENTRY(null_read), ENTRY(wild_read), ENTRY(user_read), ENTRY(uaf_work), ENTRY(uaf_timer), ENTRY(shift_big),
	ENTRY(index_big), ENTRY(load_bool), ENTRY(kfence_oob), ENTRY(kfence_uaf), ENTRY(kfence_double_free),
	ENTRY(kfence_corruption), ENTRY(slub_redzone), ENTRY(slub_poison), ENTRY(slub_remaining),
	ENTRY(lock_recursive), ENTRY(lock_circular), ENTRY(lock_inconsistent), ENTRY(lock_irq_order),
	ENTRY(lock_irq_inversion), ENTRY(lock_unbalanced), ENTRY(lock_freed), ENTRY(lock_to_user),
	ENTRY(lock_at_exit), ENTRY(lock_no_key), ENTRY(lock_never_set_up), ENTRY(lock_depth), ENTRY(lock_asserted),
	ENTRY(lock_work), ENTRY(spin_magic), ENTRY(spin_unlocked), ENTRY(spin_twice), ENTRY(rcu_unprotected),
	ENTRY(rcu_sleep), ENTRY(rcu_twice), ENTRY(sleep_atomic), ENTRY(sleep_irqs_off), ENTRY(sleep_state),
	ENTRY(cpu_preemptible), ENTRY(timer_imbalance), ENTRY(init_imbalance), ENTRY(timer_active_init),
	ENTRY(timer_active_free), ENTRY(notifier_twice), ENTRY(kobject_twice), ENTRY(kobject_name_twice),
	ENTRY(dma_size), ENTRY(percpu_leak), ENTRY(page_twice), ENTRY(page_mapping), ENTRY(page_bug_on),
	ENTRY(page_poison), ENTRY(stack_end), ENTRY(skb_over), ENTRY(skb_under), ENTRY(msr_write),
	ENTRY(warn_message), ENTRY(null_timer), ENTRY(null_thread), ENTRY(jump_null), ENTRY(clean_notices),
};

static int __init check(void)
{
	int i;

	pr_info("checks: %s\n", how);
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		if (!strcmp(how, ways[i].name))
			ways[i].call();
	return 0;
}
module_init(check);
MODULE_LICENSE("GPL");
