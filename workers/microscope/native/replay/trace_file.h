/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One virtual CPU's recorded accesses, as the plugin wrote them. A guest decides what they hold, so every number is
 * checked before it is used; whatever does not fit throws Refused.
 */
#ifndef KPERFLAB_REPLAY_TRACE_FILE_H
#define KPERFLAB_REPLAY_TRACE_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>

/* A whole file, mapped for reading. */
class MappedFile {
public:
	explicit MappedFile(const std::string &path);
	~MappedFile();
	MappedFile(const MappedFile &) = delete;
	MappedFile &operator=(const MappedFile &) = delete;

	const uint8_t *data() const { return data_; }
	size_t size() const { return size_; }

private:
	const uint8_t *data_ = nullptr;
	size_t size_ = 0;
};

enum class Kind : uint8_t { LOAD, STORE, ATOMIC, NODE, BEGIN, END };

struct Record {
	Kind kind;
	uint8_t size;	       /* of an access, in bytes */
	uint64_t instructions; /* executed since the record before */
	uint64_t value;	       /* address of an access, row of a node */
	uint64_t number;       /* of this record in its file, from 0 */
};

class TraceFile {
public:
	explicit TraceFile(const std::string &path);

	uint32_t cpu() const { return cpu_; }
	uint64_t records() const { return records_; }
	const MappedFile &bytes() const { return bytes_; }
	uint64_t instructions() const { return instructions_; }
	const std::string &name() const { return name_; }

	static constexpr size_t HEADER = 40;

private:
	std::string name_;
	MappedFile bytes_;
	uint32_t cpu_;
	uint64_t instructions_, records_;
};

/* The records of a file, one after the other. nodes: rows of the call tree, which bounds what a node may be. */
class Records {
public:
	Records(const TraceFile &file, uint32_t nodes);
	/* False after the last record. */
	bool next(Record &record);

private:
	[[noreturn]] void refuse(const char *reason) const;
	void check_end() const;
	uint64_t varint();
	void count(uint64_t instructions);
	void check_window(Kind kind);

	const TraceFile *file_;
	const uint8_t *at_, *end_;
	uint64_t addresses_[4] = {}; /* the last one of each region */
	uint64_t number_ = 0, instructions_ = 0;
	uint32_t nodes_;
	bool open_ = false;
};

#endif
