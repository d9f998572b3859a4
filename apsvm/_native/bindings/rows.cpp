// The row kernels. A CSR matrix is checked once, as it becomes a CsrMatrix; what changes from call to call is checked in
// each of them.
#include "module.hpp"

#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>

#include "rows/rows.hpp"
#include "arrays.hpp"
#include "csr.hpp"

namespace {

using namespace apsvm;

Selection selection(const SelectedRows &list, std::size_t n_rows) {
    std::optional<std::vector<std::size_t>> runs;
    {
        nb::gil_scoped_release unlocked;
        runs = list.runs(n_rows);
    }
    if (!runs)
        throw std::invalid_argument("expected rows below " + std::to_string(n_rows) + ", and none that is negative");
    return {list, std::move(*runs), n_rows};
}

// None: all rows.
Selection selection(const std::optional<In<std::int32_t>> &rows, std::size_t n_rows) {
    return selection(rows ? SelectedRows(span_of(*rows)) : SelectedRows(n_rows), n_rows);
}

Selection selection(const In<std::int64_t> &rows, std::size_t n_rows) {
    return selection(SelectedRows(span_of(rows)), n_rows);
}

template <class Matrix>
void scores(const Matrix &X, const Selection &rows, const In2<double> &W, const Out2<double> &out,
            std::size_t threads) {
    expect_size(W.shape(1), X.n_columns, "weights, as there are columns");
    expect_size(out.shape(0), rows.list.size(), "rows of scores, as there are rows");
    expect_size(out.shape(1), W.shape(0), "scores a row, as there are rows of weights");
    expect_threads(threads);
    nb::gil_scoped_release unlocked;
    scores_of_rows(X, rows, W.data(), W.shape(0), out.data(), threads);
}

template <class Matrix>
void combine(const Matrix &X, const Selection &rows, const In2<double> &C, const Out2<double> &out,
             std::size_t threads) {
    expect_size(C.shape(0), rows.list.size(), "row weights, as there are rows");
    expect_size(out.shape(0), C.shape(1), "rows of sums, as there are weights a row");
    expect_size(out.shape(1), X.n_columns, "sums, as there are columns");
    expect_threads(threads);
    nb::gil_scoped_release unlocked;
    combine_rows(X, rows, C.data(), C.shape(1), out.data(), threads);
}

template <class Value, class Index>
void bind_checked(nb::class_<CsrMatrix> &csr) {
    csr.def("__init__",
            [](CsrMatrix *self, In<Index> indptr, In<Index> indices, In<Value> values, std::size_t n_rows,
               std::size_t n_columns) {
                new (self) CsrMatrix(CsrMatrix::checked<Value, Index>(std::move(indptr), std::move(indices),
                                                                      std::move(values), n_rows, n_columns));
            });
}

// `Rows`: an array of the rows' numbers, or None.
template <class Rows>
void bind_csr(nb::module_ &m) {
    m.def(
        "scores_csr",
        [](const CsrMatrix &X, Rows rows, In2<double> W, Out2<double> out, std::size_t threads) {
            X.with([&](const auto &matrix) { scores(matrix, selection(rows, X.n_rows()), W, out, threads); });
        },
        nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
    m.def(
        "combine_csr",
        [](const CsrMatrix &X, Rows rows, In2<double> C, Out2<double> out, std::size_t threads) {
            X.with([&](const auto &matrix) { combine(matrix, selection(rows, X.n_rows()), C, out, threads); });
        },
        nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
}

template <class Value, class Rows>
void bind_dense(nb::module_ &m) {
    m.def(
        "scores_dense",
        [](In2<Value> X, Rows rows, In2<double> W, Out2<double> out, std::size_t threads) {
            scores(Dense<Value>{X.data(), X.shape(1)}, selection(rows, X.shape(0)), W, out, threads);
        },
        nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
    m.def(
        "combine_dense",
        [](In2<Value> X, Rows rows, In2<double> C, Out2<double> out, std::size_t threads) {
            combine(Dense<Value>{X.data(), X.shape(1)}, selection(rows, X.shape(0)), C, out, threads);
        },
        nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
}

template <class Rows>
void bind_kernels(nb::module_ &m) {
    bind_csr<Rows>(m);
    bind_dense<double, Rows>(m);
    bind_dense<float, Rows>(m);
}

}  // namespace

void bind_rows(nb::module_ &m) {
    nb::class_<CsrMatrix> csr(m, "CsrMatrix");
    bind_checked<double, std::int32_t>(csr);
    bind_checked<double, std::int64_t>(csr);
    bind_checked<float, std::int32_t>(csr);
    bind_checked<float, std::int64_t>(csr);
    csr.def_prop_ro("ascending", &CsrMatrix::ascending);

    bind_kernels<std::optional<In<std::int32_t>>>(m);
    bind_kernels<In<std::int64_t>>(m);
}
