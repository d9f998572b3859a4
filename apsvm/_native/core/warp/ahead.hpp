// Rows are drawn at random, and each would be waited for: what is drawn soon is prefetched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "rows/matrices.hpp"
#include "support/random.hpp"

namespace apsvm::warp {

constexpr std::size_t kLine = 64;              // bytes that come at once
constexpr std::size_t kMostPrefetched = 2048;  // bytes of an array; the processor itself sees how a longer row goes on

template <class T>
inline void prefetch(const T *from, std::size_t n) {
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    const auto end = begin + (n * sizeof(T) < kMostPrefetched ? n * sizeof(T) : kMostPrefetched);
    for (std::uintptr_t at = begin & ~(kLine - 1); at < end; at += kLine) {
        __builtin_prefetch(reinterpret_cast<const void *>(at));
        __asm__ volatile("" : : "r"(at));  // GCC takes a loop of prefetches for one that does nothing, and drops it
    }
}

// First where a row is, then the row.
template <class Value, class Index>
inline void prefetch_place(const Csr<Value, Index> &X, std::size_t row) {
    __builtin_prefetch(X.indptr + row);
}

template <class Value, class Index>
inline void prefetch_row(const Csr<Value, Index> &X, std::size_t row) {
    prefetch(X.indices + X.indptr[row], X.work(row));
    prefetch(X.values + X.indptr[row], X.work(row));
}

template <class Value>
inline void prefetch_place(const Dense<Value> &, std::size_t) {}

template <class Value>
inline void prefetch_row(const Dense<Value> &X, std::size_t row) {
    prefetch(X.values + row * X.n_columns, X.n_columns);
}

// The draws to come of one worker: a generator that runs in front of the worker's own says which rows they will ask for,
// as long as each is among as many. Where it is wrong, nothing but time is lost.
class Ahead {
public:
    void start(const Random &random) {
        random_ = random;
        for (std::size_t i = 0; i < kMember; ++i) random_.below(1);
        members_.fill(nullptr);
        rows_.fill(-1);
    }

    // To be called for each draw, from n negatives, once it is known to count.
    template <class Matrix>
    void next(const Matrix &X, const std::int64_t *negatives, std::int64_t n) {
        const std::size_t now = draws_++;
        if (const std::int64_t row = rows_[(now + kRow) % kMember]; row >= 0)
            prefetch_row(X, static_cast<std::size_t>(row));
        if (const std::int64_t *member = members_[(now + kPlace) % kMember]; member != nullptr) {
            rows_[(now + kPlace) % kMember] = *member;
            prefetch_place(X, static_cast<std::size_t>(*member));
        }
        members_[now % kMember] = negatives + random_.below(n);
        __builtin_prefetch(members_[now % kMember]);
    }

private:
    // This many draws before they are needed are requested: the row itself, where it begins, its number.
    static constexpr std::size_t kRow = 4, kPlace = 6, kMember = 8;

    Random random_;
    std::size_t draws_ = 0;
    std::array<const std::int64_t *, kMember> members_{};
    std::array<std::int64_t, kMember> rows_{};
};

}  // namespace apsvm::warp
