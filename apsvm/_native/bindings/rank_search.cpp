// Ranks of negatives whose scores are somewhere else (core/rank_search.hpp).
#include "module.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "../core/rank_search.hpp"
#include "arrays.hpp"

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
        std::vector<Cell> cells = cells_of(first, count, upper, lower, low, high);
        std::vector<std::int32_t> lows(cells.size()), highs(cells.size());
        {
            nb::gil_scoped_release unlocked;
            bound_cells(problem_, cells.data(), cells.data() + cells.size());
            for (std::size_t i = 0; i < cells.size(); ++i) std::tie(lows[i], highs[i]) = {cells[i].low, cells[i].high};
        }
        return nb::make_tuple(to_numpy(std::move(lows)), to_numpy(std::move(highs)));
    }

    auto rank(In<std::int64_t> first, In<std::int64_t> count, In<double> scores, In<std::int32_t> low,
              In<std::int32_t> high) const {
        const std::vector<Cell> cells = cells_of(first, count, {}, {}, low, high);
        std::int64_t total = 0;
        for (const Cell &cell : cells) total += cell.count;
        expect_size(scores.size(), static_cast<std::size_t>(total), "scores of the cells");
        expect_numerable(scores.size());
        expect_finite(span_of(scores), "scores of the cells");
        std::vector<std::int32_t> ranks(scores.size());
        {
            nb::gil_scoped_release unlocked;
            std::int64_t at = 0;
            for (const Cell &cell : cells) {
                rank_cell(problem_, cell, scores.data() + at, ranks.data() + at);
                at += cell.count;
            }
        }
        return to_numpy(std::move(ranks));
    }

    nb::tuple rank_tied(In<std::int64_t> first, In<std::int64_t> count, In<double> scores, In<std::int32_t> low,
                        In<std::int32_t> high) const {
        const std::vector<Cell> cells = cells_of(first, count, scores, scores, low, high);
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
    // Cells within the positions there are; edges may be left out where nobody asks for them.
    std::vector<Cell> cells_of(const In<std::int64_t> &first, const In<std::int64_t> &count, const In<double> &upper,
                               const In<double> &lower, const In<std::int32_t> &low,
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
            cells[i] = {first.data()[i], count.data()[i], edges ? upper.data()[i] : 0.0, edges ? lower.data()[i] : 0.0,
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

nb::tuple refined(In<double> scores, Out<std::int32_t> cells, In<std::int64_t> lowest_keys, In<std::uint8_t> shifts,
                  std::int32_t parts) {
    const std::size_t n = lowest_keys.size();
    expect_size(cells.size(), scores.size(), "cells, as there are scores");
    expect_size(shifts.size(), n, "shifts, as there are cells");
    if (parts < 1 || n > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / parts))
        throw std::invalid_argument("expected cells and parts that 31 bits number");
    for (const std::uint8_t shift : span_of(shifts))
        if (shift > 63) throw std::invalid_argument("expected shifts of at most 63 bits");
    for (std::size_t i = 0; i < cells.size(); ++i)
        if (cells.data()[i] < 0 || static_cast<std::size_t>(cells.data()[i]) >= n)
            throw std::invalid_argument("expected cells that there are");
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<std::int64_t> counts(n * static_cast<std::size_t>(parts), 0);
    std::vector<double> lowest(n, infinity), highest(n, -infinity);
    {
        nb::gil_scoped_release unlocked;
        refine_cells(span_of(scores), {cells.data(), cells.size()}, span_of(lowest_keys), span_of(shifts), parts,
                     counts, lowest, highest);
    }
    return nb::make_tuple(to_numpy(std::move(counts)), to_numpy(std::move(lowest)), to_numpy(std::move(highest)));
}

}  // namespace

void bind_rank_search(nb::module_ &m) {
    nb::class_<RankSearch>(m, "RankSearch")
        .def(nb::init<In<double>, In<double>, In<double>, bool>(), nb::arg("positives"), nb::arg("weights"),
             nb::arg("discount"), nb::kw_only(), nb::arg("unimodal"))
        .def("bound", &RankSearch::bound, nb::arg("first"), nb::arg("count"), nb::arg("upper"), nb::arg("lower"),
             nb::arg("low"), nb::arg("high"))
        .def("rank", &RankSearch::rank, nb::arg("first"), nb::arg("count"), nb::arg("scores"), nb::arg("low"),
             nb::arg("high"))
        .def("rank_tied", &RankSearch::rank_tied, nb::arg("first"), nb::arg("count"), nb::arg("scores"),
             nb::arg("low"), nb::arg("high"));

    m.def("refine_cells", &refined, nb::arg("scores"), nb::arg("cells"), nb::arg("lowest_keys"), nb::arg("shifts"),
          nb::arg("parts"));
}
