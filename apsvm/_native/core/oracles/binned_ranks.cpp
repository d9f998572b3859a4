#include "oracles/binned_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>
#include <variant>

#include "oracles/quicksort.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kBlock = 2048;  // the scores of a block stay in the cache between its steps

// Bounds on one bin's ranks, which are known to lie in [low, high].
template <class Edges>
void bound_bin(const Problem &problem, const Edges &edges, FilledBin &bin, std::int32_t low, std::int32_t high) {
    const double upper = edges.upper_edge(bin.name), lower = edges.lower_edge(bin.name);
    bin.low = std::isinf(upper) ? low : problem.best_rank(bin.first, upper, low, high);
    bin.high = std::isinf(lower) ? high : problem.best_rank(bin.first + bin.count - 1, lower, bin.low, high);
}

// Divide and conquer over the filled bins [begin, end), ranks within [low, high]. Returns how many were evaluated.
template <class Edges>
std::int64_t bound_bins(const Problem &problem, const Edges &edges, FilledBin *begin, FilledBin *end, std::int32_t low,
                        std::int32_t high, std::size_t threads) {
    constexpr std::ptrdiff_t worth_a_thread = 4096;
    std::int64_t evaluated = 0;
    while (begin < end) {
        if (low == high) {
            for (FilledBin *bin = begin; bin != end; ++bin) bin->low = bin->high = low;
            return evaluated;
        }
        FilledBin *middle = begin + (end - begin) / 2;
        bound_bin(problem, edges, *middle, low, high);
        evaluated += 2;
        if (threads > 1 && end - begin > worth_a_thread) {
            std::int64_t halves[2];
            in_threads(2, 2, [&](std::size_t half) {
                halves[half] = half == 0 ? bound_bins(problem, edges, begin, middle, low, middle->low, threads / 2)
                                         : bound_bins(problem, edges, middle + 1, end, middle->high, high, threads / 2);
            });
            return evaluated + halves[0] + halves[1];
        }
        evaluated += bound_bins(problem, edges, begin, middle, low, middle->low, 1);
        low = middle->high;
        begin = middle + 1;
    }
    return evaluated;
}

// The bins that hold something, highest scores first, and where each begins.
void fill(const std::int64_t *counts, std::size_t n_bins, std::size_t parts, std::vector<FilledBin> &filled) {
    filled.clear();
    std::int64_t position = 1;
    for (std::size_t name = n_bins; name-- > 0;) {
        std::int64_t count = 0;
        for (std::size_t part = 0; part < parts; ++part) count += counts[part * n_bins + name];
        if (count == 0) continue;
        filled.push_back({position, count, static_cast<std::uint32_t>(name), 0, 0});
        position += count;
    }
}

}  // namespace

void bound_ranks(const Problem &problem, const Bins &bins, const std::int64_t *counts, std::size_t parts,
                 std::int64_t *rank_counts, std::size_t threads, Bounds &bounds) {
    auto &[filled, open, rank_of_bin, evaluated] = bounds;
    fill(counts, count_of(bins), parts, filled);
    evaluated = std::visit(
        [&](const auto &edges) {
            return bound_bins(problem, edges, filled.data(), filled.data() + filled.size(), 1, problem.n_pos + 1,
                              threads);
        },
        bins);
    open.clear();
    rank_of_bin.assign(count_of(bins), Bounds::kOpen);
    for (const FilledBin &bin : filled) {
        if (bin.is_open()) {
            open.push_back(bin);
            continue;
        }
        rank_of_bin[bin.name] = bin.low;
        rank_counts[bin.low] += bin.count;
    }
}

std::size_t place_open(const Bounds &bounds, std::int64_t *counts, std::size_t parts) {
    const std::size_t n_bins = bounds.rank_of_bin.size();
    std::int64_t place = 0;
    for (const FilledBin &bin : bounds.open)
        for (std::size_t part = 0; part < parts; ++part)
            place += std::exchange(counts[part * n_bins + bin.name], place);
    return static_cast<std::size_t>(place);
}

