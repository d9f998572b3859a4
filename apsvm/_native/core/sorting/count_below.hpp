// How many of some values are below each of many scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sorting/bins.hpp"

namespace apsvm {

// Cells, a few for each value, say where among the values a score stands (bins.hpp): the same arithmetic finds the cell
// of a value and of a score, so that a value in a later cell than the score's is above it. Cells are of equal width
// unless that crowds the values.
class CountBelow {
public:
    // The values: finite, at least one and fewer than 2^30, in any order.
    void fit(const double *values, std::size_t n);

    double largest() const { return largest_; }

    // counts[i] = #{v : v < scores[i]}
    void operator()(const double *scores, std::size_t n, std::int32_t *counts) const;

private:
    bool fill_cells();  // returns whether they are crowded

    Bins bins_{EvenBins(0.0, 1.0, 1)};
    double largest_ = 0.0;
    std::vector<double> values_;        // ascending, each once, and a few infinities
    std::vector<std::int32_t> below_;   // how many values, repeated ones too, stand before each of these
    std::vector<std::int32_t> begins_;  // of the cells, in the values
};

}  // namespace apsvm
