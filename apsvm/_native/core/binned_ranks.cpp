#include "binned_ranks.hpp"

#include <cmath>
#include <numeric>
#include <utility>

#include "quicksort.hpp"
#include "threads.hpp"

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

void count_scores(const Bins &bins, const double *scores, std::size_t n, std::uint16_t *names, std::int64_t *counts) {
    std::visit(
        [&](const auto &kind) {
            for (std::size_t at = 0; at < n; at += kBlock) {
                const std::size_t stop = std::min(at + kBlock, n);
                kind.find(scores + at, stop - at, names + at);
                for (std::size_t i = at; i < stop; ++i) ++counts[names[i]];
            }
        },
        bins);
}

void bound_ranks(const Problem &problem, const Bins &bins, const std::int64_t *counts, std::size_t parts,
                 const double *weight_of_rank, std::int64_t *rank_counts, std::size_t threads, Bounds &bounds) {
    auto &[filled, open, weight_of_bin, evaluated] = bounds;
    fill(counts, count_of(bins), parts, filled);
    evaluated = std::visit(
        [&](const auto &edges) {
            return bound_bins(problem, edges, filled.data(), filled.data() + filled.size(), 1, problem.n_pos + 1,
                              threads);
        },
        bins);
    open.clear();
    weight_of_bin.assign(count_of(bins), Bounds::kOpen);
    for (const FilledBin &bin : filled) {
        if (bin.is_open()) {
            open.push_back(bin);
            continue;
        }
        weight_of_bin[bin.name] = weight_of_rank[bin.low];
        rank_counts[bin.low] += bin.count;
    }
}

std::size_t place_open(const Bounds &bounds, std::int64_t *counts, std::size_t parts) {
    const std::size_t n_bins = bounds.weight_of_bin.size();
    std::int64_t place = 0;
    for (const FilledBin &bin : bounds.open)
        for (std::size_t part = 0; part < parts; ++part)
            place += std::exchange(counts[part * n_bins + bin.name], place);
    return static_cast<std::size_t>(place);
}

void assign_ranks(std::span<const double> weight_of_bin, const Part &part, double *weights, std::int64_t *places,
                  Scored *items) {
    const auto &[scores, names, index, begin, end] = part;
    const auto index_of = [index](std::size_t i) { return index ? index[i] : static_cast<std::int32_t>(i); };
    std::int32_t open[kBlock];  // collected without a branch: whether a bin is open is hard to foretell
    for (std::size_t at = begin; at < end; at += kBlock) {
        const std::size_t stop = std::min(at + kBlock, end);
        std::size_t n_open = 0;
        for (std::size_t i = at; i < stop; ++i) {
            const double weight = weight_of_bin[names[i]];
            weights[index_of(i)] = weight;
            open[n_open] = static_cast<std::int32_t>(i);
            n_open += weight < 0.0;
        }
        for (std::size_t k = 0; k < n_open; ++k) {
            const auto i = static_cast<std::size_t>(open[k]);
            items[static_cast<std::size_t>(places[names[i]]++)] = {scores[i], index_of(i)};
        }
    }
}

std::int64_t rank_open(const Problem &problem, const Bounds &bounds, const Sink &sink, Scored *items, std::size_t tasks,
                       std::size_t threads) {
    std::vector<Scored *> begins;  // of each open bin
    Scored *next = items;
    for (const FilledBin &bin : bounds.open) {
        begins.push_back(next);
        next += bin.count;
    }
    const std::size_t n_ranks = static_cast<std::size_t>(problem.n_pos) + 2, n_items = next - items;
    std::vector<std::int64_t> counts(tasks * n_ranks, 0), evaluated(tasks, 0);
    in_threads(tasks, threads, [&](std::size_t t) {
        Sink task_sink = sink;
        task_sink.counts = counts.data() + t * n_ranks;
        for (std::size_t b = 0; b < begins.size(); ++b) {
            const FilledBin &bin = bounds.open[b];
            Scored *const begin = begins[b], *const end = begin + bin.count;
            const auto at = static_cast<std::size_t>(begin - items);
            if (at < n_items * t / tasks || at >= n_items * (t + 1) / tasks) continue;
            // Equal scores stand in the order of their indices already.
            const bool equal = std::all_of(begin, end, [&](const Scored &item) { return item.score == begin->score; });
            evaluated[t] += rank_by_quicksort(problem, task_sink, bin.first, begin, end, bin.low, bin.high, equal);
        }
    });
    for (std::size_t i = 0; i < counts.size(); ++i) sink.counts[i % n_ranks] += counts[i];
    return std::accumulate(evaluated.begin(), evaluated.end(), std::int64_t{0});
}

}  // namespace apsvm
