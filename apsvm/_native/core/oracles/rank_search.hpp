// Ranks of negatives whose scores are somewhere else: cells of scores, of which positions and edges are known.
//
// The steps of binned_ranks.hpp again, for callers who refine what is left open cell by cell, at several levels, over
// several machines: what a step knows of a cell comes in, and bounds on its ranks go out. Cells stand in descending
// order of score; a cell's negatives have the positions first … first + count − 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracles/inference.hpp"

namespace apsvm {

struct Cell {
    std::int64_t first, count;
    double upper, lower;     // edges: lower ≤ score ≤ upper of each of its negatives; may be infinite
    std::int32_t low, high;  // bounds on its ranks
};

// Tightens `low` and `high` of every cell, by divide and conquer.
void bound_cells(const Problem &problem, Cell *begin, Cell *end);

// One of several parts of the cells' negatives. Its scores stand as score_cells.hpp collects them, from the last cell to
// the first, and in a cell in the order of the negatives; of equal scores those of an earlier part come first.
struct PartOfCells {
    const std::int32_t *counts;  // of its negatives in each cell; those of all parts sum to the cell's
    std::span<const double> scores;
    std::int32_t *ranks;  // to be written, as the scores stand
};

// Ranks the negatives of all cells. Returns how many have each rank, 0 … P + 1.
std::vector<std::int64_t> rank_cells(const Problem &problem, std::span<const Cell> cells,
                                     std::span<const PartOfCells> parts, std::size_t threads);

// `count` negatives after one another have this rank.
struct Run {
    std::int32_t rank;
    std::int64_t count;
};

// The ranks of a cell whose negatives all have the score `upper`, in the order of the negatives; appended to `runs`.
void rank_tied_cell(const Problem &problem, const Cell &cell, std::vector<Run> &runs);

// Cuts [lower, upper], lower < upper, into at most this many pieces of equal width or, `by_key`, of equally many
// floating-point numbers, so that every score is alone in the end. Appends the lowest score of each but the first.
void cut_evenly(double lower, double upper, std::int64_t pieces, bool by_key, std::vector<double> &lowest);

}  // namespace apsvm
