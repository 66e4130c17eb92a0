/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replays the accesses of several virtual CPUs as if all had run at once. */
#ifndef KPERFLAB_REPLAY_REPLAY_H
#define KPERFLAB_REPLAY_REPLAY_H

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "coherence.h"
#include "events.h"
#include "evidence.h"
#include "locks.h"
#include "machine.h"

/* Of one CPU, or of one measured interval of all CPUs. Cycles but for the first two. */
struct Totals {
	uint64_t instructions = 0, accesses = 0;
	double work = 0, cache = 0, transfer = 0, lock = 0;

	double cycles() const { return work + cache + transfer + lock; }
	void add(const Totals &other);
};

struct Window {
	Totals totals;
	double longest = 0; /* cycles of the CPU that took longest */
};

class Replay {
public:
	Replay(const std::vector<std::unique_ptr<TraceFile>> &files, const CallTree &tree, const Machine &machine);
	/* Throws Refused. */
	void run();

	Evidence &evidence() { return evidence_; }
	std::vector<Totals> cpus() const;
	const std::vector<Window> &windows() const { return windows_; }
	uint64_t left_out() const;
	uint64_t lines() const { return coherence_.lines(); }
	/* How often no CPU could continue because others held its lock, so that one was let through. */
	uint64_t forced() const { return forced_; }

private:
	enum class Does { RUNS, AWAITS_WINDOW, AWAITS_LOCK, NOTHING };
	struct Cpu {
		explicit Cpu(const TraceFile &file, const CallTree &tree) : events(file, tree) {}
		Events events;
		Event event{};
		double clock = 0; /* of the machine */
		size_t window = 0;
		Does does = Does::RUNS;
		bool granted = false;
		Totals totals, before; /* before: this window */
	};
	using Turn = std::pair<double, unsigned int>;

	void fetch(unsigned int number);
	void step(unsigned int number);
	bool takes_lock(unsigned int number);
	void gives_lock(unsigned int number);
	void resume(const std::vector<Locks::Granted> &granted, double now);
	void touch(unsigned int number);
	void end_window(Cpu &cpu);
	bool go_on();
	void begin_windows();
	void force_a_lock();
	bool is_in(Does what) const;

	const Machine &machine_;
	Evidence evidence_;
	Coherence coherence_;
	Locks locks_;
	std::vector<Cpu> cpus_;
	std::vector<Window> windows_;
	std::priority_queue<Turn, std::vector<Turn>, std::greater<Turn>> turns_;
	uint64_t forced_ = 0;
};

#endif
