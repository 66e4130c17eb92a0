// SPDX-License-Identifier: GPL-2.0-or-later
#include "trace_file.h"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "refused.h"

MappedFile::MappedFile(const std::string &path)
{
	struct stat about;
	int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &about) || !S_ISREG(about.st_mode)) {
		if (fd >= 0)
			close(fd);
		throw Refused("cannot read " + path);
	}
	size_ = static_cast<size_t>(about.st_size);
	if (size_) {
		void *memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);

		if (memory == MAP_FAILED) {
			close(fd);
			throw Refused("cannot map " + path);
		}
		data_ = static_cast<const uint8_t *>(memory);
		madvise(memory, size_, MADV_SEQUENTIAL);
	}
	close(fd);
}

MappedFile::~MappedFile()
{
	if (data_)
		munmap(const_cast<uint8_t *>(data_), size_);
}

namespace {

struct Header {
	char magic[4];
	uint32_t version, cpu, whole;
	uint64_t instructions, records, reserved;
};
static_assert(sizeof(Header) == TraceFile::HEADER);

/* A record is a byte and a varint at least. */
constexpr uint64_t SMALLEST_RECORD = 2;
/* Up to this many instructions never take more cycles than a double counts one by one. */
constexpr uint64_t MOST_INSTRUCTIONS = 1ull << 45;

} // namespace

TraceFile::TraceFile(const std::string &path) : name_(path.substr(path.rfind('/') + 1)), bytes_(path)
{
	Header header;

	if (bytes_.size() < sizeof(header))
		throw Refused(name_ + " is cut short");
	memcpy(&header, bytes_.data(), sizeof(header));
	if (memcmp(header.magic, "KPMA", 4) || header.version != 1)
		throw Refused(name_ + " was not written by this version of the microscope");
	if (header.whole != 1)
		throw Refused(name_ + " is not whole: the boot dropped accesses, or ended inside a measured interval");
	if (header.records > (bytes_.size() - sizeof(header)) / SMALLEST_RECORD)
		throw Refused(name_ + " is cut short");
	if (header.instructions > MOST_INSTRUCTIONS)
		throw Refused(name_ + " is garbled: more instructions than any boot has");
	cpu_ = header.cpu;
	instructions_ = header.instructions;
	records_ = header.records;
}

Records::Records(const TraceFile &file, uint32_t nodes)
	: file_(&file), at_(file.bytes().data() + TraceFile::HEADER), end_(file.bytes().data() + file.bytes().size()),
	  nodes_(nodes)
{
}

void Records::refuse(const char *reason) const
{
	throw Refused(file_->name() + " " + reason + " at record " + std::to_string(number_));
}

uint64_t Records::varint()
{
	uint64_t value = 0;

	if (at_ < end_ && *at_ < 0x80) /* nearly all are */
		return *at_++;
	for (unsigned int shift = 0; at_ < end_; shift += 7) {
		uint8_t byte = *at_++;

		if (shift == 63 && byte > 1)
			refuse("is garbled: a number of more than 64 bits");
		value |= static_cast<uint64_t>(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	refuse("is cut short");
}

void Records::count(uint64_t instructions)
{
	if (instructions > file_->instructions() - instructions_)
		refuse("is garbled: more instructions than its header says");
	instructions_ += instructions;
}

void Records::check_window(Kind kind)
{
	if (kind == Kind::NODE)
		return;
	if (open_ == (kind == Kind::BEGIN))
		refuse(open_ ? "is garbled: a measured interval inside another" : "is garbled: it is outside a measured interval");
	if (kind == Kind::BEGIN || kind == Kind::END)
		open_ = kind == Kind::BEGIN;
}

void Records::check_end() const
{
	if (at_ != end_)
		refuse("is garbled: more follows than its header says");
	if (open_)
		refuse("is cut short: a measured interval never ends");
}

bool Records::next(Record &record)
{
	if (number_ == file_->records()) {
		check_end();
		return false;
	}
	if (at_ == end_)
		refuse("is cut short");
	uint8_t op = *at_++;

	if ((op & 7) > static_cast<uint8_t>(Kind::END) || ((op & 7) > static_cast<uint8_t>(Kind::ATOMIC) && op & 0xc0))
		refuse("is garbled: an unknown sort of record");
	record.kind = static_cast<Kind>(op & 7);
	record.size = static_cast<uint8_t>(1u << (op >> 3 & 7));
	record.instructions = varint();
	count(record.instructions);
	check_window(record.kind);
	record.value = 0;
	if (record.kind <= Kind::ATOMIC) {
		uint64_t folded = varint();

		addresses_[op >> 6] += (folded >> 1) ^ (0 - (folded & 1));
		record.value = addresses_[op >> 6];
	} else if (record.kind == Kind::NODE) {
		record.value = varint();
		if (record.value >= nodes_)
			refuse("is garbled: a function that the call tree does not have");
	}
	record.number = number_++;
	return true;
}
