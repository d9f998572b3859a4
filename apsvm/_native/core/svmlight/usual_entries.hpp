// The short path through a row: entries index:value as programs write them, of digits except for the '-' and the '.' of a
// value, and one blank between two. It has no errors: what it does not read is left to features.cpp.
//
// A token's end is found by comparing 32 bytes at once, and the index and the decimals, whose ends are then known, are
// converted together, with no branch on how many digits they have.
#pragma once

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>

#if defined(__SSE2__) && defined(__x86_64__)
#define APSVM_USUAL_ENTRIES
#include <emmintrin.h>
#endif

#include "svmlight/numbers.hpp"
#include "svmlight/text.hpp"

namespace apsvm::svmlight {

struct UsualEntry {
    std::int64_t index;
    double value;
};

#ifdef APSVM_USUAL_ENTRIES

namespace usual {

// The last n of eight bytes, in the order of memory.
inline constexpr std::uint64_t last_bytes[] = {
    0,
    0xff00000000000000,
    0xffff000000000000,
    0xffffff0000000000,
    0xffffffff00000000,
    0xffffffffff000000,
    0xffffffffffff0000,
    0xffffffffffffff00,
    0xffffffffffffffff,
};

inline __m128i load_two(const void *first, const void *second) {
    std::int64_t low, high;
    std::memcpy(&low, first, sizeof low);
    std::memcpy(&high, second, sizeof high);
    return _mm_set_epi64x(high, low);
}

struct Pair {
    std::uint64_t first, second;
    bool are_digits;  // and nothing else
};

// The numbers of 0 to 8 digits that end before `first_end` and before `second_end`; the 8 bytes there can be read.
inline Pair read_pair(const char *first_end, std::ptrdiff_t n_first, const char *second_end, std::ptrdiff_t n_second) {
    const __m128i text = load_two(first_end - 8, second_end - 8);
    const __m128i kept = load_two(last_bytes + n_first, last_bytes + n_second);
    const __m128i digits = _mm_and_si128(_mm_sub_epi8(text, _mm_set1_epi8('0')), kept);
    // Bytes are signed here: one below '0' shows by its own top bit.
    const __m128i faults = _mm_or_si128(_mm_cmpgt_epi8(digits, _mm_set1_epi8(9)), digits);
    const __m128i twos = _mm_srli_epi16(_mm_mullo_epi16(digits, _mm_set1_epi16(10 * 256 + 1)), 8);
    const __m128i fours = _mm_madd_epi16(twos, _mm_set1_epi32(100 + (1 << 16)));
    const __m128i eights = _mm_madd_epi16(_mm_packs_epi32(fours, fours), _mm_set1_epi32(10'000 + (1 << 16)));
    const auto both = static_cast<std::uint64_t>(_mm_cvtsi128_si64(eights));
    return {both & 0xffffffff, both >> 32, _mm_movemask_epi8(faults) == 0};
}

// Where bytes are set of the 32, as bits.
inline std::uint32_t mask_of(__m128i low, __m128i high) {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(low)) |
           static_cast<std::uint32_t>(_mm_movemask_epi8(high)) << 16;
}

// The number of 1 to 18 digits in all of [p, end), -1 if it is none.
inline std::int64_t read_digits(const char *p, const char *end) {
    if (end == p || end - p > 18) return -1;
    std::int64_t number = 0;
    for (; is_digit(*p); ++p) number = number * 10 + (*p - '0');
    return p == end ? number : -1;
}

// An entry of a long index or of many decimals: `whole`, at most seven digits from `digits` on, is its value up to the
// point. Its index is -1 if it is none.
[[gnu::noinline]] inline UsualEntry read_long(const char *p, const char *index_end, const char *digits,
                                              const char *point, const char *end, std::uint64_t whole) {
    const std::ptrdiff_t n_index = index_end - p, n_decimals = end - point - 1;
    const std::ptrdiff_t n_last = n_decimals < 8 ? n_decimals : 8, n_first = n_decimals - n_last;
    const bool is_short = n_first <= 8 && point - digits <= 3;  // 19 digits fit 64 bits
    const Pair pair = read_pair(index_end, n_index <= 8 ? n_index : 0, end - 8, is_short ? n_first : 0);
    UsualEntry entry{n_index <= 8 ? static_cast<std::int64_t>(pair.first) : read_digits(p, index_end), 0.0};
    if (!pair.are_digits) return {-1, 0.0};
    if (is_short) {
        const Pair last = read_pair(end, n_last, end, 0);
        if (!last.are_digits) return {-1, 0.0};
        const std::uint64_t mantissa =
            (whole * whole_powers_of_ten[n_first] + pair.second) * whole_powers_of_ten[n_last] + last.first;
        if (mantissa <= largest_exact) {
            entry.value = decimal(false, mantissa, n_decimals);
            return entry;
        }
    }
    const auto [stop, error] = std::from_chars(digits, end, entry.value);
    if (error != std::errc() || stop != end) return {-1, 0.0};
    return entry;
}

}  // namespace usual

// Whether read_usual() may be asked for entries of the line from p on: it looks at 32 bytes, and at 8 before the colon.
inline bool may_read_usual(const Line &line, const char *p) {
    return line.readable - line.end >= 32 && p - line.readable_from >= 8;
}

// The entry at p, which moves behind it; false, and nothing is done, if it is of another kind.
[[gnu::always_inline]] inline bool read_usual(const char *&p, UsualEntry &entry) {
    using namespace usual;
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p) + 1);
    const __m128i blank = _mm_set1_epi8(' '), colon = _mm_set1_epi8(':');
    const std::uint32_t colons = mask_of(_mm_cmpeq_epi8(low, colon), _mm_cmpeq_epi8(high, colon));
    const std::uint32_t blanks = mask_of(_mm_cmpeq_epi8(_mm_min_epu8(low, blank), low),  // and all below
                                         _mm_cmpeq_epi8(_mm_min_epu8(high, blank), high));
    if (colons == 0 || blanks == 0) return false;
    const std::ptrdiff_t n_index = std::countr_zero(colons), n_entry = std::countr_zero(blanks);
    if (n_index == 0 || n_index > n_entry) return false;
    const char *const index_end = p + n_index, *const end = p + n_entry;

