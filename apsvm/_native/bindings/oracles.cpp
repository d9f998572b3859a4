// The oracles: RankingOracle and MeasureOracle, with one face.
#include "module.hpp"

#include <algorithm>
#include <vector>

#include <nanobind/stl/string.h>

#include "oracles/by_score.hpp"
#include "oracles/measure_oracle.hpp"
#include "oracles/ranking_oracle.hpp"
#include "sorting/count_below.hpp"
#include "sorting/sorting.hpp"
#include "arrays.hpp"
#include "turn.hpp"

namespace {

using namespace apsvm;

nb::tuple as_tuple(const Answer &answer) {
    return nb::make_tuple(answer.value, answer.loss, answer.evaluated, answer.violating);
}

template <class Oracle>
nb::tuple call(InTurns<Oracle> &oracle, Answer (Oracle::*solve)(const double *, double *), In<double> scores,
               Out<double> weights) {
    const Turn turn(oracle.mutex);
    expect_size(scores.size(), oracle.rows(), "scores, as the tasks have rows");
    expect_size(weights.size(), oracle.rows(), "row weights, as the tasks have rows");
    expect_finite(span_of(scores), "scores");
    Answer answer;
    {
        nb::gil_scoped_release unlocked;
        answer = (oracle.*solve)(scores.data(), weights.data());
    }
    return as_tuple(answer);
}

// (Σ coefficient·h, Σ coefficient·Δ, ranks evaluated, violating) over all tasks; fills the row weights.
template <class Oracle>
nb::tuple solve(InTurns<Oracle> &oracle, In<double> scores, Out<double> weights) {
    return call<Oracle>(oracle, &Oracle::solve, scores, weights);
}

void expect_classes(const RankingOracle &oracle, std::size_t n_pos, std::size_t n_neg) {
    const LossTables &tables = oracle.tables_of_one();
    expect_size(n_pos, static_cast<std::size_t>(tables.n_pos), "scores of positives");
    expect_size(n_neg, tables.n_neg, "scores of negatives");
}

void expect_classes(const MeasureOracle &oracle, std::size_t n_pos, std::size_t n_neg) {
    expect_numerable(n_pos);
    expect_numerable(n_neg);
    oracle.solver().check_sizes(static_cast<std::int64_t>(n_pos), static_cast<std::int64_t>(n_neg));
}

Answer solve_one(RankingOracle &oracle, const double *positives, std::size_t, const double *negatives, std::size_t,
                 double *weights_pos, double *weights_neg, std::int32_t *ranks = nullptr) {
    return oracle.solve_one(positives, negatives, weights_pos, weights_neg, ranks);
}

Answer solve_one(MeasureOracle &oracle, const double *positives, std::size_t n_pos, const double *negatives,
                 std::size_t n_neg, double *weights_pos, double *weights_neg, std::int32_t *ranks = nullptr) {
    const Answer answer =
        oracle.solve_one({positives, static_cast<std::int32_t>(n_pos), negatives, static_cast<std::int32_t>(n_neg),
                          weights_pos, weights_neg, oracle.threads()});
    if (ranks != nullptr) {
        const std::span<const std::int32_t> of_ranking = oracle.ranks_of_one();
        if (of_ranking.size() < n_neg)
            throw std::invalid_argument("expected a loss over rankings: labellings have no ranks");
        std::copy_n(of_ranking.data(), n_neg, ranks);
    }
    return answer;
}

// The same for one query whose classes stand apart.
template <class Oracle>
nb::tuple call_one(InTurns<Oracle> &oracle, In<double> positives, In<double> negatives, Out<double> weights_pos,
                   Out<double> weights_neg) {
    const Turn turn(oracle.mutex);
    expect_classes(oracle, positives.size(), negatives.size());
    expect_size(weights_pos.size(), positives.size(), "row weights of positives");
    expect_size(weights_neg.size(), negatives.size(), "row weights of negatives");
    expect_finite(span_of(positives), "scores of positives");
    expect_finite(span_of(negatives), "scores of negatives");
    Answer answer;
    {
        nb::gil_scoped_release unlocked;
        answer = solve_one(oracle, positives.data(), positives.size(), negatives.data(), negatives.size(),
                           weights_pos.data(), weights_neg.data());
    }
    return as_tuple(answer);
}

// The same for one query whose classes are mixed; the interleaving ranks of the negatives, too.
template <class Oracle>
nb::tuple call_mixed(InTurns<Oracle> &oracle, In<double> scores, In<bool> relevant, Out<double> weights,
                     Out<std::int32_t> ranks) {
    const Turn turn(oracle.mutex);
    // numpy may call any byte a bool.
    const auto *const marks = reinterpret_cast<const std::uint8_t *>(relevant.data());
    if (!all_bits(marks, relevant.size())) throw std::invalid_argument("expected relevant rows marked by 0 and 1");
    const auto n_pos = static_cast<std::size_t>(std::count(marks, marks + relevant.size(), std::uint8_t{1}));
    const std::size_t n_neg = relevant.size() - n_pos;
    expect_classes(oracle, n_pos, n_neg);
    expect_size(scores.size(), relevant.size(), "scores, as there are rows");
    expect_size(weights.size(), relevant.size(), "row weights, as there are rows");
    expect_size(ranks.size(), n_neg, "ranks of negatives");
    expect_finite(span_of(scores), "scores");
    Answer answer;
    {
        nb::gil_scoped_release unlocked;
        MixedRows &rows = oracle.mixed_rows();
        rows.take_apart(span_of(scores), relevant.data(), n_pos, n_neg);
        const std::span<double> of_rows(weights.data(), weights.size());
        answer = solve_one(oracle, rows.positives.data(), n_pos, rows.negatives.data(), n_neg,
                           rows.weights_pos.data(), MixedRows::weights_neg(of_rows, n_neg), ranks.data());
        rows.put_together(relevant.data(), of_rows, n_neg);
    }
    return as_tuple(answer);
}

auto below(In<double> values, In<double> scores) {
    expect_finite(span_of(values), "values");
    if (values.size() == 0 || values.size() >= 1u << 30) throw std::invalid_argument("expected 1 to 2^30 values");
    std::vector<std::int32_t> counts(scores.size());
    {
        nb::gil_scoped_release unlocked;
        CountBelow count_below;
        count_below.fit(values.data(), values.size());
        count_below(scores.data(), scores.size(), counts.data());
    }
    return to_numpy(std::move(counts));
}

}  // namespace

