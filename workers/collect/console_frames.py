# SPDX-License-Identifier: GPL-2.0-or-later
"""The function that a report is about, and whether the report is whole."""

import re
from dataclasses import dataclass

from workers.collect.console_rules import Kind

SYMBOL = r"([A-Za-z_][\w.$]*)(?:\+0x[0-9a-f]+(?:/0x[0-9a-f]+)?)"
# "function+0x1/0x2" in a title, or "in function" without offsets.
NAMED = re.compile(rf"(?:\bin|\bat \S+:\d+|\bat) (?:\[[^\]]*\] ?)?{SYMBOL}")
POINTER = re.compile(
    rf"^[^\n]{{0,64}}?\b(?:RIP|EIP|NIP|PC|pc|epc|psw|PSW|era|ra|IP)\b ?(?:is at|:|\[)[^\n]{{0,80}}?(?<![\w.]){SYMBOL}",
    re.M,
)
STACK = re.compile(rf"^(?:.{{0,90}}?[\]>)] +|.{{0,60}}? {{1,3}}|[^\S\n]*)(?:\? )?{SYMBOL}", re.M)
TRACE = re.compile(
    r"Call [Tt]race|stack backtrace|Backtrace:|^[^\n]{0,80}(?:backtrace|Stack trace)"
    # KFENCE prints the place of an access, then its stack.
    r"|kfence-#\d+\):$|Invalid \w+ (?:at|of) (?:0x)?[0-9a-f]{8,16}:$",
    re.M,
)
# SLUB prints what an object holds, and its stack by a WARN() after that.
SLUB = re.compile(r"BUG [^:()]+ \([^()]+\): ")
AFTER = re.compile(r"\[ cut here \]|---\[ end trace|={40,}", re.M)
USELESS = re.compile(
    r"(?:__)?(?:dump_stack|show_stack|print_|report_|kasan_|__kasan|kmsan_|__msan|kcsan_|__tsan|__asan|check_memory"
    r"|panic|nmi_panic|die|oops|warn_|__warn|lockdep_|__lock_acquire|lock_acquire|lock_release|debug_|__schedule"
    r"|schedule|preempt_schedule|io_schedule|rcu_|__rcu|check_cpu_stall|sched_show|update_process_times|tick_"
    r"|hrtimer|__hrtimer|apic_|sysvec|asm_|nmi_|arch_trigger|trigger_|watchdog|khungtaskd|check_hung|local_apic"
    r"|smp_apic|invoke_rcu|__do_softirq|irq_exit|do_softirq|call_timer|ubsan|__ubsan|refcount_warn|__might"
    r"|might_|___might|check_|fortify|usercopy|slab_err|object_err|mem|str|_raw|__raw|do_raw|native_|queued_|pv_"
    r"|mutex_|__mutex|rwsem|down_|up_|__down|wait_|__wait|rt_|context_switch|kthread|ret_from|entry_|error_entry"
    r"|no_context|__bad_area|bad_area|do_kern|exc_|page_fault|do_page|do_trap|do_error|do_general|invalid_op|kfree"
    r"|kmem_cache|__kmalloc|kmalloc|kmemdup|spin_|debug_object|unwind|walk_stackframe|__read_once|__write_once"
    r"|fixup_|handle_bug|dump_|_sched_|__sanitizer|create_object|kmemleak_|register_lock|look_up_lock|mark_lock|__switch"
    r"|finish_task|finish_wait|console_|vprintk|printk|arch_stack|irqentry|retint|skb_panic|skb_over|skb_under|kvfree"
    r"|kvmalloc|__kvmalloc|vmalloc|__vmalloc|__alloc_|alloc_pages|_copy_|copy_|__copy|crc_|test_|__fortify|osq_"
    r"|smp_call_function_|generic_exec|on_each_cpu|synchronize_rcu_exp|kobject_|devres_release_all|__flush_work"
    r"|ref_tracker|process_one_work|worker_thread|usage_|valid_state|stack_chk|__stack_chk|get_stack|save_stack"
    r"|skb_put|skb_push|skb_pull|__skb_pu|msleep|sysfs_warn_dup|sysfs_create_dir|usleep|ssleep|instrument_|atomic|arch_atomic|rcu|preempt|percpu|bad_page|list_|__list|stack_trace|free_|lock_)"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The function that a report names ("" for none), and whether the report is cut off or mixed with another."""

    frame: str
    corrupted: bool


STACKLESS = frozenset({"panic", "oom", "fs", "net", "hardware", "reboot", "more", "leak"})


def shape_of(kind: Kind, title: str, excerpt: str) -> Shape:
    """Return frame and completeness of the report that an excerpt begins with. title: its first line."""
    body = excerpt.partition("\n")[2]
    # BUG() and WARN() print their message first: the report continues after the "cut here" line.
    end = AFTER.search(body, body.find("\n") if "[ cut here ]" in body.partition("\n")[0] else 0)
    report = body[: end.start()] if end else body
    if end and SLUB.match(title) and not TRACE.search(report) and "[ cut here ]" in end[0]:
        report = body[: _end_behind(body, end.end())]
    named = NAMED.search(title)
    pointer = (
        POINTER.search(report) if kind in {"oops", "gpf", "bug", "lockup", "warning", "rcu-stall"} else None
    )
    traced = TRACE.search(report)
    called = _called(report[traced.end() :]) if traced else ""
    first = next((match[1] for match in (named, pointer) if match and not USELESS.match(match[1])), "")
    anything = next((match[1] for match in (named, pointer) if match), "")
    frame = first or called or anything
    whole = kind in STACKLESS or bool(traced and STACK.search(report, traced.end())) or pointer is not None
    return Shape(frame.split(".")[0], not whole)


def _end_behind(body: str, at: int) -> int:
    end = AFTER.search(body, at)
    return end.start() if end else len(body)


def _called(stack: str) -> str:
    """Return the first function of a stack that is not part of the reporting itself."""
    names = (match[1] for match in STACK.finditer(stack) if "? " not in match[0])
    return next((name for name in names if not USELESS.match(name)), "")
