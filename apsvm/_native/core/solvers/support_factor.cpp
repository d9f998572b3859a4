#include "solvers/support_factor.hpp"

#include <algorithm>
#include <cmath>

#include "support/lanes.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

APSVM_CLONES void forward(const double *factor, std::size_t stride, std::size_t n, double *__restrict x) {
    for (std::size_t j = 0; j < n; ++j) {
        const double *const row = factor + j * stride;
        const double known = x[j] / row[j];
        x[j] = known;
        for (std::size_t i = j + 1; i < n; ++i) x[i] -= known * row[i];
    }
}

APSVM_CLONES void backward(const double *factor, std::size_t stride, std::size_t n, double *x) {
    for (std::size_t j = n; j-- > 0;) {
        const double *const row = factor + j * stride;
        x[j] = (x[j] - dot(row + j + 1, x + j + 1, n - j - 1)) / row[j];
    }
}

// (x, y) becomes (c·x + s·y, c·y − s·x), where y moves one place to the left.
APSVM_CLONES void rotate(double *__restrict x, double *__restrict y, std::size_t n, double c, double s) {
    for (std::size_t i = 0; i < n; ++i) {
        const double a = x[i], b = y[i + 1];
        x[i] = c * a + s * b;
        y[i] = c * b - s * a;
    }
}

}  // namespace

void SupportFactor::solve_forward(double *x) const { forward(values_.data(), stride_, size_, x); }

void SupportFactor::solve_backward(double *x) const { backward(values_.data(), stride_, size_, x); }

void SupportFactor::append(std::span<const double> above, double rest) {
    reserve(size_ + 1);
    for (std::size_t i = 0; i < size_; ++i) row(i)[size_] = above[i];
    row(size_)[size_] = std::sqrt(rest);
    ++size_;
}

void SupportFactor::remove(std::size_t at, std::span<std::vector<double> *const> riders) {
    for (std::size_t i = 0; i <= at; ++i) std::copy(row(i) + at + 1, row(i) + size_, row(i) + at);
    --size_;
    for (std::size_t j = at; j < size_; ++j) {
        double *const here = row(j), *const below = row(j + 1);
        const double length = std::hypot(here[j], below[j + 1]);
        const double c = here[j] / length, s = below[j + 1] / length;
        rotate(here + j, below + j, size_ - j, c, s);
        for (std::vector<double> *const rider : riders) {
            double &x = (*rider)[j], &y = (*rider)[j + 1];
            const double before = x;
            x = c * before + s * y;
            y = c * y - s * before;
        }
    }
    for (std::vector<double> *const rider : riders) rider->pop_back();
}

void SupportFactor::reserve(std::size_t size) {
    if (size <= stride_) return;
    const std::size_t stride = std::max(size, 2 * stride_);
    std::vector<double> values(stride * stride);
    for (std::size_t i = 0; i < size_; ++i) std::copy(row(i) + i, row(i) + size_, values.data() + i * stride + i);
    values_ = std::move(values);
    stride_ = stride;
}

}  // namespace apsvm
