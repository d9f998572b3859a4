// Rules: trees that boosting grows, and the leaves that rows fall into.
#include "module.hpp"

#include <algorithm>

#include "rules/boosting.hpp"
#include "rules/leaves.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

void expect_depth(std::size_t depth) {
    if (depth < 1 || depth > rules::kMostDepth) throw std::invalid_argument("expected a depth from 1 to 6");
}

nb::tuple boost(In2<std::uint8_t> codes, In2<double> targets, std::size_t trees, std::size_t depth, double rate,
                std::size_t rows, std::size_t columns, double prior, double leaf_prior, double noise, bool logistic,
                std::uint64_t seed) {
    const std::size_t n = codes.shape(0), d = codes.shape(1);
    if (n == 0 || d == 0 || targets.shape(0) == 0) throw std::invalid_argument("expected rows, features and targets");
    expect_numerable(std::max(n, d));
    expect_size(targets.shape(1), n, "targets, as there are rows");
    expect_depth(depth);
    if (trees > (std::size_t{1} << 20)) throw std::invalid_argument("expected at most 2^20 trees");
    if (rows < 1 || rows > n || columns < 1 || columns > d)
        throw std::invalid_argument("expected 1 to n rows and 1 to d columns a tree");
    if (!(prior > 0.0 && leaf_prior >= 0.0 && noise >= 0.0))
        throw std::invalid_argument("expected a prior above 0, and a leaf's prior and noise from 0");
    const std::span<const double> target(targets.data(), targets.size());
    expect_finite(target, "targets");
    rules::Boosted grown;
    {
        nb::gil_scoped_release unlocked;
        grown = rules::boost({codes.data(), codes.size()}, n, d, target,
                             {trees, depth, rate, rows, columns, prior, leaf_prior, noise, logistic, seed});
    }
    return nb::make_tuple(to_numpy(std::move(grown.features)), to_numpy(std::move(grown.bins)),
                          to_numpy(std::move(grown.values)), to_numpy(std::move(grown.scores)));
}

template <class Value>
void rows_of_rules(In2<Value> X, In2<Value> beside, In2<std::int32_t> features, In2<double> thresholds,
                   In2<std::int32_t> columns, In2<double> sums, std::size_t depth, Out<std::int64_t> indptr,
                   Out<std::int32_t> indices, Out<Value> values) {
    expect_depth(depth);
    const std::size_t n = X.shape(0), d = X.shape(1), trees = features.shape(0), n_beside = beside.shape(1);
    const std::size_t n_columns = sums.shape(0), n_sums = sums.shape(1);
    expect_size(features.shape(1), rules::nodes_of(depth), "nodes a tree");
    expect_size(thresholds.size(), features.size(), "thresholds, as there are nodes");
    expect_size(columns.size(), trees << depth, "columns, as there are leaves");
    expect_size(beside.shape(0), n, "rows beside");
    expect_size(indptr.size(), n + 1, "row starts");
    expect_size(indices.size(), n * (n_beside + trees + n_sums), "indices");
    expect_size(values.size(), indices.size(), "values, as there are indices");
    for (std::size_t i = 0; i < features.size(); ++i)
        if (features.data()[i] >= 0 && static_cast<std::size_t>(features.data()[i]) >= d)
            throw std::invalid_argument("a tree splits by a feature that the rows do not have");
    for (std::size_t i = 0; i < columns.size(); ++i)
        if (columns.data()[i] >= 0 && static_cast<std::size_t>(columns.data()[i]) - n_beside >= n_columns)
            throw std::invalid_argument("the column of a leaf is none of those that follow the columns beside");
    nb::gil_scoped_release unlocked;
    rules::write_rows(rules::Trees{trees, depth, features.data(), thresholds.data(), columns.data()}, X.data(), n, d,
                      beside.data(), n_beside, sums.data(), n_columns, n_sums, indptr.data(), indices.data(), values.data());
}

}  // namespace

void bind_rules(nb::module_ &m) {
    m.def("boost", &boost);
    m.def("rows_of_rules", &rows_of_rules<double>);
    m.def("rows_of_rules", &rows_of_rules<float>);
}
