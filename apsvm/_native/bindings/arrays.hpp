// Arrays that cross from Python and back, and what is checked of them. An array of another type or layout than a kernel
// wants is a TypeError: nanobind would hand it a converted copy, so that a result would be lost without a word, and a
// matrix copied in every call. A length that does not fit is a ValueError, and so are scores without an order, and
// numbers of rows that there are not: no kernel reads or writes beyond its arrays, whatever stands in them.
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

#include "support/checks.hpp"

namespace apsvm {

namespace nb = nanobind;

// An array that crosses as it is, or not at all.
template <class Array>
struct AsItIs : Array {
    AsItIs() = default;
    explicit AsItIs(Array array) : Array(std::move(array)) {}
};

template <class T>
using In = AsItIs<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;
template <class T>
using In2 = AsItIs<nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;
template <class T>
using Out2 = AsItIs<nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;
template <class T>
using Out = AsItIs<nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

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
    constexpr std::size_t most = 1u << 16;  // memory is requested by the thread
    if (threads < 1 || threads > most)
        throw std::invalid_argument("expected at least one thread and at most " + std::to_string(most));
}

// NaN has no place in an order, and an infinite score none in a sum of differences.
inline void expect_finite(std::span<const double> values, const char *what) {
    if (!all_finite(values)) throw std::invalid_argument(std::string("expected finite ") + what);
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

namespace nanobind::detail {

template <class Array>
struct type_caster<apsvm::AsItIs<Array>> {
    using Caster = make_caster<Array>;
    NB_TYPE_CASTER(apsvm::AsItIs<Array>, Caster::Name)

    bool from_python(handle source, std::uint8_t flags, cleanup_list *cleanup) noexcept {
        Caster caster;
        flags &= static_cast<std::uint8_t>(~static_cast<std::uint8_t>(cast_flags::convert));
        if (!caster.from_python(source, flags, cleanup)) return false;
        value = apsvm::AsItIs<Array>(std::move(caster.value));
        return true;
    }
};

}  // namespace nanobind::detail
