// SPDX-License-Identifier: GPL-2.0-or-later
#include "machine.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "refused.h"

namespace {

constexpr double MOST_CYCLES = 1e6;
constexpr uint32_t LINE = 64;
constexpr double MOST_CACHE = 16 << 20;

class Values {
public:
	explicit Values(const std::string &path)
	{
		std::ifstream file(path);
		std::string line;

		if (!file)
			throw Refused("cannot read " + path);
		while (std::getline(file, line)) {
			size_t equals = line.find('=');
			char *end = nullptr;

			if (equals == std::string::npos)
				throw Refused("the machine has a line without \"=\"");
			double value = strtod(line.c_str() + equals + 1, &end);
			if (*end || end == line.c_str() + equals + 1 || !values_.emplace(line.substr(0, equals), value).second)
				throw Refused("the machine has a line that is not a number, or twice the same name");
		}
	}

	bool has(const std::string &name) const { return values_.count(name); }

	double take(const std::string &name, double least, double most)
	{
		auto at = values_.find(name);

		if (at == values_.end())
			throw Refused("the machine has no " + name);
		double value = at->second;
		values_.erase(at);
		if (!(value >= least && value <= most))
			throw Refused("the machine's " + name + " is out of bounds");
		return value;
	}

	uint32_t whole(const std::string &name, double least, double most)
	{
		double value = take(name, least, most);

		if (value != std::floor(value))
			throw Refused("the machine's " + name + " is not a whole number");
		return static_cast<uint32_t>(value);
	}

	void end() const
	{
		if (!values_.empty())
			throw Refused("the machine has a name that is not known");
	}

private:
	std::map<std::string, double> values_;
};

void check_cache(uint32_t bytes, uint32_t ways)
{
	uint32_t sets = bytes / LINE / ways;

	if (!sets || sets & (sets - 1) || sets * LINE * ways != bytes)
		throw Refused("the machine has a cache whose number of sets is no power of two");
}

} // namespace

Machine read_machine(const std::string &path)
{
	Values values(path);
	Machine machine;

	machine.sockets = values.whole("sockets", 1, 8);
	machine.cpus_per_socket = values.has("cpus_per_socket") ? values.whole("cpus_per_socket", 0, 64) : 0;
	machine.cycles_per_instruction = values.take("cycles_per_instruction", 0.05, 100);
	machine.overlap = values.take("overlap", 0, 1);
	machine.atomic_cycles = values.take("atomic_cycles", 0, MOST_CYCLES);
	machine.l1_bytes = values.whole("l1_bytes", LINE, MOST_CACHE);
	machine.l1_ways = values.whole("l1_ways", 1, 64);
	machine.l2_bytes = values.whole("l2_bytes", LINE, MOST_CACHE);
	machine.l2_ways = values.whole("l2_ways", 1, 64);
	machine.l2_cycles = values.take("l2_cycles", 0, MOST_CYCLES);
	machine.shared_cycles = values.take("shared_cycles", 0, MOST_CYCLES);
	machine.memory_cycles = values.take("memory_cycles", 0, MOST_CYCLES);
	machine.transfer_cycles = values.take("transfer_cycles", 0, MOST_CYCLES);
	machine.far_transfer_cycles = values.take("far_transfer_cycles", 0, MOST_CYCLES);
	machine.wake_cycles = values.take("wake_cycles", 0, MOST_CYCLES);
	values.end();
	check_cache(machine.l1_bytes, machine.l1_ways);
	check_cache(machine.l2_bytes, machine.l2_ways);
	return machine;
}
