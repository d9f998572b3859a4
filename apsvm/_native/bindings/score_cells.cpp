// What a worker does with its share of a list (core/oracles/score_cells.hpp).
#include "sorting/count_below.hpp"
#include "oracles/score_cells.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>

#include "arrays.hpp"
#include "module.hpp"

namespace {

using namespace apsvm;

void expect_cells(std::span<const std::int32_t> cells, std::size_t n_cells) {
    expect_numerable(n_cells);
    std::uint32_t highest = 0;  // of a negative number: beyond all cells
    for (const std::int32_t cell : cells) highest = std::max(highest, static_cast<std::uint32_t>(cell));
    if (!cells.empty() && highest >= n_cells) throw std::invalid_argument("expected cells that there are");
}

// Raises for negative counts and for more than there are rows.
void expect_counts(const In<std::int64_t> &counts, std::size_t n_rows) {
    std::int64_t left = static_cast<std::int64_t>(n_rows);
    for (const std::int64_t count : span_of(counts)) {
        if (count < 0 || count > left) throw std::invalid_argument("expected counts of the rows that there are");
        left -= count;
    }
}

auto split(In<double> scores, Out<std::int32_t> cells, In<std::int32_t> starts, In<double> thresholds) {
    expect_size(cells.size(), scores.size(), "cells, as there are scores");
    if (starts.size() < 1 || starts.data()[0] != 0 || !std::is_sorted(starts.data(), starts.data() + starts.size()))
        throw std::invalid_argument("expected starts that ascend from 0");
    const std::size_t n_cells = starts.size() - 1;
    expect_size(thresholds.size(), static_cast<std::size_t>(starts.data()[n_cells]), "thresholds, as starts say");
    expect_numerable(n_cells + thresholds.size());
    expect_cells({cells.data(), cells.size()}, n_cells);
    std::vector<std::int64_t> counts(n_cells + thresholds.size(), 0);
    {
        nb::gil_scoped_release unlocked;
        split_cells(span_of(scores), {cells.data(), cells.size()}, span_of(starts), span_of(thresholds), counts);
    }
    return to_numpy(std::move(counts));
}

auto collect(In<double> scores, In<std::int32_t> cells, In<std::int64_t> counts, In<std::uint8_t> wanted) {
    expect_size(cells.size(), scores.size(), "cells, as there are scores");
    expect_size(wanted.size(), counts.size(), "marks, as there are cells");
    expect_cells(span_of(cells), counts.size());
    expect_counts(counts, scores.size());
    std::vector<double> collected;
    {
        nb::gil_scoped_release unlocked;
        collected = collect_scores(span_of(scores), span_of(cells), span_of(wanted), span_of(counts));
    }
    return to_numpy(std::move(collected));
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

nb::tuple extremes(In<double> scores, In<std::int32_t> cells, std::size_t n_cells) {
    expect_size(cells.size(), scores.size(), "cells, as there are scores");
    expect_cells(span_of(cells), n_cells);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> lowest(n_cells, infinity), highest(n_cells, -infinity);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const auto cell = static_cast<std::size_t>(cells.data()[i]);
        lowest[cell] = std::min(lowest[cell], scores.data()[i]);
        highest[cell] = std::max(highest[cell], scores.data()[i]);
    }
    return nb::make_tuple(to_numpy(std::move(lowest)), to_numpy(std::move(highest)));
}

void expect_ranks(std::span<const std::int32_t> ranks, std::int32_t lowest, std::int32_t n_pos) {
    for (const std::int32_t rank : ranks)
        if (rank < lowest || rank > n_pos + 1) throw std::invalid_argument("expected interleaving ranks up to P + 1");
}

nb::tuple weigh(In<double> scores, In<std::int32_t> cells, In<std::int64_t> counts, In<std::int32_t> ranks,
                In<std::int32_t> open_ranks, std::int32_t n_pos, double scale, double top,
                std::optional<In<double>> other, Out<double> row_weights) {
    const std::size_t n = scores.size();
    expect_size(cells.size(), n, "cells, as there are scores");
    expect_size(ranks.size(), counts.size(), "ranks, as there are cells");
    expect_size(row_weights.size(), n, "row weights, as there are scores");
    if (other) expect_size(other->size(), n, "other entries, as there are scores");
    if (n_pos < 0 || n_pos == std::numeric_limits<std::int32_t>::max())
        throw std::invalid_argument("expected fewer than 2^31 − 1 positives");
    expect_cells(span_of(cells), counts.size());
    expect_counts(counts, n);
    expect_ranks(span_of(ranks), 0, n_pos);
    expect_ranks(span_of(open_ranks), 1, n_pos);
    WeightedSums sums;
    {
        nb::gil_scoped_release unlocked;
        sums = weigh_cells(span_of(scores), span_of(cells), span_of(counts),
                           {span_of(ranks), span_of(open_ranks), n_pos, scale}, top,
                           other ? span_of(*other) : std::span<const double>{},
                           {row_weights.data(), row_weights.size()});
    }
    return nb::make_tuple(sums.scores, sums.other);
}

}  // namespace

void bind_score_cells(nb::module_ &m) {
    m.def("split_cells", &split, nb::arg("scores"), nb::arg("cells"), nb::arg("starts"), nb::arg("thresholds"));
    m.def("collect_scores", &collect, nb::arg("scores"), nb::arg("cells"), nb::arg("counts"),
          nb::arg("wanted"));
    m.def("count_below", &below, nb::arg("values"), nb::arg("scores"));
    m.def("cell_extremes", &extremes, nb::arg("scores"), nb::arg("cells"), nb::arg("n_cells"));
    m.def("weigh_cells", &weigh, nb::arg("scores"), nb::arg("cells"), nb::arg("counts"), nb::arg("ranks"),
          nb::arg("open_ranks"), nb::arg("n_pos"), nb::arg("scale"), nb::arg("top"), nb::arg("other").none(),
          nb::arg("row_weights"));
}
