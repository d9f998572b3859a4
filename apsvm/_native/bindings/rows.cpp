// The row kernels. A CSR matrix is checked by check_csr, once; the kernels then take its indices on trust, and check
// what changes from call to call.
#include "module.hpp"

#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>

#include "../core/rows.hpp"
#include "arrays.hpp"

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

template <class Index>
void check_csr(In<Index> indptr, In<Index> indices, std::size_t n_values, std::size_t n_rows, std::size_t n_columns) {
    expect_size(n_values, indices.size(), "values, as there are indices");
    std::optional<std::string> fault;
    {
        nb::gil_scoped_release unlocked;
        fault = find_csr_fault(span_of(indptr), span_of(indices), n_rows, n_columns);
    }
    if (fault) throw std::invalid_argument("not a CSR matrix: " + *fault);
}

template <class Value, class Index>
Csr<Value, Index> csr(const In<Index> &indptr, const In<Index> &indices, const In<Value> &values,
                      std::size_t n_columns) {
    expect_size(values.size(), indices.size(), "values, as there are indices");
    const std::size_t n = indptr.size();
    if (n == 0 || static_cast<std::size_t>(indptr.data()[n - 1]) > indices.size())
        throw std::invalid_argument("expected row boundaries that end with the indices");
    return {indptr.data(), indices.data(), values.data(), n_columns};
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

template <class Index>
void bind_check(nb::module_ &m) {
    m.def("check_csr", &check_csr<Index>);
}

// `Rows`: an array of the rows' numbers, or None.
template <class Value, class Index, class Rows>
void bind_csr(nb::module_ &m) {
    m.def(
        "scores_csr",
        [](In<Index> indptr, In<Index> indices, In<Value> values, Rows rows, In2<double> W, Out2<double> out,
           std::size_t threads) {
            const auto X = csr(indptr, indices, values, W.shape(1));
            scores(X, selection(rows, indptr.size() - 1), W, out, threads);
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
    m.def(
        "combine_csr",
        [](In<Index> indptr, In<Index> indices, In<Value> values, Rows rows, In2<double> C, Out2<double> out,
           std::size_t threads) {
            const auto X = csr(indptr, indices, values, out.shape(1));
            combine(X, selection(rows, indptr.size() - 1), C, out, threads);
        },
        nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
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
    bind_csr<double, std::int32_t, Rows>(m);
    bind_csr<double, std::int64_t, Rows>(m);
    bind_csr<float, std::int32_t, Rows>(m);
    bind_csr<float, std::int64_t, Rows>(m);
    bind_dense<double, Rows>(m);
    bind_dense<float, Rows>(m);
}

}  // namespace

void bind_rows(nb::module_ &m) {
    bind_check<std::int32_t>(m);
    bind_check<std::int64_t>(m);
    bind_kernels<std::optional<In<std::int32_t>>>(m);
    bind_kernels<In<std::int64_t>>(m);
}
