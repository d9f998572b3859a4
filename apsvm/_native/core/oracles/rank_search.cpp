#include "oracles/rank_search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "oracles/quicksort.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kPerThread = 1u << 14;  // below this many scores a thread costs more than it saves
constexpr std::size_t kAhead = 8;             // cells whose discounts are on their way

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

// How many scores are above a threshold, and those next to it.
struct Sides {
    std::int64_t above = 0;
    double lowest_above = std::numeric_limits<double>::infinity();
    double highest_below = -std::numeric_limits<double>::infinity();

    // Without a branch: on which side a score lies is hard to foretell.
    void add(std::span<const double> scores, double threshold) {
        constexpr auto infinity = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
        constexpr auto sign = std::uint64_t{1} << 63;
        for (const double score : scores) {
            const std::uint64_t is_above = score > threshold, mask = -is_above;
            const auto bits = std::bit_cast<std::uint64_t>(score);
            above += static_cast<std::int64_t>(is_above);
            lowest_above = std::min(lowest_above, std::bit_cast<double>((bits & mask) | (infinity & ~mask)));
            highest_below = std::max(highest_below, std::bit_cast<double>((bits & ~mask) | ((infinity | sign) & mask)));
        }
    }
};

// Where a cell of two ranks changes from the lower to the higher one.
struct Change {
    double threshold;  // the scores above it have the lower rank
    std::int64_t above;
};

// Sorts nothing: tries thresholds. As ranks ascend with the position, the neighbours of a threshold among the cell's
// scores tell whether it is too low, or too high, or where the ranks change. None where equal scores have both ranks.
template <class Scores>
std::optional<Change> change_of(const Problem &problem, const Cell &cell, Scores each_run) {
    constexpr int tries = 16;
    const std::int32_t low = cell.low;
    // Where g_j(low) changes its sign, if the change is at this position of the cell.
    const auto threshold_at = [&](std::int64_t before) {
        return -problem.gain(cell.first + std::min(before, cell.count - 1), low, 0.0) / problem.scale;
    };
    double least = -std::numeric_limits<double>::infinity(), most = -least;  // least ≤ threshold < most
    double threshold = threshold_at(cell.count / 2);
    for (int attempt = 0; attempt < tries; ++attempt) {
        Sides sides;
        each_run([&](std::span<const double> scores) { sides.add(scores, threshold); });
        const std::int64_t position = cell.first + sides.above;  // of the highest score that is not above
        if (sides.above > 0 && !(problem.gain(position - 1, low, sides.lowest_above) > 0.0))
            least = sides.lowest_above;
        else if (sides.above < cell.count && problem.gain(position, low, sides.highest_below) > 0.0)
            most = sides.highest_below;
        else
            return Change{threshold, sides.above};
        if (!(least < most)) return std::nullopt;
        const double middle = least / 2.0 + most / 2.0;
        threshold = std::isfinite(middle) ? middle : threshold_at(sides.above);
        if (!(least <= threshold && threshold < most))
            threshold = std::isfinite(least) ? least : std::nextafter(most, least);
    }
    return std::nullopt;
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

std::vector<std::int64_t> rank_cells(const Problem &problem, std::span<const Cell> cells,
                                     std::span<const PartOfCells> parts, std::size_t threads) {
    std::vector<std::size_t> begins(cells.size() + 1, 0);  // of the cells' scores, were all parts one
    for (std::size_t c = 0; c < cells.size(); ++c) begins[c + 1] = begins[c] + static_cast<std::size_t>(cells[c].count);
    const std::size_t tasks = std::clamp<std::size_t>(begins.back() / kPerThread, 1, threads);
    std::vector<std::size_t> first(tasks + 1);  // cell of each task
    for (std::size_t task = 0; task <= tasks; ++task)
        first[task] = static_cast<std::size_t>(
            std::lower_bound(begins.begin(), begins.end(), begins.back() * task / tasks) - begins.begin());
    // Where the scores of each task's first cell end, part by part.
    std::vector<std::size_t> ends(tasks * parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
        std::size_t end = parts[p].scores.size();
        for (std::size_t task = 0; task < tasks; ++task) {
            ends[task * parts.size() + p] = end;
            for (std::size_t c = first[task]; c < first[task + 1]; ++c)
                end -= static_cast<std::size_t>(parts[p].counts[c]);
        }
    }
    const std::size_t n_ranks = static_cast<std::size_t>(problem.n_pos) + 2;
    std::vector<std::int64_t> counts(tasks * n_ranks, 0);
    in_threads(tasks, threads, [&](std::size_t task) {
        std::size_t *const end = ends.data() + task * parts.size();
        std::int64_t *const of_ranks = counts.data() + task * n_ranks;
        std::vector<Scored> items;
        std::vector<std::int32_t> ranks;
        for (std::size_t c = first[task]; c < first[task + 1]; ++c) {
            const Cell &cell = cells[c];
            if (c + kAhead < first[task + 1]) {
                const Cell &later = cells[c + kAhead];
                __builtin_prefetch(problem.discount + (later.low + later.first + later.count / 2 - 2));
            }
            for (std::size_t p = 0; p < parts.size(); ++p) end[p] -= static_cast<std::size_t>(parts[p].counts[c]);
            const auto scores_of = [&](std::size_t p) {
                return parts[p].scores.subspan(end[p], static_cast<std::size_t>(parts[p].counts[c]));
            };
            if (cell.high == cell.low + 1) {
                const auto change = change_of(problem, cell, [&](auto look_at) {
                    for (std::size_t p = 0; p < parts.size(); ++p) look_at(scores_of(p));
                });
                if (change) {
                    for (std::size_t p = 0; p < parts.size(); ++p)
                        std::ranges::transform(scores_of(p), parts[p].ranks + end[p], [&](double score) {
                            return score > change->threshold ? cell.low : cell.high;
                        });
                    of_ranks[cell.low] += change->above;
                    of_ranks[cell.high] += cell.count - change->above;
                    continue;
                }
            }
            items.clear();
            for (std::size_t p = 0; p < parts.size(); ++p)
                for (const double score : scores_of(p))
                    items.push_back({score, static_cast<std::int32_t>(items.size())});
            ranks.resize(items.size());
            const Sink sink{ranks.data(), of_ranks};
            rank_by_quicksort(problem, sink, cell.first, items.data(), items.data() + items.size(), cell.low,
                              cell.high);
            const std::int32_t *next = ranks.data();
            for (std::size_t p = 0; p < parts.size(); ++p) {
                const std::int32_t n = parts[p].counts[c];
                std::copy_n(next, n, parts[p].ranks + end[p]);
                next += n;
            }
        }
    });
    for (std::size_t task = 1; task < tasks; ++task)
        for (std::size_t rank = 0; rank < n_ranks; ++rank) counts[rank] += counts[task * n_ranks + rank];
    counts.resize(n_ranks);
    return counts;
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
