// SPDX-License-Identifier: GPL-2.0-or-later
#include "condition.h"

#include "builtins.h"

namespace front {

namespace {

constexpr const char *REASON = "own-condition";

struct Value {
    uint64_t bits = 0;
    bool is_unsigned = false;

    int64_t number() const { return static_cast<int64_t>(bits); }
    bool negative() const { return !is_unsigned && number() < 0; }
};

Value truth(bool is) { return {is, false}; }

class Condition {
public:
    Condition(Expansion &expansion, Macros &macros, uint32_t defined, bool warns)
        : expansion_(expansion), macros_(macros), defined_(defined), warns_(warns) {
        step();
    }

    bool holds() {
        Value value = choice();
        if (token_->form != Form::End)
            throw Unfit{REASON};
        return value.bits;
    }

private:
    void step() {
        uint32_t line;
        do
            token_ = expansion_.next(line);
        while (token_->form == Form::Padding);
    }

    bool take(std::string_view mark) {
        if (!token_->is(mark))
            return false;
        step();
        return true;
    }

    Value choice() {
        Value value = binary(0);
        if (!take("?"))
            return value;
        const bool first = value.bits;
        skipping_ += !first;
        Value one = choice();
        skipping_ -= !first;
        if (!take(":"))
            throw Unfit{REASON};
        skipping_ += first;
        Value other = choice();
        skipping_ -= first;
        promote(one, other);
        return first ? one : other;
    }

    // gcc warns where a negative number becomes an unsigned one.
    void promote(Value &one, Value &other) const {
        if (one.is_unsigned == other.is_unsigned)
            return;
        if (!skipping_ && (one.negative() || other.negative()))
            throw Unfit{REASON};
        one.is_unsigned = other.is_unsigned = true;
    }

    static constexpr int LEVELS = 10;

