// What a worker does with its share of a list: each of its negatives is in a cell of scores, and cells are cut, their
// scores are collected, and ranks come back as weights of rows. Where to cut and which ranks is decided elsewhere, for
// all workers alike (rank_search.hpp).
//
// Cells are numbered ascending with the score. `cells` holds the cell of each negative, in their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sorting/bins.hpp"

namespace apsvm {

// The lowest and the highest of some scores, +∞ and −∞ of none; both NaN where one is not finite.
struct Range {
    double lowest, highest;
};

// The bins as cells, and how many of the scores are in each.
Range number_cells(const Bins &bins, std::span<const double> scores, std::span<std::int32_t> cells,
                   std::span<std::int64_t> counts);

// Cuts cells: a negative of the cell c is afterwards in the cell
//     c + starts[c] + #{t in thresholds[starts[c]] … thresholds[starts[c + 1] − 1] : t ≤ score},
// and counts grows by one there.
void split_cells(std::span<const double> scores, std::span<std::int32_t> cells, std::span<const std::int32_t> starts,
                 std::span<const double> thresholds, std::span<std::int64_t> counts);

// The scores in the cells that are wanted, cell after cell, each cell's in the order of the negatives. `counts`: of
// each cell's negatives, as split_cells counts them; wanted[c] ≠ 0: the cell c is. Throws std::invalid_argument for
// counts of other cells.
std::vector<double> collect_scores(std::span<const double> scores, std::span<const std::int32_t> cells,
                                   std::span<const std::uint8_t> wanted, std::span<const std::int64_t> counts);

// Ranks of cells, 0 where a cell's negatives have their own: these stand cell after cell, like collected scores.
struct CellRanks {
    std::span<const std::int32_t> of_cell;
    std::span<const std::int32_t> of_open;
    std::int32_t n_pos;
    double scale;  // of the weights scale · (P + 1 − r)
};

// Writes the row weights. Returns the sums of weight · (score − top) and of weight · other; the latter is 0 where
// `other` is empty. Throws like collect_scores.
struct WeightedSums {
    double scores = 0.0, other = 0.0;
};
WeightedSums weigh_cells(std::span<const double> scores, std::span<const std::int32_t> cells,
                         std::span<const std::int64_t> counts, const CellRanks &ranks, double top,
                         std::span<const double> other, std::span<double> row_weights);

}  // namespace apsvm
