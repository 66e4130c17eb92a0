// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A. */
#include "instruction.h"

static bool is_prefix(uint8_t byte)
{
	switch (byte) {
	case 0x26: case 0x2e: case 0x36: case 0x3e: case 0x64: case 0x65: /* segments, branch hints, notrack */
	case 0x66: case 0x67: case 0xf0: case 0xf2: case 0xf3:
		return true;
	}
	return false;
}

/* Where an instruction's operation code is, after its prefixes. */
static size_t operation(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	while (at + 1 < size && is_prefix(bytes[at]))
		at++;
	if (at + 1 < size && (bytes[at] & 0xf0) == 0x40) /* REX */
		at++;
	return at;
}

enum flow instruction_flow(const uint8_t *bytes, size_t size)
{
	size_t at = operation(bytes, size);

	if (at >= size)
		return GOES_ON;
	switch (bytes[at]) {
	case 0x0f:
		return at + 1 < size && (bytes[at + 1] == 0x07 || bytes[at + 1] == 0x35) ? RETURNS_FROM_SYSCALL : GOES_ON;
	case 0xe8:
		return CALLS;
	case 0xff:
		if (at + 1 < size && (bytes[at + 1] >> 3 & 7) == 2)
			return CALLS;
		return at + 1 < size && (bytes[at + 1] >> 3 & 7) == 6 ? PUSHES : GOES_ON;
	case 0xc2: case 0xc3:
		return RETURNS;
	case 0xcf:
		return RETURNS_FROM_INTERRUPT;
	case 0x68: case 0x6a:
		return PUSHES;
	}
	return bytes[at] >= 0x50 && bytes[at] <= 0x57 ? PUSHES : GOES_ON;
}

bool instruction_is_atomic(const uint8_t *bytes, size_t size)
{
	size_t at = operation(bytes, size);

	for (size_t prefix = 0; prefix < at; prefix++)
		if (bytes[prefix] == 0xf0)
			return true;
	return at + 1 < size && (bytes[at] == 0x86 || bytes[at] == 0x87) && bytes[at + 1] >> 6 != 3;
}

int instruction_mark(const uint8_t *bytes, size_t size)
{
	/* nopl 0x4b504cNN(%rax) */
	if (size != 7 || bytes[0] != 0x0f || bytes[1] != 0x1f || bytes[2] != 0x80)
		return 0;
	return bytes[4] == 0x4c && bytes[5] == 0x50 && bytes[6] == 0x4b ? bytes[3] : 0;
}