    const char *digits = index_end + 1;
    const bool negative = *digits == '-';
    digits += negative;  // no branch: signs are what they did not can predict
    std::uint64_t whole = static_cast<unsigned char>(*digits - '0');
    if (whole > 9) return false;
    const char *point = digits + 1;
    if (*point != '.') {
        for (; is_digit(*point); ++point) whole = whole * 10 + static_cast<unsigned>(*point - '0');
        if (point == end) {
            if (n_index > 8 || point - digits > 15) return false;
            const Pair pair = read_pair(index_end, n_index, index_end, 0);
            if (!pair.are_digits) return false;
            entry.index = static_cast<std::int64_t>(pair.first);
            entry.value = decimal(negative, whole, 0);
            p = end;
            return true;
        }
        // Seven, and eight decimals, are below 2^53.
        if (*point != '.' || point - digits > 7) return false;
    }
    const std::ptrdiff_t n_decimals = end - point - 1;
    if (n_index > 8 || n_decimals > 8) [[unlikely]] {
        entry = read_long(p, index_end, digits, point, end, whole);
        if (entry.index < 0) return false;
        if (negative) entry.value = -entry.value;
    } else {
        const Pair pair = read_pair(index_end, n_index, end, n_decimals);
        entry.index = static_cast<std::int64_t>(pair.first);
        entry.value = decimal(negative, whole * whole_powers_of_ten[n_decimals] + pair.second, n_decimals);
        if (!pair.are_digits) return false;
    }
    p = end;
    return true;
}

#else

inline bool may_read_usual(const Line &, const char *) { return false; }
inline bool read_usual(const char *&, UsualEntry &) { return false; }

#endif

}  // namespace apsvm::svmlight
