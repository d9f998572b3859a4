// Numbers of svmlight text, correctly rounded.
//
// A decimal of at most 2^53 divided by a power of ten of at most 10^22 is exact except for the one rounding of the
// division (Clinger 1990); std::from_chars does the rest. Decimals are taken eight at a time, with no branch on how many
// there are (Langdale, Lemire 2019), as long as eight bytes can be read.
#pragma once

#include <bit>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>

#include "svmlight/text.hpp"

namespace apsvm::svmlight {

static_assert(FLT_EVAL_METHOD == 0, "the short decimal path needs double arithmetic without excess precision");

enum class Number { fine, malformed, overflow };

// A whole token [+-]digits[.digits][e[+-]digits] to the nearest double. Underflow rounds to a signed zero.
Number parse_number(const char *begin, const char *end, double &out);

// A decimal integer, a leading '+' allowed: malformed unless it is the whole of [begin, end).
Number parse_integer(const char *begin, const char *end, std::int64_t &out);

// Whether a token that is no number is a way of writing infinity or NaN.
bool is_not_finite_word(const char *begin, const char *end);

// Says why the token at `at`, which was to be `what`, is no such number.
[[noreturn]] void fail_number(const Line &line, const char *at, Number status, const std::string &what,
                              const char *type = "float64");

inline constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                           1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

inline constexpr std::uint64_t whole_powers_of_ten[] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000,
                                                        100'000'000};

inline constexpr std::uint64_t repeated(std::uint64_t byte) { return byte * 0x0101010101010101; }

// Eight digits, 0 to 9 each and the first of them in the lowest byte: first as pairs, then as fours, then all.
inline std::uint64_t eight_digits(std::uint64_t digits) {
    digits = digits * 10 + (digits >> 8);
    constexpr std::uint64_t pairs = 0x000000ff000000ff;
    return ((digits & pairs) * (100 + (1'000'000ull << 32)) + ((digits >> 16) & pairs) * (1 + (10'000ull << 32))) >> 32;
}

// The digits at p, of at most eight characters that can be read: how many there are is added to p, and they to the number
// so far, modulo 2^64.
inline std::ptrdiff_t append_eight(const char *&p, std::uint64_t &number) {
    std::uint64_t text;
    std::memcpy(&text, p, sizeof text);
    text ^= repeated('0');  // digits are now 0..9
    // Beyond a byte that is no digit a carry may flag another one, which does not matter: the first one counts.
    const std::uint64_t no_digit = ((text + repeated(0x80 - 10)) | text) & repeated(0x80);
    const int n = std::countr_zero(no_digit) / 8;
    if (n == 0) return 0;
    // Moved up until zeros stand before them there are eight digits.
    number = number * whole_powers_of_ten[n] + eight_digits(text << (64 - 8 * n));
    p += n;
    return n;
}

// The digits at p, which moves behind them, likewise; the bytes before `readable` can be read.
inline void append_digits(const char *&p, const char *readable, std::uint64_t &number) {
    if constexpr (std::endian::native == std::endian::little) {
        while (readable - p >= 8)
            if (append_eight(p, number) < 8) return;
    }
    for (; is_digit(*p); ++p) number = number * 10 + static_cast<unsigned>(*p - '0');
}

// A mantissa up to here is a double.
inline constexpr std::uint64_t largest_exact = std::uint64_t{1} << 53;

// Such a mantissa divided by 10^n_decimals, at most 22 of them.
inline double decimal(bool negative, std::uint64_t mantissa, std::ptrdiff_t n_decimals) {
    const double magnitude = static_cast<double>(static_cast<std::int64_t>(mantissa)) / powers_of_ten[n_decimals];
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | std::uint64_t{negative} << 63);
}

// The number at p, which moves behind its token; the bytes before `readable` can be read.
inline Number read_number(const char *&p, const char *readable, double &out) {
    const char *const begin = p;
    const bool negative = *p == '-';
    p += negative | (*p == '+');  // no branch: signs are what they did not can predict
    const char *const unsigned_begin = p;
    std::uint64_t mantissa = 0;
    for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
    std::ptrdiff_t n_digits = p - unsigned_begin, n_decimals = 0;
    if (*p == '.') {
        const char *const point = p++;
        append_digits(p, readable, mantissa);
        n_decimals = p - point - 1;
        n_digits += n_decimals;
    }
    if (ends_token(*p) && n_digits > 0) [[likely]] {
        // 19 digits fit 64 bits, so a mantissa of at most 2^53 is known to be the true one.
        if (n_digits <= 19 && mantissa <= largest_exact) [[likely]] {
            out = decimal(negative, mantissa, n_decimals);
            return Number::fine;
        }
        double number;
        // Without an exponent and below 300 digits nothing can overflow or underflow.
        if (n_digits < 300 && std::from_chars(unsigned_begin, p, number).ec == std::errc()) {
            out = negative ? -number : number;
            return Number::fine;
        }
    }
    if ((*p == 'e' || *p == 'E') && n_digits > 0) {
        double number;  // what does not fit is left to parse_number, which tells overflow from underflow
        const auto [stop, error] = std::from_chars(unsigned_begin, readable, number);
        if (error == std::errc() && ends_token(*stop) && !std::isinf(number)) {
            p = stop;
            out = negative ? -number : number;
            return Number::fine;
        }
    }
    p = token_end(begin);
    return parse_number(begin, p, out);
}

}  // namespace apsvm::svmlight
