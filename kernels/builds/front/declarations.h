// SPDX-License-Identifier: GPL-2.0-or-later
// The declarations of a preprocessed file, which of them its own text reaches, and what follows from that.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assembly.h"
#include "checks.h"
#include "digest.h"
#include "outlines.h"
#include "pieces.h"

namespace front {

inline constexpr size_t WHOLE = 32;  // bytes, unlike the sum of a run

// Which numbers of their layouts the outlines have.
enum class Numbers { All, NoSizes, None };

class Declarations {
public:
    Unit unit;
    Reading reading;
    std::vector<bool> kept;    // by piece: reached
    Hollows hollow;
    Pieces pieces;

    // By piece, what the compiler said of structures of which a part is needed. Those of which it says nothing are entire.
    std::map<uint32_t, Layout> layouts;
    // By piece, whether gcc takes a parameter apart that points to a hollow structure, or the sum of all that the structure needs.
    std::map<uint32_t, std::string> taken_apart;
    std::vector<bool> entire;

    // Begins anew with another unit.
    void take(Unit next);

    // Splits the unit, and marks what is reached; returns why it cannot, or "".
    std::string find_kept();
    bool is_split() const { return is_split_; }
    // Keeps all that is mentioned in any way, with nothing hollow.
    void keep_mentioned();
    bool has_hollow() const;
    // Marks what is reached, once more: there are other layouts or entire structures.
    void reach_again();

    // Adds all of the file that has a say in its object, with these numbers of the structures of which it needs a part.
    void add_kept(Blake2b &hash, Numbers numbers) const;
    // The sizes of these structures.
    std::vector<uint64_t> sizes() const;
    void set_sizes(const std::vector<uint64_t> &sizes);
    // Whether a dump of functions declares a variable that is such a structure: its size is not printed.
    bool declares_one(const std::string &tree) const;
    // A sum over all tokens, kept or not, and whether macros brought them: all that the compiler's complaints can come from.
    std::string whole() const;
    // A character for each token that is kept: whether a macro brought it.
    std::string expanded() const;
    // Where the kept functions stand, in their order.
    std::vector<Place> places() const;

    bool is_unused(uint32_t number) const { return pieces.all[number].header && !kept[number]; }
    // Whether something surely uses each thing that must be used. shown: names of which that is known.
    bool all_used(const std::vector<std::string> &shown) const;
    // Of what must be used, the names that what is kept uses: without a word the compiler has read these pieces, no other of which may use them.
    std::vector<std::string> shown_used(const std::vector<bool> &compiled) const;
    // What to compile: the kept, those that have a say in the numbers of variables, and these numbers, with whole structures.
    std::vector<bool> to_compile(const std::vector<uint32_t> &numbers) const;
    // The kept and those that have a say in the numbers of variables, and what of that is hollow: what the compiler reads with other sizes.
    std::vector<bool> to_compare(Hollows &hollow_there) const;
    // These structures with all that their layouts come from, as a preprocessed file.
    std::string structures(const std::vector<uint32_t> &numbers) const;
    // Marks these pieces, and of headers the pragmas and what may have names that the splitter does not see; and what all these reach.
    void mark(const std::vector<uint32_t> &numbers, std::vector<bool> &marked) const;
    // The marked pieces as a preprocessed file, with the tags of hollow ones.
    std::string text(const std::vector<bool> &marked, const Hollows &hollow_there = {}) const;

private:
    void mark_these(const std::vector<uint32_t> &numbers, std::vector<bool> &marked) const;
    std::string tags(const Piece &piece) const;
    std::string attributes(const Piece &piece) const;
    std::string outlined(uint32_t number, const Hollows &hollow_there, Numbers numbers = Numbers::All) const;
    std::vector<uint32_t> idle(const std::vector<bool> &marked) const;
    const std::vector<uint32_t> &used_elsewhere() const;
    std::vector<uint32_t> doubted() const;
    const std::string &content() const;
    void forget();
    void add_marker(const Token &token, std::string &written) const;
    void add_gcc_text(const Piece &piece, size_t &macro, std::string &written) const;
    void add_tokens(const Piece &piece, std::string &written) const;
    void add_places(const Piece &piece, std::vector<Place> &list) const;

    bool is_split_ = false;
    mutable std::string content_;
    mutable std::optional<std::vector<uint32_t>> elsewhere_;
};

}
