#include "sorting/sorting.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "sorting/bins.hpp"
#include "sorting/sampling.hpp"
#include "support/lanes.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kFewInARun = 24;        // below, a comparison sort is the faster way
constexpr std::size_t kFewInBins = 2048;      // the same for bins
constexpr std::size_t kMostInARun = 16'384;   // above, a run and its places leave the cache
constexpr std::size_t kMostPlaces = 1u << 16;

// Insertion of what is nearly sorted; false as soon as it takes more than a few moves an item.
bool sorted_by_insertion(Scored *items, std::size_t n) {
    std::int64_t moves = 64;
    for (std::size_t k = 1; k < n; ++k, moves += 4) {
        if (!(items[k] < items[k - 1])) continue;
        const Scored item = items[k];
        std::size_t at = k;
        for (; at > 0 && item < items[at - 1]; --at, --moves) items[at] = items[at - 1];
        items[at] = item;
        if (moves < 0) return false;
    }
    return true;
}

// Places 0..last on a scale from `high` down, for scores that it spans and that are lifted before they are divided.
APSVM_CLONES void place_run(const double *scores, std::size_t n, double high, double lift, double per_step, double last,
                            std::uint32_t *places) {
    for (std::size_t i = 0; i < n; ++i) {
        const double place = (high - scores[i]) * lift * per_step;
        places[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(place < last ? place : last));
    }
}

// Puts a run of scores in order by their places on a scale over its range, and by insertion; false where these do not
// tell them apart: all items are there, out of order.
bool sorted_by_place(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                     SortWorkspace &workspace) {
    auto &places = workspace.places;
    auto &ends = workspace.ends;
    const auto [low, high] = extent_of(scores, n);
    const std::size_t n_places = std::min(std::bit_ceil(2 * n), kMostPlaces);
    // Denormal scores are lifted, whose differences are too small to divide by.
    const double lift = high - low < 0x1p-500 ? 0x1p500 : 1.0;
    const double last = static_cast<double>(n_places - 1), per_step = last / ((high - low) * lift);
    if (!std::isnormal(per_step) || !std::isfinite(high - low)) {
        for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
        return low == high;
    }
    if (places.size() < n) places.resize(n);
    ends.assign(n_places, 0);
    place_run(scores, n, high, lift, per_step, last, places.data());
    for (std::size_t i = 0; i < n; ++i) ++ends[places[i]];
    std::uint32_t end = 0;
    for (std::size_t place = 0; place < n_places; ++place) end += std::exchange(ends[place], end);
    for (std::size_t i = 0; i < n; ++i)
        items[ends[places[i]]++] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    return sorted_by_insertion(items, n);
}

void sort_run(const double *scores, const std::int32_t *index, std::size_t n, Scored *items, SortWorkspace &workspace) {
    if (n > kFewInARun) {
        if (sorted_by_place(scores, index, n, items, workspace)) return;
    } else {
        for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    }
    std::sort(items, items + n);
}

// Cuts the scores into bins that each hold a run, and sorts these.
void sort_by_bins(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                  SortWorkspace &workspace) {
    auto &[places, run_ends, sample, names, binned, rows] = workspace;
    sample.resize(std::min<std::size_t>(n / 8, 4096));
    for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = scores[sampled_place(i, sample.size(), n)];
    const Spread spread = sample_spread(sample);
    if (spread.low == spread.high && sorted_by_place(scores, index, n, items, workspace)) return;  // nearly all are equal
    const Bins bins = make_coarse_bins(spread, sample, n);
    if (names.size() < n) {
        names.resize(n);
        binned.resize(n);
        rows.resize(n);
    }
    std::vector<std::int64_t> ends(count_of(bins), 0);
    count_scores(bins, scores, n, names.data(), ends.data());
    std::int64_t begin = 0;
    for (std::size_t name = ends.size(); name-- > 0;) begin += std::exchange(ends[name], begin);
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t place = ends[names[i]]++;
        binned[place] = scores[i];
        rows[place] = index ? index[i] : static_cast<std::int32_t>(i);
        __builtin_prefetch(binned.data() + place + 8, 1);  // a stream for each bin is more than the processor follows
    }
    begin = 0;
    for (std::size_t name = ends.size(); name-- > 0; begin = ends[name])
        sort_run(binned.data() + begin, rows.data() + begin, static_cast<std::size_t>(ends[name] - begin),
                 items + begin, workspace);
}

