// The active-set method, and steps to a level by it.
#include "module.hpp"

#include "solvers/level.hpp"
#include "solvers/qp.hpp"
#include "arrays.hpp"
#include "turn.hpp"

namespace {

using namespace apsvm;

// A leading block of a larger matrix will do: rows may stand apart.
using Matrix = AsItIs<nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>>;

// A byte that is neither 0 nor 1 is no bool.
void expect_bits(const In<bool> &soft) {
    if (!all_bits(reinterpret_cast<const std::uint8_t *>(soft.data()), soft.size()))
        throw std::invalid_argument("expected planes marked soft by 0 and 1");
}

WorkingSetProblem checked(const Matrix &gram, const In<double> &offsets, const In<bool> &soft, double C,
                          const In<std::int64_t> &names) {
    const std::size_t n = offsets.size();
    expect_size(gram.shape(0), n, "rows of the Gram matrix");
    expect_size(gram.shape(1), n, "columns of the Gram matrix");
    expect_size(soft.size(), n, "planes that are soft or not");
    expect_bits(soft);
    expect_finite(span_of(offsets), "offsets");
    expect_finite({&C, 1}, "C");
    if (names.size() > 0) expect_size(names.size(), n, "names, or none");
    for (std::size_t t = 0; t < names.size(); ++t)
        if (names.data()[t] <= (t == 0 ? Support::kNullPlane : names.data()[t - 1]))
            throw std::invalid_argument("expected names that ascend from 0");
    if (n > 1 && (gram.stride(1) != 1 || gram.stride(0) < static_cast<std::int64_t>(n)))
        throw std::invalid_argument("expected the rows of the Gram matrix one after another");
    return {gram.data(), static_cast<std::size_t>(gram.stride(0)), span_of(offsets), span_of(soft), C, span_of(names)};
}

class ActiveSet {
public:
    // (alpha, gap), alpha feasible.
    nb::tuple solve(const Matrix &gram, const In<double> &offsets, const In<bool> &soft, double C,
                  const In<std::int64_t> &names, const In<double> &start, double tolerance) {
        const WorkingSetProblem problem = checked(gram, offsets, soft, C, names);
        expect_size(start.size(), offsets.size(), "numbers to start from");
        expect_finite(span_of(start), "numbers to start from");
        const Turn turn(mutex_);
        WorkingSetSolution solution;
        {
            nb::gil_scoped_release unlocked;
            solution = solve_to_gap(problem, span_of(start), tolerance, kept_);
        }
        return nb::make_tuple(to_numpy(std::move(solution.alpha)), solution.gap);
    }

private:
    Support kept_;
    std::mutex mutex_;
};

class LevelSteps {
public:
    // (alpha, theta, next ratio), or None where a number is not finite.
    nb::object step(const Matrix &gram, const In<double> &offsets, const In<bool> &soft, double C,
                    const In<std::int64_t> &names, const In<double> &offsets_from_point, double distance_squared,
                    double lowest, double highest, double ratio, double tolerance) {
        const Level level{checked(gram, offsets, soft, C, names), span_of(offsets_from_point), distance_squared, lowest,
                          highest};
        expect_size(offsets_from_point.size(), offsets.size(), "offsets from the point");
        expect_size(names.size(), offsets.size(), "names");
        const Turn turn(mutex_);
        LevelStep result;
        {
            nb::gil_scoped_release unlocked;
            result = step_to_level(level, ratio, tolerance, last_);
        }
        if (!result.finite) return nb::none();
        return nb::make_tuple(to_numpy(std::move(result.alpha)), result.theta, result.next_ratio);
    }

private:
    LastStep last_;
    std::mutex mutex_;
};

}  // namespace

void bind_qp(nb::module_ &m) {
    m.def(
        "feasible",
        [](const In<double> &alpha, const In<bool> &soft, double C) {
            expect_size(soft.size(), alpha.size(), "planes that are soft or not");
            expect_bits(soft);
            std::vector<double> point(alpha.data(), alpha.data() + alpha.size());
            make_feasible(span_of(soft), C, point);
            return to_numpy(std::move(point));
        },
        nb::arg("alpha"), nb::arg("soft"), nb::arg("C"));

    nb::class_<ActiveSet>(m, "ActiveSet")
        .def(nb::init<>())
        .def("solve", &ActiveSet::solve, nb::arg("gram"), nb::arg("offsets"), nb::arg("soft"), nb::arg("C"),
             nb::arg("names"), nb::arg("start"), nb::arg("tolerance"));

    nb::class_<LevelSteps>(m, "LevelSteps")
        .def(nb::init<>())
        .def("step", &LevelSteps::step, nb::arg("gram"), nb::arg("offsets"), nb::arg("soft"), nb::arg("C"),
             nb::arg("names"), nb::arg("offsets_from_point"), nb::arg("distance_squared"), nb::arg("lowest"),
             nb::arg("highest"), nb::arg("ratio"), nb::arg("tolerance"));
}
