// Bins of scores, as Python has them.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sorting/bins.hpp"
#include "oracles/score_cells.hpp"
#include "arrays.hpp"

namespace apsvm {

// Bins made of a sample (core/sorting/bins.hpp).
class ScoreBins {
public:
    static constexpr std::size_t kMostBins = 1u << 24;

    ScoreBins(In<double> sample, std::size_t n_neg, std::size_t n_pos, std::size_t most)
        : bins_(fit(sample, n_neg, n_pos, most)) {}

    const Bins &bins() const { return bins_; }
    std::size_t size() const { return count_of(bins_); }

    // (lower, upper): the edges of each bin.
    nb::tuple edges() const {
        std::vector<double> lower(size()), upper(size());
        std::visit(
            [&](const auto &kind) {
                for (std::size_t bin = 0; bin < lower.size(); ++bin) {
                    lower[bin] = kind.lower_edge(bin);
                    upper[bin] = kind.upper_edge(bin);
                }
            },
            bins_);
        return nb::make_tuple(to_numpy(std::move(lower)), to_numpy(std::move(upper)));
    }

    // (counts, lowest, highest): how many are in each bin, and the extremes; cells becomes the bin of each score.
    nb::tuple number(In<double> scores, Out<std::int32_t> cells) const {
        expect_size(cells.size(), scores.size(), "cells, as there are scores");
        expect_numerable(scores.size());
        std::vector<std::int64_t> counts(size(), 0);
        Range range;
        {
            nb::gil_scoped_release unlocked;
            range = number_cells(bins_, span_of(scores), {cells.data(), cells.size()}, counts);
        }
        return nb::make_tuple(to_numpy(std::move(counts)), range.lowest, range.highest);
    }

private:
    static Bins fit(const In<double> &scores, std::size_t n_neg, std::size_t n_pos, std::size_t most) {
        if (most < 1 || most > kMostBins) throw std::invalid_argument("expected at most 2^24 bins");
        std::vector<double> sample(scores.data(), scores.data() + scores.size());
        if (sample.empty() || !std::all_of(sample.begin(), sample.end(), [](double s) { return std::isfinite(s); }))
            throw std::invalid_argument("expected a sample of finite scores");
        const Spread spread = sample_spread(sample);
        return make_bins(spread, sample, n_neg, n_pos, most);
    }

    Bins bins_;
};

}  // namespace apsvm
