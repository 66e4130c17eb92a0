// SPDX-License-Identifier: GPL-2.0-or-later
#include "replay.h"

#include <algorithm>

namespace {
constexpr uint64_t LINE = 64;
/* Further ones are counted with the last. */
constexpr size_t MOST_WINDOWS = 1000;
} // namespace

void Totals::add(const Totals &other)
{
	instructions += other.instructions;
	accesses += other.accesses;
	work += other.work;
	cache += other.cache;
	transfer += other.transfer;
	lock += other.lock;
}

Replay::Replay(const std::vector<std::unique_ptr<TraceFile>> &files, const CallTree &tree, const Machine &machine)
	: machine_(machine), evidence_(tree.size(), static_cast<unsigned int>(files.size())),
	  coherence_(machine, static_cast<unsigned int>(files.size()), evidence_), locks_(evidence_)
{
	for (const auto &file : files)
		cpus_.emplace_back(*file, tree);
}

/* Takes a CPU's next event; its turn comes when it has executed the instructions before the event. */
void Replay::fetch(unsigned int number)
{
	Cpu &cpu = cpus_[number];

	if (!cpu.events.next(cpu.event)) {
		cpu.does = Does::NOTHING;
		return;
	}
	double work = static_cast<double>(cpu.event.instructions) * machine_.cycles_per_instruction;

	cpu.totals.instructions += cpu.event.instructions;
	cpu.totals.work += work;
	cpu.clock += work;
	cpu.does = cpu.event.kind == Kind::BEGIN ? Does::AWAITS_WINDOW : Does::RUNS;
	if (cpu.does == Does::RUNS)
		turns_.emplace(cpu.clock, number);
}

bool Replay::takes_lock(unsigned int number)
{
	Cpu &cpu = cpus_[number];
	const Event &event = cpu.event;

	if (cpu.granted || (event.step != LockStep::ACQUIRE && event.step != LockStep::ACQUIRE_SHARED)) {
		cpu.granted = false;
		return true;
	}
	Locks::Waiter waiter = { number, event.step == LockStep::ACQUIRE_SHARED, event.node, cpu.clock };

	if (locks_.acquire(event.address, event.lock, waiter))
		return true;
	cpu.does = Does::AWAITS_LOCK;
	return false;
}

void Replay::gives_lock(unsigned int number)
{
	const Cpu &cpu = cpus_[number];

	if (cpu.event.step == LockStep::RELEASE)
		resume(locks_.release(cpu.event.address, number), cpu.clock);
	else if (cpu.event.step == LockStep::DOWNGRADE)
		resume(locks_.downgrade(cpu.event.address, number), cpu.clock);
}

void Replay::resume(const std::vector<Locks::Granted> &granted, double now)
{
	for (const auto &[waiter, lock, slept] : granted) {
		Cpu &cpu = cpus_[waiter.cpu];
		double until = std::max(waiter.since, now + (slept ? machine_.wake_cycles : 0));

		evidence_.waited_for_lock(lock, waiter.node, until - waiter.since);
		cpu.totals.lock += until - waiter.since;
		cpu.clock = until;
		cpu.granted = true;
		cpu.does = Does::RUNS;
		turns_.emplace(cpu.clock, waiter.cpu);
	}
}

void Replay::touch(unsigned int number)
{
	Cpu &cpu = cpus_[number];
	const Event &event = cpu.event;
	/* An access may cross the end of a line, but never the end of memory. */
	uint64_t top = std::max(event.address, event.address + event.size - 1);
	uint64_t first = event.address / LINE, last = top / LINE;

	cpu.totals.accesses++;
	for (uint64_t line = first; line <= last; line++) {
		uint64_t begin = line == first ? event.address % LINE : 0;
		uint64_t end = line == last ? top % LINE + 1 : LINE;
		uint64_t bytes = (end == LINE ? ~0ull : (1ull << end) - 1) & ~((1ull << begin) - 1);
		Delay delay = coherence_.access({ number, event.kind, event.node, cpu.clock }, line, bytes);

		cpu.totals.cache += delay.cache;
		cpu.totals.transfer += delay.transfer;
		cpu.clock += delay.cache + delay.transfer;
	}
	if (event.kind == Kind::ATOMIC) {
		cpu.totals.work += machine_.atomic_cycles;
		cpu.clock += machine_.atomic_cycles;
	}
}

void Replay::end_window(Cpu &cpu)
{
	size_t at = std::min(cpu.window, MOST_WINDOWS - 1);
	Totals window = cpu.totals;

	window.instructions -= cpu.before.instructions;
	window.accesses -= cpu.before.accesses;
	window.work -= cpu.before.work;
	window.cache -= cpu.before.cache;
	window.transfer -= cpu.before.transfer;
	window.lock -= cpu.before.lock;
	if (windows_.size() <= at)
		windows_.resize(at + 1);
	windows_[at].totals.add(window);
	windows_[at].longest = std::max(windows_[at].longest, window.cycles());
	cpu.before = cpu.totals;
	cpu.window++;
}

void Replay::step(unsigned int number)
{
	Cpu &cpu = cpus_[number];

	if (cpu.event.kind == Kind::END) {
		end_window(cpu);
	} else {
		if (!takes_lock(number))
			return;
		touch(number);
		gives_lock(number);
	}
	fetch(number);
}

bool Replay::is_in(Does what) const
{
	return std::any_of(cpus_.begin(), cpus_.end(), [&](const Cpu &cpu) { return cpu.does == what; });
}

/* The next measured interval of all CPUs begins when the last of them is done with the one before. */
void Replay::begin_windows()
{
	double now = 0;

	for (const Cpu &cpu : cpus_)
		now = std::max(now, cpu.clock);
	for (unsigned int number = 0; number < cpus_.size(); number++) {
		if (cpus_[number].does != Does::AWAITS_WINDOW)
			continue;
		cpus_[number].clock = now;
		fetch(number);
	}
}

void Replay::force_a_lock()
{
	auto at = std::min_element(cpus_.begin(), cpus_.end(), [](const Cpu &a, const Cpu &b) {
		bool a_waits = a.does == Does::AWAITS_LOCK, b_waits = b.does == Does::AWAITS_LOCK;

		return a_waits != b_waits ? a_waits : a.clock < b.clock;
	});
	auto number = static_cast<unsigned int>(at - cpus_.begin());

	forced_++;
	resume({ locks_.force(at->event.address, number) }, at->clock);
}

bool Replay::go_on()
{
	if (is_in(Does::AWAITS_LOCK))
		force_a_lock();
	else if (is_in(Does::AWAITS_WINDOW))
		begin_windows();
	else
		return false;
	return true;
}

void Replay::run()
{
	for (unsigned int number = 0; number < cpus_.size(); number++)
		fetch(number);
	do {
		while (!turns_.empty()) {
			unsigned int number = turns_.top().second;

			turns_.pop();
			step(number);
		}
	} while (go_on());
}

std::vector<Totals> Replay::cpus() const
{
	std::vector<Totals> totals;

	for (const Cpu &cpu : cpus_)
		totals.push_back(cpu.totals);
	return totals;
}

uint64_t Replay::left_out() const
{
	uint64_t sum = 0;

	for (const Cpu &cpu : cpus_)
		sum += cpu.events.left_out();
	return sum;
}
