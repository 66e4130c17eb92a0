/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Marks in a program's flow for the microscope: an instruction that does nothing, with a number in its displacement.
 * Elsewhere it costs one nop.
 */
#ifndef KPERFLAB_MARK_H
#define KPERFLAB_MARK_H

enum mark {
	MARK_BEGIN = 1, /* what follows is measured */
	MARK_END,
	MARK_WATCH, /* a program that has windows begins: from here on callers are known */
	MARK_DONE,
};

#ifdef __x86_64__
#define MICROSCOPE_MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c0, 0x4c, 0x50, 0x4b" ::"i"(number) : "memory")
#else
#define MICROSCOPE_MARK(number) ((void)(number))
#endif

#endif