// Whether some score of a block reaches the threshold.
APSVM_CLONES bool any_reaches(const double *scores, std::size_t n, double threshold) {
    std::uint64_t reach = 0;
    for (std::size_t i = 0; i < n; ++i) reach |= scores[i] >= threshold;
    return reach != 0;
}

// Puts all scores above the threshold, and the first m that equal it, into items; returns how many they are.
std::size_t collect_top(const double *scores, std::size_t n, std::size_t m, double threshold,
                        std::vector<Scored> &items) {
    constexpr std::size_t block = 256;
    std::size_t kept = 0, equal = 0;
    for (std::size_t at = 0; at < n; at += block) {
        const std::size_t stop = std::min(at + block, n);
        if (!any_reaches(scores + at, stop - at, threshold)) continue;
        if (items.size() < kept + block) items.resize(2 * (kept + block));
        for (std::size_t i = at; i < stop; ++i) {
            if (!(scores[i] >= threshold)) continue;
            if (scores[i] == threshold && ++equal > m) continue;
            items[kept++] = {scores[i], static_cast<std::int32_t>(i)};
        }
    }
    return kept;
}

}  // namespace

// Several at once: one chain of comparisons would wait for itself.
APSVM_CLONES Extent extent_of(const double *scores, std::size_t n) {
    double low = scores[0], high = low;
    Vec lows = Vec{} + low, highs = lows, some;
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
        std::memcpy(&some, scores + i, sizeof some);
        lows = some < lows ? some : lows;
        highs = some > highs ? some : highs;
    }
    for (; i < n; ++i) {
        low = std::min(low, scores[i]);
        high = std::max(high, scores[i]);
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        low = std::min(low, lows[lane]);
        high = std::max(high, highs[lane]);
    }
    return {low, high};
}

void sort_scores(const double *scores, const std::int32_t *index, std::size_t n, std::vector<Scored> &items,
                 SortWorkspace &workspace) {
    if (items.size() < n) items.resize(n);
    if (n < kFewInBins)
        sort_run(scores, index, n, items.data(), workspace);
    else if (n > kMostInARun || !sorted_by_place(scores, index, n, items.data(), workspace))
        sort_by_bins(scores, index, n, items.data(), workspace);
}

bool sort_top(const double *scores, std::size_t n, std::size_t m, std::vector<Scored> &items,
              SortWorkspace &workspace) {
    constexpr std::size_t size = 4096, few = 8;
    if (n < size || few * m >= n) {
        sort_scores(scores, nullptr, n, items, workspace);
        return true;
    }
    // A threshold that is likely to leave m scores or a few more: three standard deviations of the sample's count.
    auto &sample = workspace.sample;
    sample.resize(size);
    for (std::size_t i = 0; i < size; ++i) sample[i] = scores[sampled_place(i, size, n)];
    const double expected = static_cast<double>(m) * static_cast<double>(size) / static_cast<double>(n);
    const auto place = static_cast<std::size_t>(expected + 3.0 * std::sqrt(expected) + 3.0);
    std::nth_element(sample.begin(), sample.begin() + place, sample.end(), std::greater<>());
    double threshold = sample[place];
    std::size_t kept = collect_top(scores, n, m, threshold, items);
    if (kept < m) {
        threshold = -std::numeric_limits<double>::infinity();
        kept = collect_top(scores, n, m, threshold, items);
    }
    const auto begin = items.begin(), end = begin + static_cast<std::ptrdiff_t>(kept);
    std::nth_element(begin, begin + static_cast<std::ptrdiff_t>(m), end);
    std::sort(begin, begin + static_cast<std::ptrdiff_t>(m));
    return false;
}

std::vector<std::int64_t> descending_order(std::span<const double> scores) {
    std::vector<Scored> items(scores.size());
    for (std::size_t i = 0; i < items.size(); ++i) items[i] = {scores[i], static_cast<std::int32_t>(i)};
    std::sort(items.begin(), items.end());
    std::vector<std::int64_t> order(items.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = items[i].index;
    return order;
}

}  // namespace apsvm
