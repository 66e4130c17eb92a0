/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What each node of the call tree means to the model: whether it is spinning or sleeping, and which lock function it is. */
#ifndef KPERFLAB_REPLAY_CALL_TREE_H
#define KPERFLAB_REPLAY_CALL_TREE_H

#include <cstdint>
#include <string>
#include <vector>

/* Letters of the roles file, which the lab writes from the kernel's symbols (workers/microscope/lock_functions.py). */
enum class Role : char {
	NONE = '-',
	WAITS = 'w', /* spins, sleeps or schedules: what it and its callees do is left out, for the model waits instead */
	READ_LOCK = 'r',
	READ_UNLOCK = 'R',
	MUTEX_LOCK = 'm',
	MUTEX_UNLOCK = 'M',
	DOWN_READ = 'd',
	UP_READ = 'D',
	DOWN_WRITE = 'x',
	UP_WRITE = 'X',
	DOWNGRADE = 'g',
};

class CallTree {
public:
	/* Throws Refused. roles: lines "ADDRESS ROLE", hexadecimal. */
	CallTree(const std::string &calls_path, const std::string &roles_path);

	uint32_t size() const { return static_cast<uint32_t>(roles_.size()); }
	Role role(uint32_t node) const { return roles_[node]; }
	/* Whether what the node does is no work of the measured program's. */
	bool is_left_out(uint32_t node) const { return left_out_[node]; }

private:
	std::vector<Role> roles_;
	std::vector<bool> left_out_;
};

#endif