void gather_open(const Bounds &bounds, const Part &part, const double *scores, double *open) {
    std::vector<std::int64_t> next(part.places, part.places + bounds.rank_of_bin.size());
    std::int64_t *const places = next.data();
    const std::int32_t *const rank_of_bin = bounds.rank_of_bin.data();
    std::int32_t rows[kBlock];
    for (std::size_t at = 0; at < part.n; at += kBlock) {
        const std::size_t stop = std::min(at + kBlock, part.n);
        std::size_t n_open = 0;
        for (std::size_t i = at; i < stop; ++i) {  // without a branch: whether a bin is open is hard to foretell
            rows[n_open] = static_cast<std::int32_t>(i);
            n_open += rank_of_bin[part.names[i]] == Bounds::kOpen;
        }
        for (std::size_t k = 0; k < n_open; ++k) {
            const std::int32_t i = rows[k];
            const std::int64_t place = places[part.names[i]]++;
            open[place] = scores[i];
            __builtin_prefetch(open + place + 8, 1);  // a stream for each bin is more than the processor follows
        }
    }
}

OpenRanks rank_open(const Problem &problem, const Bounds &bounds, double *open, std::int64_t *rank_counts,
                    std::size_t tasks, std::size_t threads) {
    std::vector<std::size_t> begins{0};  // of each open bin
    for (const FilledBin &bin : bounds.open) begins.push_back(begins.back() + static_cast<std::size_t>(bin.count));
    const std::size_t n_open = begins.back(), n_ranks = static_cast<std::size_t>(problem.n_pos) + 2;
    std::vector<std::int64_t> counts((tasks - 1) * n_ranks, 0), evaluated(tasks, 0);
    std::vector<std::size_t> first(tasks + 1, bounds.open.size());  // open bin of each task
    for (std::size_t t = 0; t < tasks; ++t)
        first[t] = static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end() - 1, n_open * t / tasks) -
                                            begins.begin());
    in_threads(tasks, threads, [&](std::size_t t) {
        SortWorkspace workspace;
        std::vector<Scored> run;
        std::int64_t *const counts_of_task = t == 0 ? rank_counts : counts.data() + (t - 1) * n_ranks;
        // A bin's scores are in the workspace before its ranks are written, which reach no score of a later bin.
        const std::size_t from = begins[first[t]];
        auto *const ranks = reinterpret_cast<std::int32_t *>(open + from);
        for (std::size_t b = first[t]; b < first[t + 1]; ++b) {
            const FilledBin &bin = bounds.open[b];
            const auto n = static_cast<std::size_t>(bin.count);
            sort_scores(open + begins[b], nullptr, n, run, workspace);
            Scored *const items = run.data();
            const Sink sink{ranks + (begins[b] - from), counts_of_task};
            evaluated[t] +=
                rank_by_quicksort(problem, sink, bin.first, items, items + bin.count, bin.low, bin.high, true);
        }
    });
    auto *const ranks = reinterpret_cast<std::int32_t *>(open);
    for (std::size_t t = 1; t < tasks; ++t) {
        const std::size_t from = begins[first[t]], n = begins[first[t + 1]] - from;
        if (n != 0) std::memmove(ranks + from, open + from, n * sizeof *ranks);  // else there may be no array
    }
    for (std::size_t t = 1; t < tasks; ++t)
        for (std::size_t rank = 0; rank < n_ranks; ++rank) rank_counts[rank] += counts[(t - 1) * n_ranks + rank];
    return {ranks, std::accumulate(evaluated.begin(), evaluated.end(), std::int64_t{0})};
}

void assign_ranks(const Bounds &bounds, const Part &part, const std::int32_t *open_ranks, std::int32_t *ranks) {
    std::vector<std::int64_t> next(part.places, part.places + bounds.rank_of_bin.size());
    std::int64_t *const places = next.data();
    const std::int32_t *const rank_of_bin = bounds.rank_of_bin.data();
    std::int32_t rows[kBlock];
    for (std::size_t at = 0; at < part.n; at += kBlock) {
        const std::size_t stop = std::min(at + kBlock, part.n);
        std::size_t n_open = 0;
        for (std::size_t i = at; i < stop; ++i) {
            const std::int32_t rank = rank_of_bin[part.names[i]];
            ranks[part.row(i)] = rank;
            rows[n_open] = static_cast<std::int32_t>(i);
            n_open += rank == Bounds::kOpen;
        }
        for (std::size_t k = 0; k < n_open; ++k) {
            const auto i = static_cast<std::size_t>(rows[k]);
            const std::int64_t place = places[part.names[i]]++;
            ranks[part.row(i)] = open_ranks[place];
            __builtin_prefetch(open_ranks + place + 16);
        }
    }
}

}  // namespace apsvm
