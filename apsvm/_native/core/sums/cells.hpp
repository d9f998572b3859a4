// The bookkeeping of the fast sums: rows sorted by the cells that their scores lie in, block by block, and the moments
// of the cells in use. `Basis` is Chebyshev or Fourier.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "sums/fast_sums.hpp"
#include "support/require.hpp"

namespace apsvm {

// Rows that are sorted by cell together: in the second-level cache.
constexpr std::size_t kBlock = 8192;
// More cells than these in a row are numbered by looking for those in use.
constexpr double kMostCells = 8192;
// Rows of one segment, sorted by cell: runs of rows with the same key, and each run's moments.
struct Block {
    struct Run {
        std::int32_t key;
        std::uint32_t begin;
    };
    std::size_t begin, end;
    std::vector<Run> runs;
    std::vector<double> moments;
};

// The cells that some scores need, ascending.
class Grid {
public:
    template <class Basis>
    void lay(const Basis &basis, std::initializer_list<std::pair<const double *, std::size_t>> scores) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (const auto &[f, n] : scores)
            for (std::size_t i = 0; i < n; ++i) {
                low = std::min(low, f[i]);
                high = std::max(high, f[i]);
            }
        ids.clear();
        const double first = basis.id(low), last = basis.id(high);
        require(std::isfinite(first) && std::isfinite(last), "expected scores that cells can number");
        in_a_row = last - first < kMostCells;
        if (in_a_row) {
            while (ids.size() <= static_cast<std::size_t>(last - first))
                ids.push_back(first + static_cast<double>(ids.size()));
            return;
        }
        for (const auto &[f, n] : scores)
            for (std::size_t i = 0; i < n; ++i) ids.push_back(basis.id(f[i]));
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }

    std::int32_t at(double id) const {
        return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
    }

    Ids ids;
    bool in_a_row = true;
};

