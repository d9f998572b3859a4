// By what two rows differ, with its room.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rows/matrices.hpp"

namespace apsvm::warp {

// Where row b differs from row a, in no order: x_b − x_a = values()[i] in column columns()[i]. A column of both
// comes once; values may be 0.
class SparseDifference {
public:
    template <class Value, class Index>
    void find(const Csr<Value, Index> &X, std::size_t a, std::size_t b) {
        // Two sorted lists are merged by one guess after another, of which half are wrong. Instead the columns of row a
        // are looked up by their lowest bits, in a table that the nearest cache holds.
        const Index *const columns_a = X.indices + X.indptr[a], *const columns_b = X.indices + X.indptr[b];
        const Value *const x_a = X.values + X.indptr[a], *const x_b = X.values + X.indptr[b];
        const std::size_t n_a = X.work(a), n_b = X.work(b);
        make_room(n_a, n_b);
        const std::size_t low_bits = first_.size() - 1;
        std::size_t *const columns = columns_.data();
        double *const values = values_.data();
        std::uint32_t *const first = first_.data(), *const next = next_.data();
        for (std::size_t i = 0; i < n_a; ++i) {
            const auto column = static_cast<std::size_t>(columns_a[i]);
            columns[i] = column;
            values[i] = -static_cast<double>(x_a[i]);
            next[i] = first[column & low_bits];
            first[column & low_bits] = static_cast<std::uint32_t>(i + 1);
        }
        std::size_t size = n_a;
        for (std::size_t i = 0; i < n_b; ++i) {
            const auto column = static_cast<std::size_t>(columns_b[i]);
            const auto x = static_cast<double>(x_b[i]);
            std::size_t place = first[column & low_bits];
            while (place > 0 && columns[place - 1] != column) place = next[place - 1];
            if (place > 0) {
                values[place - 1] += x;
                continue;
            }
            columns[size] = column;
            values[size++] = x;
        }
        size_ = size;
        for (std::size_t i = 0; i < n_a; ++i) first[columns[i] & low_bits] = 0;
    }

    const std::size_t *columns() const { return columns_.data(); }
    std::span<const double> values() const { return {values_.data(), size_}; }

private:
    static constexpr std::size_t kSparsity = 64;  // places of the table for each column in it

    void make_room(std::size_t n_a, std::size_t n_b) {
        if (columns_.size() < n_a + n_b) {
            columns_.resize(n_a + n_b);
            values_.resize(n_a + n_b);
        }
        if (next_.size() < n_a) {
            next_.resize(n_a);
            first_.assign(std::bit_ceil(kSparsity * n_a), 0);
        }
    }

    std::vector<std::size_t> columns_;
    std::vector<double> values_;
    // 1 + a place among row a's columns, or 0: the last with these low bits, and the one before it with the same.
    std::vector<std::uint32_t> first_{0}, next_;  // first_: zeros between two calls
    std::size_t size_ = 0;
};

}  // namespace apsvm::warp
