// The oracles: RankingOracle and MeasureOracle, with one face.
#include "module.hpp"

#include <nanobind/stl/string.h>

#include "../core/measure_oracle.hpp"
#include "../core/ranking_oracle.hpp"
#include "../core/sorting.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

nb::tuple as_tuple(const Answer &answer) {
    return nb::make_tuple(answer.value, answer.loss, answer.evaluated, answer.violating);
}

// (Σ coefficient·h, Σ coefficient·Δ, ranks evaluated, violating) over all tasks; fills the row weights.
template <class Oracle>
nb::tuple call(Oracle &oracle, In<double> scores, Out<double> weights) {
    expect_size(scores.size(), oracle.rows(), "scores, as the tasks have rows");
    expect_size(weights.size(), oracle.rows(), "row weights, as the tasks have rows");
    Answer answer;
    {
        nb::gil_scoped_release unlocked;
        answer = oracle.solve(scores.data(), weights.data());
    }
    return as_tuple(answer);
}

// The same for one query whose classes stand apart.
nb::tuple call_one(RankingOracle &oracle, In<double> positives, In<double> negatives, Out<double> weights_pos,
                   Out<double> weights_neg) {
    const LossTables &tables = oracle.tables_of_one();
    expect_size(positives.size(), static_cast<std::size_t>(tables.n_pos), "scores of positives");
    expect_size(negatives.size(), tables.n_neg, "scores of negatives");
    expect_size(weights_pos.size(), positives.size(), "row weights of positives");
    expect_size(weights_neg.size(), negatives.size(), "row weights of negatives");
    Answer answer;
    {
        nb::gil_scoped_release unlocked;
        answer = oracle.solve_one(positives.data(), negatives.data(), weights_pos.data(), weights_neg.data());
    }
    return as_tuple(answer);
}

nb::tuple call_one(MeasureOracle &oracle, In<double> positives, In<double> negatives, Out<double> weights_pos,
                   Out<double> weights_neg) {
    expect_numerable(positives.size());
    expect_numerable(negatives.size());
    oracle.solver().check_sizes(static_cast<std::int64_t>(positives.size()),
                                static_cast<std::int64_t>(negatives.size()));
    expect_size(weights_pos.size(), positives.size(), "row weights of positives");
    expect_size(weights_neg.size(), negatives.size(), "row weights of negatives");
    const MeasureQuery query{positives.data(),   static_cast<std::int32_t>(positives.size()),
                             negatives.data(),   static_cast<std::int32_t>(negatives.size()),
                             weights_pos.data(), weights_neg.data()};
    Answer answer;
    {
        nb::gil_scoped_release unlocked;
        answer = oracle.solve_one(query);
    }
    return as_tuple(answer);
}

}  // namespace

void bind_oracles(nb::module_ &m) {
    m.def("descending_order", [](In<double> scores) {
        expect_numerable(scores.size());
        std::vector<std::int64_t> order;
        {
            nb::gil_scoped_release unlocked;
            order = descending_order(span_of(scores));
        }
        return to_numpy(std::move(order));
    });

    nb::class_<RankingOracle>(m, "RankingOracle")
        .def("__init__",
             [](RankingOracle *self, const std::string &algorithm, bool unimodal, std::size_t threads) {
                 expect_threads(threads);
                 new (self) RankingOracle(algorithm_named(algorithm), unimodal, threads);
             })
        .def("add_tables",
             [](RankingOracle &self, std::size_t n_neg, In<double> weights, In<double> discount, In<double> drops) {
                 self.add_tables(LossTables(n_neg, span_of(weights), span_of(discount), span_of(drops)));
             })
        .def("add_tasks",
             [](RankingOracle &self, In<std::int64_t> first, In<std::int64_t> tables, In<double> coefficients) {
                 self.add_tasks(span_of(first), span_of(tables), span_of(coefficients));
             })
        .def("__call__", &call<RankingOracle>)
        .def("one", nb::overload_cast<RankingOracle &, In<double>, In<double>, Out<double>, Out<double>>(&call_one));

    nb::class_<MeasureOracle>(m, "MeasureOracle")
        .def("__init__",
             [](MeasureOracle *self, const std::string &form, double parameter, In<double> discount, In<double> drops,
                std::size_t threads) {
                 expect_threads(threads);
                 new (self) MeasureOracle(
                     MeasureSolver(measure_named(form), parameter, span_of(discount), span_of(drops)), threads);
             })
        .def("add_tasks",
             [](MeasureOracle &self, In<std::int64_t> first, In<std::int64_t> n_pos, In<std::int64_t> n_neg,
                In<double> coefficients) {
                 self.add_tasks(span_of(first), span_of(n_pos), span_of(n_neg), span_of(coefficients));
             })
        .def("__call__", &call<MeasureOracle>)
        .def("one", nb::overload_cast<MeasureOracle &, In<double>, In<double>, Out<double>, Out<double>>(&call_one));
}
