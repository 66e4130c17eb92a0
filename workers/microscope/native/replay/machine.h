/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machine that the accesses are replayed on. Latencies are in cycles. */
#ifndef KPERFLAB_REPLAY_MACHINE_H
#define KPERFLAB_REPLAY_MACHINE_H

#include <cstdint>
#include <string>

struct Machine {
	uint32_t sockets;
	uint32_t cpus_per_socket; /* 0: as many on each */
	double cycles_per_instruction;
	double overlap; /* share of a plain access's latency that the core hides, 0 to 1 */
	double atomic_cycles; /* an atomic on a line that the CPU owns */
	uint32_t l1_bytes, l1_ways, l2_bytes, l2_ways;
	double l2_cycles, shared_cycles, memory_cycles;
	double transfer_cycles;	    /* a line from another CPU's cache, same socket */
	double far_transfer_cycles; /* the same, from another socket */
	double wake_cycles;	    /* from a release to the sleeper's next instruction */
};

/* Reads lines "name=value", every name once. Throws Refused. */
Machine read_machine(const std::string &path);

#endif
