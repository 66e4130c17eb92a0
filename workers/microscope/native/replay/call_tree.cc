// SPDX-License-Identifier: GPL-2.0-or-later
#include "call_tree.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "refused.h"
#include "trace_file.h"

namespace {

/* native/report.c writes these. */
struct Header {
	char magic[4];
	uint32_t version, windows, whole;
	uint64_t instructions, nodes;
};

struct Row {
	uint64_t function, parent, instructions, calls;
};

/* native/tree.h: enum root. */
enum { ROOT_THREAD = 2, ROOT_INTERRUPT = 3, ROOTS = 4 };
constexpr uint64_t MOST_NODES = 1 << 20;

using Roles = std::unordered_map<uint64_t, Role>;

Roles read_roles(const std::string &path)
{
	std::ifstream file(path);
	std::string line;
	Roles roles;

	if (!file)
		throw Refused("cannot read " + path);
	while (std::getline(file, line)) {
		std::istringstream fields(line);
		uint64_t address;
		char role;

		if (!(fields >> std::hex >> address >> role) || !strchr("wrRmMdDxXg", role))
			throw Refused("the table of lock functions has a line that is none");
		roles[address] = static_cast<Role>(role);
	}
	return roles;
}

uint64_t rows_in(const MappedFile &file)
{
	Header header;

	if (file.size() < sizeof(header))
		throw Refused("the call tree is cut short");
	memcpy(&header, file.data(), sizeof(header));
	if (memcmp(header.magic, "KPMT", 4) || header.version != 1)
		throw Refused("the call tree was not written by this version of the microscope");
	if (header.nodes < ROOTS || header.nodes > MOST_NODES || file.size() != sizeof(header) + header.nodes * sizeof(Row))
		throw Refused("the call tree is cut short");
	return header.nodes;
}

} // namespace

CallTree::CallTree(const std::string &calls_path, const std::string &roles_path)
{
	MappedFile file(calls_path);
	uint64_t nodes = rows_in(file);
	Roles roles = read_roles(roles_path);

	roles_.resize(nodes, Role::NONE);
	left_out_.resize(nodes);
	left_out_[ROOT_THREAD] = left_out_[ROOT_INTERRUPT] = true;
	for (uint64_t node = ROOTS; node < nodes; node++) {
		Row row;

		memcpy(&row, file.data() + sizeof(Header) + node * sizeof(row), sizeof(row));
		if (row.parent >= node)
			throw Refused("the call tree is garbled: a function stands before its caller");
		auto role = roles.find(row.function);
		if (role != roles.end())
			roles_[node] = role->second;
		left_out_[node] = left_out_[row.parent] || roles_[node] == Role::WAITS;
	}
}
