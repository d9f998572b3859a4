// The active-set method.
#include "module.hpp"

#include "../core/qp.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

// A leading block of a larger matrix will do: rows may stand apart.
using Matrix = AsItIs<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>>;

class ActiveSet {
public:
    nb::ndarray<nb::numpy, double, nb::ndim<1>> solve(const Matrix &gram, const In<double> &offsets,
                                                      const In<bool> &soft, double C, const In<std::int64_t> &names,
                                                      const In<double> &start, double tolerance) {
        const std::size_t n = offsets.size();
        expect_size(gram.shape(0), n, "rows of the Gram matrix");
        expect_size(gram.shape(1), n, "columns of the Gram matrix");
        expect_size(soft.size(), n, "planes that are soft or not");
        expect_size(start.size(), n, "numbers to start from");
        if (names.size() > 0) expect_size(names.size(), n, "names, or none");
        if (n > 1 && (gram.stride(1) != 1 || gram.stride(0) < static_cast<std::int64_t>(n)))
            throw std::invalid_argument("expected the rows of the Gram matrix one after another");
        const WorkingSetProblem problem{
            gram.data(), static_cast<std::size_t>(gram.stride(0)), span_of(offsets), span_of(soft), C, span_of(names)};
        std::vector<double> alpha;
        {
            nb::gil_scoped_release unlocked;
            alpha = solve_active_set(problem, span_of(start), tolerance, kept_);
        }
        return to_numpy(std::move(alpha));
    }

    // (names, sigma, factor), the factor as its upper triangle row by row.
    nb::tuple state() const {
        return nb::make_tuple(to_numpy(std::vector<std::int64_t>(kept_.names)), kept_.sigma,
                              to_numpy(kept_.factor.packed()));
    }

    void restore(const In<std::int64_t> &names, double sigma, const In<double> &factor) {
        const std::size_t m = names.size();
        expect_size(factor.size(), m * (m + 1) / 2, "numbers of the factor");
        kept_.names.assign(names.data(), names.data() + m);
        kept_.sigma = sigma;
        kept_.factor.unpack(m, span_of(factor));
    }

private:
    Support kept_;
};

}  // namespace

void bind_qp(nb::module_ &m) {
    nb::class_<ActiveSet>(m, "ActiveSet")
        .def(nb::init<>())
        .def("solve", &ActiveSet::solve, nb::arg("gram"), nb::arg("offsets"), nb::arg("soft"), nb::arg("C"),
             nb::arg("names"), nb::arg("start"), nb::arg("tolerance"))
        .def("state", &ActiveSet::state)
        .def("restore", &ActiveSet::restore, nb::arg("names"), nb::arg("sigma"), nb::arg("factor"));
}
