// Arrays that cross from Python and back: C-contiguous, of one type, and what is checked of them. A check that fails is
// a ValueError; an array of another type or layout is a TypeError, from nanobind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace apsvm {

namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> span_of(const In<T> &array) {
    return {array.data(), array.size()};
}

inline void expect_size(std::size_t found, std::size_t expected, const char *what) {
    if (found != expected)
        throw std::invalid_argument("expected " + std::to_string(expected) + " " + what + ", found " +
                                    std::to_string(found));
}

inline void expect_threads(std::size_t threads) {
    if (threads < 1) throw std::invalid_argument("expected at least one thread");
}

// Kernels number rows by int32.
inline void expect_numerable(std::size_t n) {
    if (n > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw std::invalid_argument("expected fewer than 2^31 rows, found " + std::to_string(n));
}

// Moves a vector into a numpy array without copying its elements.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> to_numpy(std::vector<T> &&values) {
    auto *owner = new std::vector<T>(std::move(values));
    nb::capsule guard(owner, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(owner->data(), {owner->size()}, guard);
}

}  // namespace apsvm
