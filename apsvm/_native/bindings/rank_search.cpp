// Ranks of negatives whose scores are somewhere else (core/oracles/rank_search.hpp).
#include "module.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/vector.h>

#include "oracles/binned_ranks.hpp"
#include "oracles/rank_search.hpp"
#include "arrays.hpp"
#include "score_bins.hpp"

namespace {

using namespace apsvm;

class RankSearch {
public:
    RankSearch(In<double> positives, In<double> weights, In<double> discount, bool unimodal)
        : positives_(positives), weights_(weights), discount_(discount) {
        expect_size(positives.size(), weights.size(), "scores of positives, as there are weights");
        const std::size_t n_pos = positives.size(), rows = discount.size();
        if (n_pos == 0 || n_pos > std::numeric_limits<std::int32_t>::max() / 2 || rows <= n_pos)
            throw std::invalid_argument("expected at least one positive and one negative, fewer than 2^30 positives");
        for (std::size_t k = 1; k < n_pos; ++k)
            if (!(positives.data()[k - 1] >= positives.data()[k]))
                throw std::invalid_argument("expected the scores of the positives in descending order");
        n_neg_ = static_cast<std::int64_t>(rows - n_pos);
        problem_ = {positives_.data(), static_cast<std::int32_t>(n_pos), weights_.data(), discount_.data(),
                    2.0 / (static_cast<double>(n_pos) * static_cast<double>(n_neg_)), unimodal};
    }

    nb::tuple bound(In<std::int64_t> first, In<std::int64_t> count, In<double> upper, In<double> lower,
                    In<std::int32_t> low, In<std::int32_t> high) const {
        std::vector<Cell> cells = cells_of(first, span_of(count), upper, lower, low, high);
        std::vector<std::int32_t> lows(cells.size()), highs(cells.size());
        {
            nb::gil_scoped_release unlocked;
            bound_cells(problem_, cells.data(), cells.data() + cells.size());
            for (std::size_t i = 0; i < cells.size(); ++i) std::tie(lows[i], highs[i]) = {cells[i].low, cells[i].high};
        }
        return nb::make_tuple(to_numpy(std::move(lows)), to_numpy(std::move(highs)));
    }

    // (ranks, name, first, count, low, high): of all bins the ranks, 0 where a bin is open, and the open bins, highest
    // scores first.
    nb::tuple bound_bins(const ScoreBins &bins, In<std::int64_t> counts, std::size_t threads) const {
        expect_threads(threads);
        expect_size(counts.size(), bins.size(), "counts, as there are bins");
        std::int64_t left = n_neg_;
        for (const std::int64_t count : span_of(counts)) {
            if (count < 0 || count > left) throw std::invalid_argument("expected counts of the negatives that there are");
            left -= count;
        }
        Bounds bounds;
        std::vector<std::int64_t> firsts, n;
        std::vector<std::int32_t> names, lows, highs;
        {
            nb::gil_scoped_release unlocked;
            std::vector<std::int64_t> rank_counts(static_cast<std::size_t>(problem_.n_pos) + 2, 0);
            bound_ranks(problem_, bins.bins(), counts.data(), 1, rank_counts.data(), threads, bounds);
            for (const FilledBin &bin : bounds.open) {
                names.push_back(static_cast<std::int32_t>(bin.name));
                firsts.push_back(bin.first);
                n.push_back(bin.count);
                lows.push_back(bin.low);
                highs.push_back(bin.high);
            }
        }
        return nb::make_tuple(to_numpy(std::move(bounds.rank_of_bin)), to_numpy(std::move(names)),
                              to_numpy(std::move(firsts)), to_numpy(std::move(n)), to_numpy(std::move(lows)),
                              to_numpy(std::move(highs)));
    }

    // (ranks, counts): the ranks of each part's scores, and how many have each rank.
    nb::tuple rank(In<std::int64_t> first, In2<std::int32_t> counts, const std::vector<In<double>> &scores,
                   In<std::int32_t> low, In<std::int32_t> high, std::size_t threads) const {
        expect_threads(threads);
        const std::size_t n_parts = scores.size(), n_cells = first.size();
        expect_size(counts.shape(0), n_parts, "rows of counts, as there are parts");
        expect_size(counts.shape(1), n_cells, "counts of each part, as there are cells");
        std::vector<std::int64_t> of_cells(n_cells, 0);
        std::vector<std::vector<std::int32_t>> ranks;
        std::vector<PartOfCells> parts;
        ranks.reserve(n_parts);
        for (std::size_t p = 0; p < n_parts; ++p) {
            const std::int32_t *const of_part = counts.data() + p * n_cells;
            std::int64_t total = 0;
            for (std::size_t c = 0; c < n_cells; ++c) {
                if (of_part[c] < 0) throw std::invalid_argument("expected counts of at least 0");
                of_cells[c] += of_part[c];
                total += of_part[c];
            }
            expect_size(scores[p].size(), static_cast<std::size_t>(total), "scores of the cells");
            expect_numerable(scores[p].size());
            expect_finite(span_of(scores[p]), "scores of the cells");
            ranks.emplace_back(scores[p].size());
            parts.push_back({of_part, span_of(scores[p]), ranks.back().data()});
        }
        const std::vector<Cell> cells = cells_of(first, of_cells, {}, {}, low, high);
        for (const Cell &cell : cells) expect_numerable(static_cast<std::size_t>(cell.count));
        std::vector<std::int64_t> of_ranks;
        {
            nb::gil_scoped_release unlocked;
            of_ranks = rank_cells(problem_, cells, parts, threads);
        }
        nb::list of_parts;
        for (std::vector<std::int32_t> &of_part : ranks) of_parts.append(to_numpy(std::move(of_part)));
        return nb::make_tuple(of_parts, to_numpy(std::move(of_ranks)));
    }

