// The rows of a feature matrix, CSR or dense, as the kernels walk them: float32 or float64 storage, float64 sums.
// `Weights` is anything that gives a number for a column.
#pragma once

#include <cstddef>

namespace apsvm {

template <class Value, class Index>
struct Csr {
    static constexpr bool dense = false;

    const Index *indptr;
    const Index *indices;
    const Value *values;
    std::size_t n_columns;

    std::size_t work(std::size_t row) const { return static_cast<std::size_t>(indptr[row + 1] - indptr[row]); }

    template <class Weights>
    double dot(std::size_t row, Weights w) const {
        // Four accumulators: the latency of one chain of additions would be the limit.
        double sum[4] = {0, 0, 0, 0};
        Index at = indptr[row];
        const Index end = indptr[row + 1];
        for (; at + 4 <= end; at += 4)
            for (int lane = 0; lane < 4; ++lane)
                sum[lane] += static_cast<double>(values[at + lane]) * w[indices[at + lane]];
        for (; at < end; ++at) sum[0] += static_cast<double>(values[at]) * w[indices[at]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    void add(std::size_t row, double factor, double *total) const {
        Index at = indptr[row];
        const Index end = indptr[row + 1];
        for (; at + 4 <= end; at += 4) {
            double part[4];
            for (int lane = 0; lane < 4; ++lane) part[lane] = factor * static_cast<double>(values[at + lane]);
            for (int lane = 0; lane < 4; ++lane) total[indices[at + lane]] += part[lane];
        }
        for (; at < end; ++at) total[indices[at]] += factor * static_cast<double>(values[at]);
    }
};

template <class Value>
struct Dense {
    static constexpr bool dense = true;

    const Value *values;
    std::size_t n_columns;

    std::size_t work(std::size_t) const { return n_columns; }

    template <class Weights>
    double dot(std::size_t row, Weights w) const {
        const Value *x = values + row * n_columns;
        double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        std::size_t at = 0;
        for (; at + 8 <= n_columns; at += 8)
            for (int lane = 0; lane < 8; ++lane) sum[lane] += static_cast<double>(x[at + lane]) * w[at + lane];
        for (; at < n_columns; ++at) sum[0] += static_cast<double>(x[at]) * w[at];
        return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }

    void add(std::size_t row, double factor, double *total) const {
        const Value *x = values + row * n_columns;
        for (std::size_t at = 0; at < n_columns; ++at) total[at] += factor * static_cast<double>(x[at]);
    }
};

}  // namespace apsvm