// Sorts a block's rows by cell: to_x (and to_q, if there are weights q) take their places in their cells, `where` their
// positions in the block. f, q: of all rows.
template <class Basis>
void sort_block(const Basis &basis, const Grid &grid, const double *f, const double *q, Block &block, double *to_x,
                double *to_q, std::uint16_t *where) {
    const std::size_t n = block.end - block.begin;
    f += block.begin;
    thread_local std::vector<double> x;
    thread_local std::vector<std::int32_t> key;
    thread_local std::vector<std::uint32_t> next;
    x.resize(kBlock);
    key.resize(kBlock);
    if (grid.in_a_row) {
        basis.place(f, n, grid.ids[0], x.data(), key.data());
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            const double id = basis.id(f[i]);
            basis.place(f + i, 1, id, x.data() + i, key.data() + i);
            key[i] += grid.at(id) * static_cast<std::int32_t>(basis.variants());
        }
    }
    block.runs.clear();
    const std::size_t keys = grid.ids.size() * basis.variants();
    if (keys <= 8 * n) {
        next.assign(keys, 0);
        for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::size_t>(key[i])];
        std::uint32_t at = 0;
        for (std::size_t k = 0; k < keys; ++k) {
            if (next[k] != 0) block.runs.push_back({static_cast<std::int32_t>(k), at});
            at += std::exchange(next[k], at);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t place = next[static_cast<std::size_t>(key[i])]++;
            to_x[place] = x[i];
            where[place] = static_cast<std::uint16_t>(i);
        }
    } else {
        std::iota(where, where + n, std::uint16_t{0});
        std::sort(where, where + n,
                  [&](std::uint16_t a, std::uint16_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
        for (std::uint32_t i = 0; i < n; ++i) {
            to_x[i] = x[where[i]];
            if (i == 0 || key[where[i]] != key[where[i - 1]]) block.runs.push_back({key[where[i]], i});
        }
    }
    if (q != nullptr)
        for (std::size_t i = 0; i < n; ++i) to_q[i] = q[block.begin + where[i]];
}

// Calls each(run, rows before it in the block, how many rows it has).
template <class Each>
void for_runs(const Block &block, Each each) {
    const auto n = static_cast<std::uint32_t>(block.end - block.begin);
    for (std::size_t r = 0; r < block.runs.size(); ++r) {
        const std::uint32_t begin = block.runs[r].begin;
        each(r, begin, (r + 1 < block.runs.size() ? block.runs[r + 1].begin : n) - begin);
    }
}

template <class Basis>
void take_moments(const Basis &basis, const double *x, const double *q, Block &block) {
    block.moments.resize(block.runs.size() * basis.stride());
    for_runs(block, [&](std::size_t r, std::size_t begin, std::size_t n) {
        basis.moments(x + begin, q == nullptr ? nullptr : q + begin, n, block.moments.data() + r * basis.stride());
    });
}

// The cells in use by one segment, ascending, with the moments and the number of rows of each.
struct CellsInUse {
    std::vector<std::int32_t> cells;
    std::vector<double> moments;
    std::vector<std::int64_t> rows;
};

// Adds up the blocks from … to − 1, in order. slots: one a cell of the grid, all −1 before and after.
template <class Basis>
void add_up_blocks(const Basis &basis, const Block *from, const Block *to, std::vector<std::int32_t> &slots,
                   CellsInUse &use) {
    const auto cell_of = [&](const Block::Run &run) { return static_cast<std::size_t>(run.key) / basis.variants(); };
    use.cells.clear();
    for (const Block *block = from; block < to; ++block)
        for (const Block::Run &run : block->runs)
            if (std::int32_t &slot = slots[cell_of(run)]; slot < 0) {
                slot = 0;
                use.cells.push_back(static_cast<std::int32_t>(cell_of(run)));
            }
    std::sort(use.cells.begin(), use.cells.end());
    for (std::size_t c = 0; c < use.cells.size(); ++c)
        slots[static_cast<std::size_t>(use.cells[c])] = static_cast<std::int32_t>(c);
    const std::size_t stride = basis.stride();
    use.moments.assign(use.cells.size() * stride, 0.0);
    use.rows.assign(use.cells.size(), 0);
    for (const Block *block = from; block < to; ++block)
        for_runs(*block, [&](std::size_t r, std::size_t, std::size_t n) {
            const auto slot = static_cast<std::size_t>(slots[cell_of(block->runs[r])]);
            for (std::size_t k = 0; k < stride; ++k) use.moments[slot * stride + k] += block->moments[r * stride + k];
            use.rows[slot] += static_cast<std::int64_t>(n);
        });
    for (const std::int32_t cell : use.cells) slots[static_cast<std::size_t>(cell)] = -1;
}

// out of the block's rows, from the coefficients of each cell in use; `out` held their sorted places.
template <class Basis>
void evaluate_block(const Basis &basis, const Block &block, const std::uint16_t *where, const CellsInUse &use,
                    const std::vector<double> &coefs, double *out) {
    thread_local std::vector<double> x;
    x.assign(out, out + (block.end - block.begin));
    std::size_t slot = 0;
    for_runs(block, [&](std::size_t r, std::size_t begin, std::size_t n) {
        const auto key = static_cast<std::size_t>(block.runs[r].key);
        while (static_cast<std::size_t>(use.cells[slot]) != key / basis.variants()) ++slot;
        basis.evaluate(coefs.data() + (slot * basis.variants() + key % basis.variants()) * basis.stride(),
                       x.data() + begin, n, where + begin, out);
    });
}

inline void add_blocks(std::vector<Block> &blocks, std::size_t &used, std::size_t begin, std::size_t end) {
    for (; begin < end; begin = std::min(end, begin + kBlock)) {
        if (used == blocks.size()) blocks.emplace_back();
        blocks[used].begin = begin;
        blocks[used].end = std::min(end, begin + kBlock);
        ++used;
    }
}

}  // namespace apsvm