    nb::tuple rank_tied(In<std::int64_t> first, In<std::int64_t> count, In<double> scores, In<std::int32_t> low,
                        In<std::int32_t> high) const {
        const std::vector<Cell> cells = cells_of(first, span_of(count), scores, scores, low, high);
        std::vector<Run> runs;
        std::vector<std::int64_t> starts{0}, counts;
        std::vector<std::int32_t> ranks;
        {
            nb::gil_scoped_release unlocked;
            for (const Cell &cell : cells) {
                rank_tied_cell(problem_, cell, runs);
                starts.push_back(static_cast<std::int64_t>(runs.size()));
            }
            for (const Run &run : runs) {
                ranks.push_back(run.rank);
                counts.push_back(run.count);
            }
        }
        return nb::make_tuple(to_numpy(std::move(starts)), to_numpy(std::move(ranks)), to_numpy(std::move(counts)));
    }

private:
    // Cells within the positions there are; edges may be left out where they are not needed.
    std::vector<Cell> cells_of(const In<std::int64_t> &first, std::span<const std::int64_t> count,
                               const In<double> &upper, const In<double> &lower, const In<std::int32_t> &low,
                               const In<std::int32_t> &high) const {
        const std::size_t n = first.size();
        const bool edges = upper.is_valid();
        expect_size(count.size(), n, "counts, as there are cells");
        expect_size(low.size(), n, "least ranks, as there are cells");
        expect_size(high.size(), n, "greatest ranks, as there are cells");
        if (edges) {
            expect_size(upper.size(), n, "upper edges, as there are cells");
            expect_size(lower.size(), n, "lower edges, as there are cells");
        }
        std::vector<Cell> cells(n);
        for (std::size_t i = 0; i < n; ++i) {
            cells[i] = {first.data()[i], count[i], edges ? upper.data()[i] : 0.0, edges ? lower.data()[i] : 0.0,
                        low.data()[i], high.data()[i]};
            const Cell &cell = cells[i];
            if (cell.first < 1 || cell.count < 1 || cell.first > n_neg_ || cell.count > n_neg_ - cell.first + 1)
                throw std::invalid_argument("expected cells of positions that there are");
            if (cell.low < 1 || cell.low > cell.high || cell.high > problem_.n_pos + 1)
                throw std::invalid_argument("expected bounds on ranks within 1 … P + 1");
        }
        return cells;
    }

    In<double> positives_, weights_, discount_;  // kept alive: the tables of a long list are not copied
    std::int64_t n_neg_;
    Problem problem_;
};

// (pieces, lowest): how many pieces each cell [lower, upper] is cut into, at most those asked for, and the lowest score
// of each but its cell's first.
nb::tuple cut(In<double> lower, In<double> upper, In<std::int64_t> pieces, bool by_key) {
    const std::size_t n = lower.size();
    expect_size(upper.size(), n, "upper edges, as there are cells");
    expect_size(pieces.size(), n, "numbers of pieces, as there are cells");
    std::int64_t total = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double low = lower.data()[i], high = upper.data()[i];
        if (!(std::isfinite(low) && std::isfinite(high) && low < high))
            throw std::invalid_argument("expected finite edges, the lower one below the upper one");
        const std::int64_t asked = pieces.data()[i];
        if (asked < 2 || asked > std::numeric_limits<std::int32_t>::max() - total)
            throw std::invalid_argument("expected at least two pieces of each, fewer than 2^31 of all");
        total += asked;
    }
    std::vector<std::int64_t> made;
    std::vector<double> lowest;
    {
        nb::gil_scoped_release unlocked;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t before = lowest.size();
            cut_evenly(lower.data()[i], upper.data()[i], pieces.data()[i], by_key, lowest);
            made.push_back(static_cast<std::int64_t>(lowest.size() - before) + 1);
        }
    }
    return nb::make_tuple(to_numpy(std::move(made)), to_numpy(std::move(lowest)));
}

}  // namespace

void bind_rank_search(nb::module_ &m) {
    nb::class_<RankSearch>(m, "RankSearch")
        .def(nb::init<In<double>, In<double>, In<double>, bool>(), nb::arg("positives"), nb::arg("weights"),
             nb::arg("discount"), nb::kw_only(), nb::arg("unimodal"))
        .def("bound", &RankSearch::bound, nb::arg("first"), nb::arg("count"), nb::arg("upper"), nb::arg("lower"),
             nb::arg("low"), nb::arg("high"))
        .def("bound_bins", &RankSearch::bound_bins, nb::arg("bins"), nb::arg("counts"), nb::arg("threads") = 1)
        .def("rank", &RankSearch::rank, nb::arg("first"), nb::arg("counts"), nb::arg("scores"), nb::arg("low"),
             nb::arg("high"), nb::arg("threads") = 1)
        .def("rank_tied", &RankSearch::rank_tied, nb::arg("first"), nb::arg("count"), nb::arg("scores"),
             nb::arg("low"), nb::arg("high"));

    m.def("cut_evenly", &cut, nb::arg("lower"), nb::arg("upper"), nb::arg("pieces"), nb::arg("by_key"));
}
