// The active-set method.
#include "module.hpp"

#include "../core/qp.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

// A leading block of a larger matrix will do: rows may stand apart.
using Matrix = AsItIs<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>>;

std::vector<double> solve(const Matrix &gram, const In<double> &offsets, const In<bool> &soft, double C,
                          const In<double> &start, double tolerance) {
    const std::size_t n = offsets.size();
    expect_size(gram.shape(0), n, "rows of the Gram matrix");
    expect_size(gram.shape(1), n, "columns of the Gram matrix");
    expect_size(soft.size(), n, "planes that are soft or not");
    expect_size(start.size(), n, "numbers to start from");
    if (n > 1 && (gram.stride(1) != 1 || gram.stride(0) < static_cast<std::int64_t>(n)))
        throw std::invalid_argument("expected the rows of the Gram matrix one after another");
    const WorkingSetProblem problem{gram.data(), static_cast<std::size_t>(gram.stride(0)), span_of(offsets),
                                    span_of(soft), C};
    nb::gil_scoped_release unlocked;
    return solve_active_set(problem, span_of(start), tolerance);
}

}  // namespace

void bind_qp(nb::module_ &m) {
    m.def("active_set", [](Matrix gram, In<double> offsets, In<bool> soft, double C, In<double> start,
                           double tolerance) { return to_numpy(solve(gram, offsets, soft, C, start, tolerance)); });
}
