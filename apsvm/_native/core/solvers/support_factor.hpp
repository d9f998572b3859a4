// The Cholesky factor of a symmetric matrix that gains and loses rows: M = UᵀU, U upper triangular. A row more costs a
// triangular solve, a row less the Givens rotations that make U triangular again: O(m²) where factoring takes O(m³).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace apsvm {

class SupportFactor {
public:
    std::size_t size() const { return size_; }
    void clear() { size_ = 0; }

    // x = U⁻ᵀx and x = U⁻¹x, x (size,).
    void solve_forward(double *x) const;
    void solve_backward(double *x) const;

    // The last row and column of M, by U⁻ᵀ of the column above the diagonal (size,) and what that leaves of the
    // diagonal, > 0.
    void append(std::span<const double> above, double rest);
    // Row and column `at` of M go, and `riders`, each U⁻ᵀx for some x (size,), become so for x without its entry `at`.
    void remove(std::size_t at, std::span<std::vector<double> *const> riders);

private:
    double *row(std::size_t i) { return values_.data() + i * stride_; }
    const double *row(std::size_t i) const { return values_.data() + i * stride_; }
    void reserve(std::size_t size);

    std::size_t size_ = 0, stride_ = 0;
    std::vector<double> values_;
};

}  // namespace apsvm
