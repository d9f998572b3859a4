#include "rows/dense_rows.hpp"

#include <algorithm>
#include <cstring>

#include "support/threads.hpp"

// Into each of the clones.
#define APSVM_INLINE inline __attribute__((always_inline))

namespace apsvm {

namespace {

constexpr std::size_t kRowsOfDots = 4, kRowsOfSum = 8;
constexpr std::size_t kBytesAhead = 4096, kLine = 64;
// Rows with fewer values are too short to be taken one after another.
constexpr std::size_t kLongForDots = 16, kLongForSum = 48;
// Rows from this many values on have their sums in registers, up to kLongForSum: 16 registers hold no more.
constexpr std::size_t kInRegisters = 8;

typedef double Four __attribute__((vector_size(4 * sizeof(double))));
typedef float NarrowFour __attribute__((vector_size(4 * sizeof(float))));

APSVM_INLINE Four load(const double *from) {
    Four lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

APSVM_INLINE Four load(const float *from) {
    NarrowFour lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    // Not __builtin_convertvector: GCC makes two conversions of halves of it.
    return Four{static_cast<double>(lanes[0]), static_cast<double>(lanes[1]), static_cast<double>(lanes[2]),
                static_cast<double>(lanes[3])};
}

// How many rows behind a group of rows those stand that should be on their way from the memory meanwhile: the processor's
// own guesses reach half as far as they might, and not at all where rows are picked from here and there.
template <std::size_t kRows, class Value>
APSVM_INLINE std::size_t rows_ahead(std::size_t d) {
    const std::size_t bytes = std::max<std::size_t>(1, kRows * d * sizeof(Value));  // rows may have no features
    return kRows * std::max<std::size_t>(1, kBytesAhead / bytes);
}

// Whether rows come from the memory nearly as they lie there: one after another they come at twice the speed of several
// at once, whose streams get into each other's way. In the cache, and from here and there, several are faster.
bool is_stream(const std::size_t *rows, std::size_t n, bool from_memory) {
    return from_memory && n > 0 && rows[0] <= rows[n - 1] && rows[n - 1] - rows[0] < 2 * n;
}

template <std::size_t kRows, class Value>
APSVM_INLINE void dots_of(const Value *X, std::size_t d, const std::size_t *rows, const std::size_t *later,
                          const double *w, double *out, std::size_t stride) {
    const Value *x[kRows], *next[kRows];
    Four even[kRows], odd[kRows];
    double rest[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
        x[r] = X + rows[r] * d;
        next[r] = X + later[r] * d;
        even[r] = odd[r] = Four{};
        rest[r] = 0.0;
    }
    std::size_t at = 0;
    for (; at + 8 <= d; at += 8) {
        const Four first = load(w + at), second = load(w + at + 4);
        for (std::size_t r = 0; r < kRows; ++r) __builtin_prefetch(next[r] + at);
        for (std::size_t r = 0; r < kRows; ++r) even[r] += load(x[r] + at) * first;
        for (std::size_t r = 0; r < kRows; ++r) odd[r] += load(x[r] + at + 4) * second;
    }
    if (at + 4 <= d) {
        const Four weights = load(w + at);
        for (std::size_t r = 0; r < kRows; ++r) even[r] += load(x[r] + at) * weights;
        at += 4;
    }
    for (; at < d; ++at)
        for (std::size_t r = 0; r < kRows; ++r) rest[r] += static_cast<double>(x[r][at]) * w[at];
    for (std::size_t r = 0; r < kRows; ++r) {
        const Four sum = even[r] + odd[r];
        out[r * stride] = ((sum[0] + sum[2]) + (sum[1] + sum[3])) + rest[r];
    }
}

template <class Value>
APSVM_INLINE void all_dots(const Value *X, std::size_t d, const std::size_t *rows,
                           std::size_t n, const double *w, double *out, std::size_t stride, bool from_memory) {
    std::size_t i = 0;
    if (d >= kLongForDots && is_stream(rows, n, from_memory)) {
        const std::size_t ahead = rows_ahead<1, Value>(d);
        for (; i < n; ++i) dots_of<1>(X, d, rows + i, rows + std::min(i + ahead, n - 1), w, out + i * stride, stride);
        return;
    }
    const std::size_t ahead = rows_ahead<kRowsOfDots, Value>(d);
    for (; i + kRowsOfDots <= n; i += kRowsOfDots)
        dots_of<kRowsOfDots>(X, d, rows + i, rows + std::min(i + ahead, n - kRowsOfDots), w, out + i * stride, stride);
    for (; i < n; ++i) dots_of<1>(X, d, rows + i, rows + i, w, out + i * stride, stride);
}

template <std::size_t kRows, class Value>
APSVM_INLINE void add_of(const Value *X, std::size_t d, const std::size_t *rows, const std::size_t *later,
                         const double *factors, double *total) {
    const Value *x[kRows], *next[kRows];
    Four factor[kRows];
    for (std::size_t r = 0; r < kRows; ++r) {
        x[r] = X + rows[r] * d;
        next[r] = X + later[r] * d;
        factor[r] = Four{factors[r], factors[r], factors[r], factors[r]};
    }
    std::size_t at = 0;
    for (; at + 8 <= d; at += 8) {
        Four first = load(total + at), second = load(total + at + 4);
        for (std::size_t r = 0; r < kRows; ++r) __builtin_prefetch(next[r] + at);
        for (std::size_t r = 0; r < kRows; ++r) first += load(x[r] + at) * factor[r];
        for (std::size_t r = 0; r < kRows; ++r) second += load(x[r] + at + 4) * factor[r];
        std::memcpy(total + at, &first, sizeof first);
        std::memcpy(total + at + 4, &second, sizeof second);
    }
    if (at + 4 <= d) {
        Four sum = load(total + at);
        for (std::size_t r = 0; r < kRows; ++r) sum += load(x[r] + at) * factor[r];
        std::memcpy(total + at, &sum, sizeof sum);
        at += 4;
    }
    for (; at < d; ++at) {
        double sum = total[at];
        for (std::size_t r = 0; r < kRows; ++r) sum += static_cast<double>(x[r][at]) * factor[r][0];
        total[at] = sum;
    }
}

// The same of rows that kFours registers hold, one after another; the sums stay there. Where d is no multiple of 4 the
// last register has some columns of the one before it, too, with the same sums. Of a stream the processor's guesses are
// good enough here.
template <std::size_t kFours, class Value>
APSVM_INLINE void add_in_registers(const Value *X, std::size_t d, const std::size_t *rows, const double *factors,
                                   std::size_t n, double *total, bool stream) {
    const std::size_t last = d - 4, ahead = rows_ahead<1, Value>(d);
    Four sums[kFours];
    for (std::size_t k = 0; k < kFours; ++k) sums[k] = load(total + std::min(4 * k, last));
    for (std::size_t i = 0; i < n; ++i) {
        const Value *const x = X + rows[i] * d;
        const Four factor{factors[i], factors[i], factors[i], factors[i]};
        if (!stream) {
            const Value *const next = X + rows[std::min(i + ahead, n - 1)] * d;
            for (std::size_t at = 0; at < d; at += kLine / sizeof(Value)) __builtin_prefetch(next + at);
        }
        for (std::size_t k = 0; k + 1 < kFours; ++k) sums[k] += load(x + 4 * k) * factor;
        sums[kFours - 1] += load(x + last) * factor;
    }
    for (std::size_t k = 0; k < kFours; ++k) std::memcpy(total + std::min(4 * k, last), &sums[k], sizeof sums[k]);
}

// With as many registers as the rows take, kMost at most.
template <std::size_t kMost, class Value>
APSVM_INLINE void add_short(const Value *X, std::size_t d, const std::size_t *rows, const double *factors,
                            std::size_t n, double *total, bool stream) {
    if constexpr (kMost > 1)
        if (d <= 4 * (kMost - 1)) return add_short<kMost - 1>(X, d, rows, factors, n, total, stream);
    add_in_registers<kMost>(X, d, rows, factors, n, total, stream);
}

template <class Value>
APSVM_INLINE void add_all(const Value *X, std::size_t d, const std::size_t *rows,
                          const double *factors, std::size_t n, double *total, bool from_memory) {
    const bool stream = is_stream(rows, n, from_memory);
    if (d >= kInRegisters && d < kLongForSum)
        return add_short<kLongForSum / 4>(X, d, rows, factors, n, total, stream);
    std::size_t i = 0;
    if (d >= kLongForSum && stream) {
        const std::size_t ahead = rows_ahead<1, Value>(d);
        for (; i < n; ++i) add_of<1>(X, d, rows + i, rows + std::min(i + ahead, n - 1), factors + i, total);
        return;
    }
    const std::size_t ahead = rows_ahead<kRowsOfSum, Value>(d);
    for (; i + kRowsOfSum <= n; i += kRowsOfSum)
        add_of<kRowsOfSum>(X, d, rows + i, rows + std::min(i + ahead, n - kRowsOfSum), factors + i, total);
    for (; i < n; ++i) add_of<1>(X, d, rows + i, rows + i, factors + i, total);
}

}  // namespace

APSVM_CLONES void dots(const Dense<float> &X, const std::size_t *rows, std::size_t n, const double *w, double *out,
                       std::size_t stride, bool from_memory) {
    all_dots(X.values, X.n_columns, rows, n, w, out, stride, from_memory);
}

APSVM_CLONES void dots(const Dense<double> &X, const std::size_t *rows, std::size_t n, const double *w, double *out,
                       std::size_t stride, bool from_memory) {
    all_dots(X.values, X.n_columns, rows, n, w, out, stride, from_memory);
}

APSVM_CLONES void add_rows(const Dense<float> &X, const std::size_t *rows, const double *factors, std::size_t n,
                           double *total, bool from_memory) {
    add_all(X.values, X.n_columns, rows, factors, n, total, from_memory);
}

APSVM_CLONES void add_rows(const Dense<double> &X, const std::size_t *rows, const double *factors, std::size_t n,
                           double *total, bool from_memory) {
    add_all(X.values, X.n_columns, rows, factors, n, total, from_memory);
}

}  // namespace apsvm
