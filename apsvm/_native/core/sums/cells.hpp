// The bookkeeping of the fast sums: which cells scores lie in, and the moments of the rows of a block, of a segment and
// of a set of segments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sorting/sorting.hpp"
#include "support/require.hpp"

namespace apsvm {

// Rows that are worked on together: in the second-level cache.
constexpr std::size_t kBlock = 8192;
// More cells than these in a row are numbered by looking for those in use.
constexpr double kMostCells = 8192;

// Cells by their number: `ids` ascends. A few numbers in a row, or, where scores are spread too far, those in use.
using Ids = std::vector<double>;

// The cells that some scores need, ascending.
class Grid {
public:
    template <class Basis>
    void lay(const Basis &basis, std::span<const double> scores) {
        const auto [low, high] = extent_of(scores.data(), scores.size());
        ids.clear();
        const double first = basis.id(low), last = basis.id(high);
        require(std::isfinite(first) && std::isfinite(last), "expected scores that cells can number");
        in_a_row = last - first < kMostCells;
        if (in_a_row) {
            while (ids.size() <= static_cast<std::size_t>(last - first))
                ids.push_back(first + static_cast<double>(ids.size()));
            return;
        }
        for (const double f : scores) ids.push_back(basis.id(f));
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }

    std::int32_t at(double id) const {
        return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
    }

    Ids ids;
    bool in_a_row = true;
};

// Rows of one segment, sorted into runs: a run has one key, that is one series. Moments of the rows, and the cells of
// which they are, one for each `stride` moments and none descending.
struct Block {
    struct Run {
        std::int32_t key;
        std::uint32_t begin;
    };
    std::size_t begin, end;
    std::vector<Run> runs;
    std::vector<std::int32_t> cells;
    std::vector<double> moments;
};

inline void add_blocks(std::vector<Block> &blocks, std::size_t &used, std::size_t begin, std::size_t end) {
    for (; begin < end; begin = std::min(end, begin + kBlock)) {
        if (used == blocks.size()) blocks.emplace_back();
        blocks[used].begin = begin;
        blocks[used].end = std::min(end, begin + kBlock);
        ++used;
    }
}

// The cells in use by one segment, ascending, with the moments of each.
struct CellsInUse {
    std::vector<std::int32_t> cells;
    std::vector<double> moments;
};

// Adds up the blocks, in order. slots: one a cell of the grid, all −1 before and after.
void add_up_blocks(std::span<const Block> blocks, std::size_t stride, std::vector<std::int32_t> &slots,
                   CellsInUse &use);

// The moments of a set of segments, cell by cell, and which cells hold rows at all.
struct Field {
    std::size_t stride = 0;
    std::vector<double> moments;
    std::vector<std::uint8_t> holds;

    void clear(std::size_t cells, std::size_t numbers_per_cell) {
        stride = numbers_per_cell;
        moments.assign(cells * stride, 0.0);
        holds.assign(cells, 0);
    }
    void add(const CellsInUse &use) {
        for (std::size_t c = 0; c < use.cells.size(); ++c) {
            const auto cell = static_cast<std::size_t>(use.cells[c]);
            for (std::size_t k = 0; k < stride; ++k) moments[cell * stride + k] += use.moments[c * stride + k];
            holds[cell] = 1;
        }
    }
};

}  // namespace apsvm