    // The operator here, if it is of this level: 0 binds least.
    std::string_view operator_of(int level) const {
        static constexpr std::string_view OF[LEVELS][4] = {
            {"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
        for (auto one : OF[level])
            if (!one.empty() && token_->is(one))
                return one;
        return "";
    }

    Value binary(int level) {
        if (level == LEVELS)
            return unary();
        Value left = binary(level + 1);
        for (;;) {
            const std::string_view what = operator_of(level);
            if (what.empty())
                return left;
            step();
            if (level < 2) {
                const bool decided = level == 0 ? left.bits != 0 : left.bits == 0;
                skipping_ += decided;
                Value right = binary(level + 1);
                skipping_ -= decided;
                left = truth(level == 0 ? left.bits || right.bits : left.bits && right.bits);
            } else {
                Value right = binary(level + 1);
                left = what == "<<" || what == ">>" ? shifted(left, what == "<<", right) : computed(left, what, right);
            }
        }
    }

    Value shifted(Value value, bool up, Value by) const {
        if (by.negative() || by.bits > 63) {
            if (!skipping_)
                throw Unfit{REASON};
            return value;
        }
        if (!up) {
            value.bits = value.is_unsigned ? value.bits >> by.bits : static_cast<uint64_t>(value.number() >> by.bits);
            return value;
        }
        Value moved{value.bits << by.bits, value.is_unsigned};
        if (!value.is_unsigned && !skipping_ && moved.number() >> by.bits != value.number())
            throw Unfit{REASON};
        return moved;
    }

    Value computed(Value one, std::string_view what, Value other) const {
        promote(one, other);
        const bool plain = one.is_unsigned;
        const uint64_t a = one.bits, b = other.bits;
        if (what == "==" || what == "!=")
            return truth((a == b) == (what == "=="));
        if (what[0] == '<' || what[0] == '>') {
            const bool less = plain ? a < b : one.number() < other.number();
            return truth(what == "<" ? less : what == ">=" ? !less : what == ">" ? !less && a != b : less || a == b);
        }
        if (what == "|")
            return {a | b, plain};
        if (what == "&")
            return {a & b, plain};
        if (what == "^")
            return {a ^ b, plain};
        return reckoned(one, what[0], other);
    }

    Value reckoned(Value one, char what, Value other) const {
        int64_t result = 0;
        const int64_t a = one.number(), b = other.number();
        bool over = false;
        if (what == '/' || what == '%') {
            over = !b || (!one.is_unsigned && a == INT64_MIN && b == -1);
            if (!over && one.is_unsigned)
                result = static_cast<int64_t>(what == '/' ? one.bits / other.bits : one.bits % other.bits);
            else if (!over)
                result = what == '/' ? a / b : a % b;
        } else {
            over = what == '+' ? __builtin_add_overflow(a, b, &result) : what == '-' ? __builtin_sub_overflow(a, b, &result) : __builtin_mul_overflow(a, b, &result);
            over &= !one.is_unsigned;
        }
        if (over && !skipping_)
            throw Unfit{REASON};
        return {static_cast<uint64_t>(result), one.is_unsigned};
    }

    Value unary() {
        if (take("!"))
            return truth(!unary().bits);
        if (take("+"))
            return unary();
        if (take("-")) {
            Value value = unary();
            if (!value.is_unsigned && value.number() == INT64_MIN && !skipping_)
                throw Unfit{REASON};
            return {-value.bits, value.is_unsigned};
        }
        if (take("~")) {
            Value value = unary();
            return {~value.bits, value.is_unsigned};
        }
        if (take("(")) {
            Value value = choice();
            if (!take(")"))
                throw Unfit{REASON};
            return value;
        }
        return primary();
    }

    Value primary() {
        if (token_->form == Form::Number) {
            Value value = number(token_->view());
            step();
            return value;
        }
        if (token_->form != Form::Word)
            throw Unfit{REASON};
        if (token_->name == defined_)
            return defined();
        // A name that is none of a macro is 0.
        if (warns_ && !skipping_)
            throw Unfit{"own-undefined"};
        step();
        return {};
    }

    Value defined() {
        // gcc may warn of one that a macro made.
        if (expansion_.in_macro())
            throw Unfit{REASON};
        const Lexeme *name = expansion_.next_plain();
        const bool round = name->is('(');
        if (round)
            name = expansion_.next_plain();
        if (name->form != Form::Word || name->name == defined_ || expansion_.in_macro())
            throw Unfit{REASON};
        const Macro *macro = macros_.find(name->name);
        if (!macro && name->view().substr(0, 5) == "__has" && !is_asked(name->view()))
            throw Unfit{OWN_HAS};
        if (round && !expansion_.next_plain()->is(')'))
            throw Unfit{REASON};
        step();
        return truth(macro);
    }

    static Value number(std::string_view text) {
        unsigned base = 10;
        size_t at = 0;
        if (text[0] == '0' && text.size() > 1) {
            const char mark = text[1] | 32;
            base = mark == 'x' ? 16 : mark == 'b' ? 2 : 8;
            at = base == 8 ? 1 : 2;
        }
        uint64_t value = 0;
        const size_t begin = at;
        for (; at < text.size(); at++) {
            const char c = text[at] | 32;
            const unsigned digit = text[at] >= '0' && text[at] <= '9' ? text[at] - '0' : c >= 'a' && c <= 'f' && base == 16 ? c - 'a' + 10 : 99;
            if (digit == 99)
                break;
            if (digit >= base || __builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value))
                throw Unfit{REASON};
        }
        if (at == begin && base != 8)
            throw Unfit{REASON};
        bool is_unsigned = false;
        const std::string_view suffix = text.substr(at);
        if (suffix == "u" || suffix == "U" || suffix == "ul" || suffix == "UL" || suffix == "ull" || suffix == "ULL" || suffix == "lu" || suffix == "LU")
            is_unsigned = true;
        else if (!suffix.empty() && suffix != "l" && suffix != "L" && suffix != "ll" && suffix != "LL")
            throw Unfit{REASON};
        if (!is_unsigned && value >> 63) {
            if (base == 10)
                throw Unfit{REASON};
            is_unsigned = true;
        }
        return {value, is_unsigned};
    }

    Expansion &expansion_;
    Macros &macros_;
    const Lexeme *token_ = nullptr;
    uint32_t defined_;
    bool warns_;
    int skipping_ = 0;
};

}

bool condition_holds(Expansion &expansion, Macros &macros, uint32_t defined, bool warns) {
    return Condition(expansion, macros, defined, warns).holds();
}

}
