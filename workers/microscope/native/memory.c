// SPDX-License-Identifier: GPL-2.0-or-later
#define _GNU_SOURCE
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

void *zeroed_memory(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		fprintf(stderr, "microscope: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return memory;
}

void *zeroed_again(void *memory, size_t bytes_before, size_t bytes)
{
	if (memory && bytes_before == bytes && !madvise(memory, bytes, MADV_DONTNEED))
		return memory;
	if (memory)
		munmap(memory, bytes_before);
	return zeroed_memory(bytes);
}
