// The row kernels. A CSR matrix is checked once, as it becomes a CsrMatrix; what changes from call to call is checked in
// each of them.
#include "module.hpp"

#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>

#include "rows/rows.hpp"
#include "rows/walk.hpp"
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

Selection selection_of(nb::handle rows, std::size_t n_rows) {
    In<std::int64_t> wide;
    In<std::int32_t> narrow;
    if (rows.is_none()) return selection(SelectedRows(n_rows), n_rows);
    if (nb::try_cast(rows, wide)) return selection(wide, n_rows);
    if (nb::try_cast(rows, narrow)) return selection(SelectedRows(span_of(narrow)), n_rows);
    throw nb::type_error("expected the rows of a pass as an array of int32 or int64, or None");
}

// A pass in words of Python: (rows, W (1, d), out (m, 1)) or, of a combination, (rows, C (m, 1), out (1, d)).
Pass pass_of(nb::handle asked, bool combines, std::size_t n_rows, std::size_t n_columns) {
    nb::tuple parts;
    if (!nb::try_cast(asked, parts)) throw nb::type_error("expected passes of three parts");
    expect_size(parts.size(), 3, "parts of a pass");
    In2<double> vector;
    Out2<double> out;
    if (!nb::try_cast(parts[1], vector) || !nb::try_cast(parts[2], out))
        throw nb::type_error("expected a pass from one matrix of float64 to another, C-contiguous");
    Pass pass{selection_of(parts[0], n_rows), vector.data(), out.data(), combines};
    const std::size_t m = pass.rows.list.size();
    expect_size(vector.shape(0), combines ? m : 1, "rows of what is given");
    expect_size(vector.shape(1), combines ? 1 : n_columns, "columns of what is given");
    expect_size(out.shape(0), combines ? 1 : m, "rows of the result");
    expect_size(out.shape(1), combines ? n_columns : 1, "columns of the result");
    return pass;
}

template <class Matrix>
void walk_through(const Matrix &X, std::size_t n_rows, nb::list scores, nb::list combinations, std::size_t threads) {
    expect_threads(threads);
    std::vector<Pass> passes;
    for (nb::handle asked : scores) passes.push_back(pass_of(asked, false, n_rows, X.n_columns));
    for (nb::handle asked : combinations) passes.push_back(pass_of(asked, true, n_rows, X.n_columns));
    nb::gil_scoped_release unlocked;
    walk(X, std::span<const Pass>(passes), threads);
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

template <class Value>
void bind_walk_dense(nb::module_ &m) {
    m.def("walk_dense", [](In2<Value> X, nb::list scores, nb::list combinations, std::size_t threads) {
        walk_through(Dense<Value>{X.data(), X.shape(1)}, X.shape(0), scores, combinations, threads);
    });
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
    m.def("walk_csr", [](const CsrMatrix &X, nb::list scores, nb::list combinations, std::size_t threads) {
        X.with([&](const auto &matrix) { walk_through(matrix, X.n_rows(), scores, combinations, threads); });
    });
    bind_walk_dense<double>(m);
    bind_walk_dense<float>(m);
}
