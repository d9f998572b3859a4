// The direction of a quasi-Newton step.
#include "module.hpp"

#include <nanobind/stl/vector.h>

#include "solvers/newton.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

nb::object direction(const In<double> &gradient, const In<double> &diagonal, const std::vector<In<double>> &steps,
                     const std::vector<In<double>> &changes, const std::vector<double> &products) {
    const std::size_t n = gradient.size();
    expect_size(diagonal.size(), n, "entries of the diagonal");
    expect_size(changes.size(), steps.size(), "changes, one a step");
    expect_size(products.size(), steps.size(), "products, one a step");
    std::vector<GradientChange> history;
    for (std::size_t t = 0; t < steps.size(); ++t) {
        expect_size(steps[t].size(), n, "entries of a step");
        expect_size(changes[t].size(), n, "entries of a change");
        history.push_back({steps[t].data(), changes[t].data(), products[t]});
    }
    std::vector<double> result;
    {
        nb::gil_scoped_release unlocked;
        result = newton_direction(span_of(gradient), span_of(diagonal), history);
    }
    return nb::cast(to_numpy(std::move(result)));
}

}  // namespace

void bind_newton(nb::module_ &m) {
    m.def("newton_direction", &direction, nb::arg("gradient"), nb::arg("diagonal"), nb::arg("steps"),
          nb::arg("changes"), nb::arg("products"));
}
