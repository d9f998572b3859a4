#include "rank_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "quicksort.hpp"
#include "threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kPerThread = 1u << 14;  // below this many scores a thread costs more than it saves

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

// Numbers in the order of the scores, without a gap.
std::int64_t key_of(double score) {
    const auto bits = std::bit_cast<std::int64_t>(score + 0.0);
    return bits >= 0 ? bits : bits ^ std::numeric_limits<std::int64_t>::max();
}

double score_of(std::int64_t key) {
    return std::bit_cast<double>(key >= 0 ? key : key ^ std::numeric_limits<std::int64_t>::max());
}

}  // namespace

void bound_cells(const Problem &problem, Cell *begin, Cell *end) {
    bound_between(problem, begin, end, 1, problem.n_pos + 1);
}

void rank_cells(const Problem &problem, std::span<const Cell> cells, const double *scores, std::int32_t *ranks,
                std::size_t threads) {
    std::vector<std::size_t> begins(cells.size() + 1, 0);  // of the cells' scores
    for (std::size_t c = 0; c < cells.size(); ++c) begins[c + 1] = begins[c] + static_cast<std::size_t>(cells[c].count);
    const std::size_t tasks = std::clamp<std::size_t>(begins.back() / kPerThread, 1, threads);
    const auto cut = [&](std::size_t task) {
        return std::lower_bound(begins.begin(), begins.end(), begins.back() * task / tasks) - begins.begin();
    };
    in_threads(tasks, threads, [&](std::size_t task) {
        std::vector<std::int64_t> counts(static_cast<std::size_t>(problem.n_pos) + 2, 0);  // which nobody wants
        std::vector<Scored> items;
        const auto end = static_cast<std::size_t>(cut(task + 1));
        for (auto c = static_cast<std::size_t>(cut(task)); c < end; ++c) {
            const Cell &cell = cells[c];
            const double *const own = scores + begins[c];
            items.resize(static_cast<std::size_t>(cell.count));
            for (std::size_t i = 0; i < items.size(); ++i) items[i] = {own[i], static_cast<std::int32_t>(i)};
            const Sink sink{ranks + begins[c], counts.data()};
            rank_by_quicksort(problem, sink, cell.first, items.data(), items.data() + items.size(), cell.low,
                              cell.high);
        }
    });
}

void rank_tied_cell(const Problem &problem, const Cell &cell, std::vector<Run> &runs) {
    rank_tied(problem, cell.upper, cell.first, cell.first + cell.count, cell.low, cell.high, runs.size(), runs);
}

void cut_evenly(double lower, double upper, std::int64_t pieces, bool by_key, std::vector<double> &lowest) {
    const auto low = static_cast<std::uint64_t>(key_of(lower)), high = static_cast<std::uint64_t>(key_of(upper));
    const auto n = static_cast<std::uint64_t>(pieces);
    double last = lower;
    for (std::uint64_t piece = 1; piece < n; ++piece) {
        const double share = static_cast<double>(piece) / static_cast<double>(n);
        const std::uint64_t width = high - low;
        const double edge = by_key ? score_of(static_cast<std::int64_t>(low + width / n * piece + width % n * piece / n))
                                   : (1.0 - share) * lower + share * upper;
        if (edge > last && edge <= upper) lowest.push_back(last = edge);
    }
    if (last == lower) lowest.push_back(upper);
}

}  // namespace apsvm
