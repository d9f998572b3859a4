#include "rank_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "quicksort.hpp"

namespace apsvm {

namespace {

void bound_between(const Problem &problem, Cell *begin, Cell *end, std::int32_t low, std::int32_t high) {
    while (begin < end) {
        if (low == high) {
            for (Cell *cell = begin; cell != end; ++cell) cell->low = cell->high = low;
            return;
        }
        Cell *const middle = begin + (end - begin) / 2;
        // Rounding at an edge may put two bounds on one rank in the wrong order.
        const std::int32_t least = std::clamp(middle->low, low, high);
        const std::int32_t most = std::clamp(middle->high, least, high);
        middle->low = std::isinf(middle->upper) ? least : problem.best_rank(middle->first, middle->upper, least, most);
        middle->high = std::isinf(middle->lower) ? most
                                                 : problem.best_rank(middle->first + middle->count - 1, middle->lower,
                                                                     middle->low, most);
        bound_between(problem, begin, middle, low, middle->low);
        low = middle->high;
        begin = middle + 1;
    }
}

void add_run(std::vector<Run> &runs, std::size_t from, std::int32_t rank, std::int64_t count) {
    if (runs.size() > from && runs.back().rank == rank)
        runs.back().count += count;
    else
        runs.push_back({rank, count});
}

void rank_tied(const Problem &problem, double score, std::int64_t begin, std::int64_t end, std::int32_t low,
               std::int32_t high, std::size_t from, std::vector<Run> &runs) {
    while (begin < end) {
        if (low == high) {
            add_run(runs, from, low, end - begin);
            return;
        }
        const std::int64_t middle = begin + (end - begin) / 2;
        const std::int32_t rank = problem.best_rank(middle, score, low, high);
        rank_tied(problem, score, begin, middle, low, rank, from, runs);
        add_run(runs, from, rank, 1);
        begin = middle + 1;
        low = rank;
    }
}

}  // namespace

void bound_cells(const Problem &problem, Cell *begin, Cell *end) {
    bound_between(problem, begin, end, 1, problem.n_pos + 1);
}

void rank_cell(const Problem &problem, const Cell &cell, const double *scores, std::int32_t *ranks) {
    std::vector<Scored> items(static_cast<std::size_t>(cell.count));
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = {scores[i], static_cast<std::int32_t>(i)};
    std::vector<std::int64_t> counts(static_cast<std::size_t>(problem.n_pos) + 2, 0);
    const Sink sink{ranks, counts.data()};
    rank_by_quicksort(problem, sink, cell.first, items.data(), items.data() + items.size(), cell.low, cell.high);
}

void rank_tied_cell(const Problem &problem, const Cell &cell, std::vector<Run> &runs) {
    rank_tied(problem, cell.upper, cell.first, cell.first + cell.count, cell.low, cell.high, runs.size(), runs);
}

std::int64_t key_of(double score) {
    const auto bits = std::bit_cast<std::int64_t>(score + 0.0);
    return bits >= 0 ? bits : bits ^ std::numeric_limits<std::int64_t>::max();
}

void refine_cells(std::span<const double> scores, std::span<std::int32_t> cells,
                  std::span<const std::int64_t> lowest_keys, std::span<const std::uint8_t> shifts, std::int32_t parts,
                  std::span<std::int64_t> counts, std::span<double> lowest, std::span<double> highest) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const auto cell = static_cast<std::size_t>(cells[i]);
        const std::int64_t key = key_of(scores[i]);
        // The difference of two keys may need all 64 bits.
        const std::uint64_t above =
            key <= lowest_keys[cell] ? 0
                                     : static_cast<std::uint64_t>(key) - static_cast<std::uint64_t>(lowest_keys[cell]);
        const auto part = std::min<std::uint64_t>(above >> shifts[cell], static_cast<std::uint64_t>(parts) - 1);
        cells[i] = static_cast<std::int32_t>(cell * static_cast<std::size_t>(parts) + part);
        ++counts[static_cast<std::size_t>(cells[i])];
        lowest[cell] = std::min(lowest[cell], scores[i]);
        highest[cell] = std::max(highest[cell], scores[i]);
    }
}

}  // namespace apsvm
