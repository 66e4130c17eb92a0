// SPDX-License-Identifier: GPL-2.0-or-later
#include "assembly.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace front {

namespace {

constexpr size_t LONGEST_ENTRY = 20;  // lines

bool begins(std::string_view line, std::string_view with) { return line.substr(0, with.size()) == with; }

bool has_any(std::string_view line, std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(), [&](auto word) { return line.find(word) != line.npos; });
}

std::string_view next_line(std::string_view text, size_t &at) {
    size_t stop = std::min(text.find('\n', at), text.size());
    auto line = text.substr(at, stop - at);
    at = stop + 1;
    return line;
}

bool number_at(std::string_view line, size_t &at, uint32_t &number) {
    auto end = std::from_chars(line.data() + at, line.data() + line.size(), number);
    if (end.ec != std::errc())
        return false;
    at = end.ptr - line.data();
    return true;
}

// The compile unit's own entry, the first of .debug_info: one line for each attribute that .debug_abbrev names.
struct Entry {
    std::vector<std::string> info, abbreviation;
    std::vector<std::string> strings;  // labels
    bool ready = false;

    bool write(std::string &out) {
        static constexpr size_t ATTRIBUTES = 6;
        if (info.size() <= ATTRIBUTES || info[1] != "\t.value\t0x5" || info[2] != "\t.byte\t0x1" ||
            info[4] != "\t.long\t.Ldebug_abbrev0" || abbreviation.empty() || abbreviation[0] != ".Ldebug_abbrev0:")
            return false;
        const size_t first = forms_of(info[5]);
        if (!first)
            return false;
        std::string values, forms;
        for (size_t at = first, line = ATTRIBUTES;; at += 2, line++) {
            if (at + 1 >= abbreviation.size() || line > info.size())
                return false;
            if (abbreviation[at] == "\t.byte\t0")
                break;
            if (line == info.size())
                return false;
            auto pair = abbreviation[at].substr(10) + " " + abbreviation[at + 1].substr(10);
            // The producer names every flag: who made a file says nothing about it.
            if (pair == "0x25 0xe" || pair == "0x25 0x8" || pair == "0x25 0x1f")
                continue;
            if (!known(pair))
                return false;
            if (begins(info[line], "\t.long\t.LASF"))
                strings.push_back(info[line].substr(7));
            values += info[line] + "\n";
            forms += abbreviation[at] + "\n" + abbreviation[at + 1] + "\n";
        }
        out += "\t.section\t.debug_info,\"\",@progbits\n.Ldebug_info0:\n\t.long\t.Lfront_end-.Lfront_begin\n.Lfront_begin:\n"
               "\t.value\t0x5\n\t.byte\t0x1\n\t.byte\t0x8\n\t.long\t.Ldebug_abbrev0\n\t.uleb128 0x1\n" +
               values + ".Lfront_end:\n\t.section\t.debug_abbrev,\"\",@progbits\n.Ldebug_abbrev0:\n\t.uleb128 0x1\n"
               "\t.uleb128 0x11\n\t.byte\t0\n" + forms + "\t.byte\t0\n\t.byte\t0\n\t.byte\t0\n";
        return ready = true;
    }

    // The place in abbreviation of a compile unit's attributes, by the line with its number; 0 for none.
    size_t forms_of(const std::string &number) const {
        for (size_t at = 1; at + 3 < abbreviation.size(); at += 2) {
            if (abbreviation[at] == number)
                return abbreviation[at + 1] == "\t.uleb128 0x11" ? at + 3 : 0;
            for (at += 3; at < abbreviation.size() && abbreviation[at] != "\t.byte\t0";)
                // An implicit constant stands behind its form.
                at += at + 1 < abbreviation.size() && abbreviation[at + 1] == "\t.uleb128 0x21" ? 3 : 2;
        }
        return 0;
    }

    // Language, name, folder, code by ranges or by address and size, lines: each in the forms that take one line.
    static bool known(const std::string &pair) {
        for (auto one : {"0x13 0xb", "0x3 0xe", "0x3 0x8", "0x3 0x1f", "0x1b 0xe", "0x1b 0x8", "0x1b 0x1f", "0x55 0x17",
                         "0x11 0x1", "0x12 0x7", "0x10 0x17"})
            if (pair == one)
                return true;
        return false;
    }

    bool names(std::string_view label) const {
        return std::find(strings.begin(), strings.end(), label) != strings.end();
    }
};

class Loosener {
public:
    Loosener(const std::vector<Place> &places, std::string &out, std::vector<std::pair<uint32_t, uint32_t>> &together)
        : out_(out), together_(together) {
        for (uint32_t number = 0; number < places.size(); number++)
            by_file_[places[number].file].push_back({places[number], number});
        for (auto &[file, list] : by_file_)
            std::stable_sort(list.begin(), list.end(), [](auto &a, auto &b) { return a.first.line < b.first.line; });
    }

    bool run(std::string_view assembly) {
        for (size_t at = 0; at < assembly.size();) {
            auto line = next_line(assembly, at);
            // The compiler's own lines stand between its #APP and #NO_APP too.
            if (line == "#APP" || line == "#NO_APP" || line == "# 0 \"\" 2")
                is_sources_ = line == "#APP";
            else if (begins(line, "# "))
                is_sources_ = true;
            // What the source's own assembly says of lines and of sections for debugging is not for us to change.
            if (is_sources_ && has_any(line, {".loc ", ".loc\t", ".file ", ".file\t", ".debug_"}))
                return false;
            if (begins(line, "\t.section\t.debug_"))
                begin_section(line.substr(10));
            else if (!section_.empty() && (begins(line, "\t.section") || begins(line, "\t.ident") || line == "\t.text"))
                end_section();
            if (section_.empty() ? !code(line) : !debug(line))
                return false;
        }
        end_section();
        return !debug_seen_ || entry_.ready;
    }

private:
    bool code(std::string_view line) {
        if (begins(line, "\t.loc "))
            return location(line);
        if (begins(line, "\t.file ") && line.size() > 7 && line[7] != '"')
            return file(line);
        out_.append(line).push_back('\n');
        return true;
    }

