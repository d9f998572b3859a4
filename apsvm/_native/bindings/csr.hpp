// A CSR matrix that was checked, once, as it crossed from Python.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "rows/matrices.hpp"
#include "rows/rows.hpp"
#include "arrays.hpp"

namespace apsvm {

// The arrays (indptr, indices, values), kept alive, of which the kernels need to believe nothing.
class CsrMatrix {
public:
    template <class Value, class Index>
    static CsrMatrix checked(In<Index> indptr, In<Index> indices, In<Value> values, std::size_t n_rows,
                             std::size_t n_columns) {
        expect_size(values.size(), indices.size(), "values, as there are indices");
        CsrLook look;
        {
            nb::gil_scoped_release unlocked;
            look = look_at_csr(span_of(indptr), span_of(indices), n_rows, n_columns);
        }
        if (look.fault) throw std::invalid_argument("not a CSR matrix: " + *look.fault);
        return {Arrays<Value, Index>{std::move(indptr), std::move(indices), std::move(values)}, n_rows, n_columns,
                look.ascending};
    }

    std::size_t n_rows() const { return n_rows_; }
    std::size_t n_columns() const { return n_columns_; }
    // Whether the columns of each row ascend, none of them twice.
    bool ascending() const { return ascending_; }

    // Calls work(matrix) with what the kernels take.
    template <class Work>
    auto with(Work work) const {
        return std::visit([&](const auto &arrays) { return work(arrays.view(n_columns_)); }, arrays_);
    }

private:
    template <class Value, class Index>
    struct Arrays {
        In<Index> indptr, indices;
        In<Value> values;
        Csr<Value, Index> view(std::size_t n_columns) const {
            return {indptr.data(), indices.data(), values.data(), n_columns};
        }
    };
    using AnyArrays = std::variant<Arrays<double, std::int32_t>, Arrays<double, std::int64_t>,
                                   Arrays<float, std::int32_t>, Arrays<float, std::int64_t>>;

    CsrMatrix(AnyArrays arrays, std::size_t n_rows, std::size_t n_columns, bool ascending)
        : arrays_(std::move(arrays)), n_rows_(n_rows), n_columns_(n_columns), ascending_(ascending) {}

    AnyArrays arrays_;
    std::size_t n_rows_, n_columns_;
    bool ascending_;
};

}  // namespace apsvm
