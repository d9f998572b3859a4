#include "svmlight/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace apsvm::svmlight {

Number parse_number(const char *begin, const char *end, double &out) {
    const char *p = begin;
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '+' || *p == '-')) ++p;
    const char *const unsigned_begin = p;
    bool any = false, nonzero = false;
    std::int64_t magnitude = 0;  // |number| = 0.d1d2... * 10^magnitude with d1 != 0
    for (; p != end && is_digit(*p); ++p) {
        any = true;
        nonzero = nonzero || *p != '0';
        magnitude += nonzero;
    }
    if (p != end && *p == '.') {
        for (++p; p != end && is_digit(*p); ++p) {
            any = true;
            nonzero = nonzero || *p != '0';
            magnitude -= !nonzero;
        }
    }
    if (!any) return Number::malformed;
    if (p != end && (*p == 'e' || *p == 'E')) {
        ++p;
        const bool down = p != end && *p == '-';
        if (p != end && (*p == '+' || *p == '-')) ++p;
        if (p == end) return Number::malformed;
        constexpr std::int64_t plenty = 100'000'000'000'000'000;  // beyond any magnitude a line can make up for
        std::int64_t exponent = 0;
        for (; p != end && is_digit(*p); ++p) exponent = std::min(exponent * 10 + (*p - '0'), plenty);
        magnitude += down ? -exponent : exponent;
    }
    if (p != end) return Number::malformed;

    double number = 0.0;
    if (nonzero) {
        const auto [stop, error] = std::from_chars(unsigned_begin, end, number);
        if (error == std::errc::result_out_of_range || std::isinf(number)) {
            if (magnitude > 0) return Number::overflow;
            number = 0.0;
        }
    }
    out = negative ? -number : number;
    return Number::fine;
}

Number parse_integer(const char *begin, const char *end, std::int64_t &out) {
    if (begin != end && *begin == '+') {
        ++begin;
        if (begin == end || !is_digit(*begin)) return Number::malformed;
    }
    const auto [stop, error] = std::from_chars(begin, end, out);
    if (error == std::errc::invalid_argument || stop != end) return Number::malformed;
    return error == std::errc::result_out_of_range ? Number::overflow : Number::fine;
}

bool is_not_finite_word(const char *begin, const char *end) {
    if (begin != end && (*begin == '+' || *begin == '-')) ++begin;
    std::string word;
    for (; begin != end && word.size() < 9; ++begin) word += static_cast<char>(*begin | 0x20);
    return word == "inf" || word == "infinity" || word == "nan" || word.starts_with("nan(");
}

void fail_number(const Line &line, const char *at, Number status, const std::string &what,
                 const char *type) {
    const char *const stop = token_end(at);
    if (status == Number::overflow) line.fail(at, what + " overflows " + type + ": found " + quoted(at, stop));
    if (is_not_finite_word(at, stop))
        line.fail(at, "expected a finite number as " + what + ", found " + quoted(at, stop));
    line.fail(at, "expected a number as " + what + ", " + line.found(at));
}

}  // namespace apsvm::svmlight
