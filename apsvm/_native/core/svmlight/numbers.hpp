// Numbers of svmlight text, correctly rounded.
//
// A decimal of at most 2^53 divided by a power of ten of at most 10^22 is exact but for the one rounding of the
// division (Clinger 1990); std::from_chars does the rest.
#pragma once

#include <cfloat>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include "text.hpp"

namespace apsvm::svmlight {

static_assert(FLT_EVAL_METHOD == 0, "the short decimal path needs double arithmetic without excess precision");

enum class Number { fine, malformed, overflow };

// A whole token [+-]digits[.digits][e[+-]digits] to the nearest double. Underflow rounds to a signed zero.
Number parse_number(const char *begin, const char *end, double &out);

// A decimal integer, a leading '+' allowed: malformed unless it is the whole of [begin, end).
Number parse_integer(const char *begin, const char *end, std::int64_t &out);

// Whether a token that is no number is a way of writing infinity or NaN.
bool is_not_finite_word(const char *begin, const char *end);

inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The number at p, which moves behind its token.
inline Number read_number(const char *&p, double &out) {
    const char *const begin = p;
    const bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    const char *const unsigned_begin = p;
    std::uint64_t mantissa = 0;
    for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
    std::ptrdiff_t n_digits = p - unsigned_begin, n_decimals = 0;
    if (*p == '.') {
        const char *const point = p++;
        for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
        n_decimals = p - point - 1;
        n_digits += n_decimals;
    }
    if (ends_token(*p) && n_digits > 0) [[likely]] {
        double number;
        // 19 digits fit 64 bits, so a mantissa of at most 2^53 is known to be the true one.
        if (n_digits <= 19 && mantissa <= (std::uint64_t{1} << 53)) [[likely]] {
            number = static_cast<double>(mantissa);
            if (n_decimals > 0) number /= powers_of_ten[n_decimals];
            out = negative ? -number : number;
            return Number::fine;
        }
        // Without an exponent and below 300 digits nothing can overflow or underflow.
        if (n_digits < 300 && std::from_chars(unsigned_begin, p, number).ec == std::errc()) {
            out = negative ? -number : number;
            return Number::fine;
        }
    }
    p = token_end(begin);
    return parse_number(begin, p, out);
}

}  // namespace apsvm::svmlight
