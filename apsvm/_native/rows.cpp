// Row kernels: scores X·w and combinations Xᵀc over a selection of rows of a CSR or dense X (float32 or float64
// storage, float64 accumulation).
//
// Determinism: each score is summed in an order that depends on its row alone; a combination is cut into blocks whose
// number depends on the data alone, each block has its own accumulator, and the accumulators are added in order. So one
// thread and many give the same bits.
#include <algorithm>

#include "arrays.hpp"
#include "matrices.hpp"
#include "module.hpp"
#include "threads.hpp"

namespace {

using namespace apsvm;

// Below this many multiply-adds starting a thread costs more than it saves.
constexpr std::size_t kWorkPerThread = 1u << 18;
constexpr std::size_t kMaxBlocks = 16;

template <class Matrix>
void scores(const Matrix &X, const std::int64_t *rows, std::size_t n, const double *w, double *out,
            std::size_t threads) {
    std::size_t work = 0;
    for (std::size_t i = 0; i < n && work < threads * kWorkPerThread; ++i) work += X.work(rows[i]) + 1;
    threads = std::clamp<std::size_t>(work / kWorkPerThread, 1, threads);
    in_threads(threads, threads, [&](std::size_t t) {
        for (std::size_t i = n * t / threads; i < n * (t + 1) / threads; ++i)
            out[i] = X.dot(static_cast<std::size_t>(rows[i]), w);
    });
}

template <class Matrix>
void combine(const Matrix &X, const std::int64_t *rows, std::size_t n, const double *c, double *out,
             std::size_t threads) {
    std::vector<std::size_t> active;
    std::size_t work = 0;
    for (std::size_t i = 0; i < n; ++i)
        if (c[i] != 0.0) {
            active.push_back(i);
            work += X.work(rows[i]);
        }
    // A block must be worth a thread and worth adding up its accumulator.
    const std::size_t blocks =
        std::clamp<std::size_t>(work / std::max(kWorkPerThread, 4 * X.n_columns), 1, kMaxBlocks);
    std::vector<double> partial((blocks - 1) * X.n_columns, 0.0);
    std::fill(out, out + X.n_columns, 0.0);
    in_threads(blocks, threads, [&](std::size_t b) {
        double *total = b == 0 ? out : partial.data() + (b - 1) * X.n_columns;
        for (std::size_t i = active.size() * b / blocks; i < active.size() * (b + 1) / blocks; ++i)
            X.add(static_cast<std::size_t>(rows[active[i]]), c[active[i]], total);
    });
    for (std::size_t b = 1; b < blocks; ++b)
        for (std::size_t at = 0; at < X.n_columns; ++at) out[at] += partial[(b - 1) * X.n_columns + at];
}

template <class Value, class Index>
void bind_csr(nb::module_ &m) {
    m.def("scores_csr",
          [](In<Index> indptr, In<Index> indices, In<Value> values, In<std::int64_t> rows, In<double> w,
             Out<double> out, std::size_t threads) {
              nb::gil_scoped_release unlocked;
              Csr<Value, Index> X{indptr.data(), indices.data(), values.data(), w.size()};
              scores(X, rows.data(), rows.size(), w.data(), out.data(), threads);
          });
    m.def("combine_csr",
          [](In<Index> indptr, In<Index> indices, In<Value> values, In<std::int64_t> rows, In<double> c,
             Out<double> out, std::size_t threads) {
              nb::gil_scoped_release unlocked;
              Csr<Value, Index> X{indptr.data(), indices.data(), values.data(), out.size()};
              combine(X, rows.data(), rows.size(), c.data(), out.data(), threads);
          });
}

template <class Value>
void bind_dense(nb::module_ &m) {
    m.def("scores_dense",
          [](In2<Value> X, In<std::int64_t> rows, In<double> w, Out<double> out, std::size_t threads) {
              nb::gil_scoped_release unlocked;
              scores(Dense<Value>{X.data(), X.shape(1)}, rows.data(), rows.size(), w.data(), out.data(), threads);
          });
    m.def("combine_dense",
          [](In2<Value> X, In<std::int64_t> rows, In<double> c, Out<double> out, std::size_t threads) {
              nb::gil_scoped_release unlocked;
              combine(Dense<Value>{X.data(), X.shape(1)}, rows.data(), rows.size(), c.data(), out.data(), threads);
          });
}

}  // namespace

void bind_rows(nb::module_ &m) {
    bind_csr<double, std::int32_t>(m);
    bind_csr<double, std::int64_t>(m);
    bind_csr<float, std::int32_t>(m);
    bind_csr<float, std::int64_t>(m);
    bind_dense<double>(m);
    bind_dense<float>(m);
}