void bind_oracles(nb::module_ &m) {
    m.def("all_within", [](In<double> values, double limit) { return all_within(span_of(values), limit); });
    m.def("descending_order", [](In<double> scores) {
        expect_numerable(scores.size());
        const auto is_nan = [](double score) { return score != score; };
        if (!all_finite(span_of(scores)) && std::any_of(scores.data(), scores.data() + scores.size(), is_nan))
            throw std::invalid_argument("expected scores that have an order, found NaN");
        std::vector<std::int64_t> order;
        {
            nb::gil_scoped_release unlocked;
            order = descending_order(span_of(scores));
        }
        return to_numpy(std::move(order));
    });

    using Ranking = InTurns<RankingOracle>;
    nb::class_<Ranking>(m, "RankingOracle")
        .def("__init__",
             [](Ranking *self, const std::string &algorithm, bool unimodal, std::size_t threads) {
                 expect_threads(threads);
                 new (self) Ranking(algorithm_named(algorithm), unimodal, threads);
             })
        .def("add_tables",
             [](Ranking &self, std::size_t n_neg, In<double> weights, In<double> discount) {
                 const Turn turn(self.mutex);
                 self.add_tables(LossTables(n_neg, span_of(weights), span_of(discount)));
             })
        .def("add_tasks",
             [](Ranking &self, In<std::int64_t> first, In<std::int64_t> tables, In<double> coefficients) {
                 const Turn turn(self.mutex);
                 self.add_tasks(span_of(first), span_of(tables), span_of(coefficients));
             })
        .def("__call__", &solve<RankingOracle>)
        .def("one", &call_one<RankingOracle>)
        .def("mixed", &call_mixed<RankingOracle>);

    using ByScore = InTurns<RankingByScore>;
    nb::class_<ByScore>(m, "RankingByScore")
        .def("__init__",
             [](ByScore *self, std::size_t threads) {
                 expect_threads(threads);
                 new (self) ByScore(threads);
             })
        .def("add_tasks",
             [](ByScore &self, In<std::int64_t> first, In<std::int64_t> n_pos, In<std::int64_t> n_neg,
                In<double> coefficients) {
                 const Turn turn(self.mutex);
                 self.add_tasks(span_of(first), span_of(n_pos), span_of(n_neg), span_of(coefficients));
             })
        .def("__call__", &solve<RankingByScore>)
        .def("subtract", [](ByScore &self, In<double> scores, Out<double> weights) {
            return call<RankingByScore>(self, &RankingByScore::subtract, scores, weights);
        });

    using Measure = InTurns<MeasureOracle>;
    nb::class_<Measure>(m, "MeasureOracle")
        .def("__init__",
             [](Measure *self, const std::string &form, double parameter, In<double> discount,
                std::size_t threads) {
                 expect_threads(threads);
                 new (self) Measure(MeasureSolver(measure_named(form), parameter, span_of(discount)), threads);
             })
        .def("add_tasks",
             [](Measure &self, In<std::int64_t> first, In<std::int64_t> n_pos, In<std::int64_t> n_neg,
                In<double> coefficients) {
                 const Turn turn(self.mutex);
                 self.add_tasks(span_of(first), span_of(n_pos), span_of(n_neg), span_of(coefficients));
             })
        .def("__call__", &solve<MeasureOracle>)
        .def("one", &call_one<MeasureOracle>)
        .def("mixed", &call_mixed<MeasureOracle>);
    m.def("count_below", &below, nb::arg("values"), nb::arg("scores"));
}
