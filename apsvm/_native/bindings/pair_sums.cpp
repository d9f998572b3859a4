// The pair loss of RankNCG.
#include "module.hpp"

#include <tuple>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "sums/pair_sums.hpp"
#include "arrays.hpp"
#include "turn.hpp"

namespace {

using namespace apsvm;

using FourierTuple = std::optional<std::tuple<double, std::size_t, double, double>>;  // h, p, influence, half width

std::optional<FourierSetting> setting_of(const FourierTuple &fourier) {
    if (!fourier) return std::nullopt;
    const auto &[h, p, influence, half_width] = *fourier;
    return FourierSetting{h, p, influence, half_width};
}

const PairKernel &objective_named(const std::string &name) {
    if (name == "logistic") return kLogistic;
    if (name == "erfc") return kErfc;
    throw std::invalid_argument("unknown objective " + name);
}

void make(InTurns<PairSums> *self, const std::string &objective, const std::string &summation,
          const FourierTuple &fourier, In<std::int64_t> starts, In<std::int64_t> classes, In<std::int64_t> queries,
          In<std::int64_t> below_starts, In<std::int64_t> below_first, In<std::int64_t> below_last,
          In<std::int64_t> above_starts, In<std::int64_t> above_first, In<std::int64_t> above_last,
          std::optional<In<double>> weights, std::size_t threads) {
    expect_threads(threads);
    if (weights) expect_finite(span_of(*weights), "weights");
    new (self) InTurns<PairSums>(objective_named(objective), summation_named(summation), setting_of(fourier),
                                 {span_of(starts), span_of(classes), span_of(queries)},
                                 {span_of(below_starts), span_of(below_first), span_of(below_last)},
                                 {span_of(above_starts), span_of(above_first), span_of(above_last)},
                                 weights ? span_of(*weights) : std::span<const double>(), threads);
}

double evaluate(InTurns<PairSums> &self, In<double> scores, Out<double> slopes, double scale, bool with_loss) {
    expect_size(scores.size(), self.rows(), "scores, as there are rows");
    expect_size(slopes.size(), self.rows(), "slopes, as there are rows");
    expect_finite(span_of(scores), "scores");
    const Turn turn(self.mutex);
    nb::gil_scoped_release unlocked;
    return self.evaluate(scores.data(), slopes.data(), scale, with_loss);
}

}  // namespace

void bind_pair_sums(nb::module_ &m) {
    nb::class_<InTurns<PairSums>>(m, "PairSums")
        .def("__init__", &make, nb::arg("objective"), nb::arg("summation"), nb::arg("fourier").none(),
             nb::arg("starts"), nb::arg("classes"), nb::arg("queries"), nb::arg("below_starts"), nb::arg("below_first"),
             nb::arg("below_last"), nb::arg("above_starts"), nb::arg("above_first"), nb::arg("above_last"),
             nb::arg("weights").none(), nb::arg("threads"))
        .def_prop_ro("pairs", &PairSums::pairs)
        .def_prop_ro("weight", &PairSums::weight)
        .def_prop_ro("queries_without_pairs", &PairSums::queries_without_pairs)
        .def("__call__", &evaluate, nb::arg("scores"), nb::arg("slopes"), nb::arg("scale"),
             nb::arg("with_loss"));
}