    bool file(std::string_view line) {
        size_t at = 7;
        uint32_t number;
        if (!number_at(line, at, number))
            return false;
        if (number == 0) {
            out_.append(line).push_back('\n');
            return true;
        }
        size_t open = line.find('"'), close = line.rfind('"');
        if (open == line.npos || close == open)
            return false;
        auto name = line.substr(open + 1, close - open - 1);
        if (name.find('"') != name.npos)
            return false;
        files_[number] = name;
        return true;
    }

    // Files are numbered, and named, as lines need them: others stood for what is left out.
    bool location(std::string_view line) {
        size_t at = 6;
        uint32_t number, row;
        if (!number_at(line, at, number) || at >= line.size() || line[at++] != ' ' || !number_at(line, at, row))
            return false;
        auto known = files_.find(number);
        if (known == files_.end())
            return false;
        auto fresh = numbers_.emplace(number, numbers_.size() + 1);
        if (fresh.second)
            out_ += "\t.file " + std::to_string(numbers_.size()) + " \"" + std::string(known->second) + "\"\n";
        uint32_t place = 0, line_of_place = 0;
        if (!place_of(known->second, row, place, line_of_place))
            return false;
        out_ += "\t.loc " + std::to_string(fresh.first->second) + " @" + std::to_string(place) + ":" +
                std::to_string(row - line_of_place);
        out_.append(line.substr(at)).push_back('\n');
        return true;
    }

    bool place_of(std::string_view file, uint32_t row, uint32_t &place, uint32_t &line) {
        auto list = by_file_.find(file);
        if (list == by_file_.end())
            return false;
        bool any = false;
        for (auto &[where, number] : list->second) {
            if (where.line > row)
                break;
            if (where.last_line < row)
                continue;
            if (!any) {
                place = number;
                line = where.line;
                any = true;
            } else {
                if (where.line != line)
                    return false;
                pairs_.insert({place, number});
            }
        }
        together_.assign(pairs_.begin(), pairs_.end());
        return any;
    }

    void begin_section(std::string_view rest) {
        end_section();
        section_ = rest.substr(0, rest.find(','));
        debug_seen_ = true;
        label_.clear();
        if (section_ != ".debug_info" && section_ != ".debug_abbrev")
            out_.append("\t.section\t").append(rest).push_back('\n');
    }

    void end_section() {
        if (section_ == ".debug_abbrev")
            entry_.write(out_);
        section_.clear();
    }

    bool debug(std::string_view line) {
        if (begins(line, "\t.section"))
            return true;
        if (section_ == ".debug_info") {
            // Labels stand before what they name, and only the first entry matters.
            if (entry_.info.size() < LONGEST_ENTRY && line.size() && line.back() != ':')
                entry_.info.emplace_back(line);
        } else if (section_ == ".debug_abbrev") {
            entry_.abbreviation.emplace_back(line);
        } else if (section_ == ".debug_str") {
            if (line.size() && line.back() == ':')
                label_ = line.substr(0, line.size() - 1);
            else if (entry_.names(label_))
                out_.append(label_).append(":\n").append(line).push_back('\n');
        } else {
            if (section_ != ".debug_line" && section_ != ".debug_aranges" && section_ != ".debug_rnglists" &&
                section_ != ".debug_line_str")
                return false;
            if (section_ == ".debug_line_str" && line.size() && line.back() != ':' && !begins(line, "\t.string"))
                return false;
            out_.append(line).push_back('\n');
        }
        return true;
    }

    std::string &out_;
    std::vector<std::pair<uint32_t, uint32_t>> &together_;
    std::set<std::pair<uint32_t, uint32_t>> pairs_;
    std::map<std::string_view, std::vector<std::pair<Place, uint32_t>>> by_file_;
    std::map<uint32_t, std::string_view> files_;
    std::map<uint32_t, uint32_t> numbers_;
    std::string section_, label_;
    Entry entry_;
    bool debug_seen_ = false;
    bool is_sources_ = false;  // the line stands in assembly that the source has
};

}

bool loosen(std::string_view assembly, const std::vector<Place> &places, std::string &loose,
            std::vector<std::pair<uint32_t, uint32_t>> &together) {
    loose.reserve(assembly.size());
    return Loosener(places, loose, together).run(assembly);
}

bool fix(std::string_view loose, const std::vector<uint32_t> &lines, std::string &assembly) {
    assembly.reserve(loose.size());
    for (size_t at = 0; at < loose.size();) {
        size_t found = loose.find("\n\t.loc ", at);
        if (found == loose.npos) {
            assembly.append(loose.substr(at));
            break;
        }
        size_t mark = loose.find('@', found);
        uint32_t place, offset;
        assembly.append(loose.substr(at, mark - at));
        if (mark == loose.npos || !number_at(loose, ++mark, place) || loose[mark++] != ':' ||
            !number_at(loose, mark, offset) || place >= lines.size())
            return false;
        assembly += std::to_string(lines[place] + offset);
        at = mark;
    }
    return true;
}

}
