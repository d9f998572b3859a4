// Ranks of negatives whose scores are somewhere else: cells of scores, of which positions and edges are known.
//
// The steps of binned_ranks.hpp again, for callers who refine what is left open cell by cell, at several levels, over
// several machines: what a step knows of a cell comes in, and bounds on its ranks go out. Cells stand in descending
// order of score; a cell's negatives have the positions first … first + count − 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inference.hpp"

namespace apsvm {

struct Cell {
    std::int64_t first, count;
    double upper, lower;     // edges: lower ≤ score ≤ upper of each of its negatives; may be infinite
    std::int32_t low, high;  // bounds on its ranks
};

// Tightens `low` and `high` of every cell, by divide and conquer.
void bound_cells(const Problem &problem, Cell *begin, Cell *end);

// The ranks of a cell's negatives, whose scores stand in the order of the negatives.
void rank_cell(const Problem &problem, const Cell &cell, const double *scores, std::int32_t *ranks);

// `count` negatives after one another have this rank.
struct Run {
    std::int32_t rank;
    std::int64_t count;
};

// The ranks of a cell whose negatives all have the score `upper`, in the order of the negatives; appended to `runs`.
void rank_tied_cell(const Problem &problem, const Cell &cell, std::vector<Run> &runs);

// Scores as integers in the same order: −0 is 0.
std::int64_t key_of(double score);

// Cuts cells into parts. Item i has scores[i] and is in the cell cells[i]; it falls into the part
//     (key of its score − lowest_keys[cell]) >> shifts[cell],   within 0 … parts − 1,
// and cells[i] becomes cell · parts + part. Adds to counts[cell · parts + part], and widens lowest[cell] … highest[cell].
void refine_cells(std::span<const double> scores, std::span<std::int32_t> cells,
                  std::span<const std::int64_t> lowest_keys, std::span<const std::uint8_t> shifts, std::int32_t parts,
                  std::span<std::int64_t> counts, std::span<double> lowest, std::span<double> highest);

}  // namespace apsvm
