#include "sorting/sorting.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "sorting/bins.hpp"
#include "sorting/sampling.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kFewToSort = 8;
constexpr std::size_t kBits = 11;  // of a digit of the radix sorts
constexpr std::size_t kFewPlaces = 1u << (kBits - 1);  // scores that one digit tells apart
constexpr std::size_t kPlaces = 1u << (2 * kBits);
constexpr double kLeastPlaces = 0.25;  // for each score, where they are densest, or insertion takes too many moves
constexpr std::size_t kManyInAPlace = 32;
constexpr std::size_t kSampleOfStrips = 1024;

// Stable counting sort of from[0, n) into to[0, n) by the digit at `shift` of key_of(item), ascending; `counts` says
// how often each of the `digits` values occurs.
template <class Item, class Key>
void sort_by_digit(const Item *from, Item *to, std::size_t n, int shift, std::uint32_t *counts, std::size_t digits,
                   Key key_of) {
    std::uint32_t place = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) place += std::exchange(counts[digit], place);
    for (std::size_t i = 0; i < n; ++i) to[counts[(key_of(from[i]) >> shift) & (digits - 1)]++] = from[i];
}

// Insertion of what is nearly sorted; false if it takes more than a few moves an item.
bool sorted_by_insertion(Scored *items, std::size_t n) {
    auto moves = static_cast<std::int64_t>(4 * n);
    for (std::size_t k = 1; k < n; ++k) {
        if (!(items[k] < items[k - 1])) continue;
        const Scored item = items[k];
        std::size_t at = k;
        for (; at > 0 && item < items[at - 1]; --at, --moves) items[at] = items[at - 1];
        items[at] = item;
        if (moves < 0) return false;
    }
    return true;
}

// Places 0..last on a scale from `high` down, those beyond its ends at the ends, above the number of the score.
APSVM_CLONES void place_scores(const double *scores, std::size_t n, double high, double per_step, double last,
                               std::uint64_t *keys) {
    for (std::size_t i = 0; i < n; ++i) {
        double place = (high - scores[i]) * per_step;
        place = place > 0.0 ? place : 0.0;
        place = place < last ? place : last;
        keys[i] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(static_cast<std::int32_t>(place))) << 32 |
                  static_cast<std::uint32_t>(i);
    }
}

struct Range {
    double low, high;
};

// Of n ≥ 1 scores. Eight at a time: the latency of one chain of comparisons would be the limit.
APSVM_CLONES Range range_of(const double *scores, std::size_t n) {
    constexpr std::size_t lanes = 8;
    double low[lanes], high[lanes];
    std::fill_n(low, lanes, scores[0]);
    std::fill_n(high, lanes, scores[0]);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            low[lane] = scores[i + lane] < low[lane] ? scores[i + lane] : low[lane];
            high[lane] = scores[i + lane] > high[lane] ? scores[i + lane] : high[lane];
        }
    for (; i < n; ++i) {
        low[0] = std::min(low[0], scores[i]);
        high[0] = std::max(high[0], scores[i]);
    }
    return {*std::min_element(low, low + lanes), *std::max_element(high, high + lanes)};
}

// Places 0..last on a scale from `high` down, for scores that it spans and that are lifted before they are divided.
APSVM_CLONES void place_run(const double *scores, std::size_t n, double high, double lift, double per_step, double last,
                            std::uint32_t *places) {
    for (std::size_t i = 0; i < n; ++i) {
        const double place = (high - scores[i]) * lift * per_step;
        places[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(place < last ? place : last));
    }
}

// Puts the scores into the order of the places in the upper half of their keys, whose lower half is their number; those of
// a place that many share are sorted by comparison, and all by insertion, if that takes a few moves.
bool sorted_by_keys(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                    std::uint64_t *keys) {
    std::uint64_t *const spare = keys + n;
    const auto key = [](std::uint64_t item) { return item; };
    std::uint32_t counts[2][1u << kBits] = {};
    for (std::size_t i = 0; i < n; ++i) {
        ++counts[0][(keys[i] >> 32) & ((1u << kBits) - 1)];
        ++counts[1][keys[i] >> (32 + kBits)];
    }
    sort_by_digit(keys, spare, n, 32, counts[0], 1u << kBits, key);
    sort_by_digit(spare, keys, n, 32 + kBits, counts[1], 1u << kBits, key);
    for (std::size_t k = 0; k < n; ++k) {
        const auto i = static_cast<std::uint32_t>(keys[k]);
        items[k] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    }
    const auto share = [&](std::size_t i, std::size_t j) { return keys[i] >> 32 == keys[j] >> 32; };
    for (std::size_t i = 0; i + kManyInAPlace < n; i += kManyInAPlace) {
        if (!share(i, i + kManyInAPlace)) continue;
        std::size_t begin = i, end = i + kManyInAPlace;
        while (begin > 0 && share(begin - 1, i)) --begin;
        while (end < n && share(i, end)) ++end;
        if (!std::is_sorted(items + begin, items + end)) std::sort(items + begin, items + end);
        i = end - kManyInAPlace;
    }
    return sorted_by_insertion(items, n);
}

// By their places on a scale over the range of the scores. One digit will do for a few scores.
bool few_sorted_by_place(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                         std::vector<std::uint64_t> &keys) {
    const auto [low, high] = range_of(scores, n);
    const std::size_t places = std::bit_ceil(2 * n);
    const double last = static_cast<double>(places - 1), per_step = last / (high - low);
    if (!std::isnormal(per_step) || !std::isfinite(high - low)) return false;
    if (keys.size() < 2 * n) keys.resize(2 * n);
    std::uint64_t *const first = keys.data(), *const second = first + n;
    place_scores(scores, n, high, per_step, last, first);
    std::uint32_t counts[1u << kBits];
    std::fill_n(counts, places, 0u);
    for (std::size_t i = 0; i < n; ++i) ++counts[first[i] >> 32];
    sort_by_digit(first, second, n, 32, counts, places, [](std::uint64_t item) { return item; });
    for (std::size_t k = 0; k < n; ++k) {
        const auto i = static_cast<std::uint32_t>(second[k]);
        items[k] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    }
    return sorted_by_insertion(items, n);
}

// By their places on a scale over the range of a sample of them, where it tells nearly all scores apart.
bool sorted_by_place(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                     std::vector<std::uint64_t> &keys) {
    constexpr std::size_t size = 64, run = 16;
    double sample[size];
    for (std::size_t i = 0; i < size; ++i) sample[i] = scores[sampled_place(i, size, n)];
    std::sort(sample, sample + size);
    const double margin = 0.5 * (sample[size - 1] - sample[0]);
    const double low = sample[0] - margin, high = sample[size - 1] + margin;
    const double last = static_cast<double>(kPlaces - 1), per_step = last / (high - low);
    if (!std::isnormal(per_step) || !std::isfinite(high - low)) return false;
    for (std::size_t i = 0; i + run < size; ++i) {
        // About a quarter of the scores are between these.
        const double places = (sample[i + run] - sample[i]) * per_step;
        if (sample[i + run] != sample[i] && places < kLeastPlaces * static_cast<double>(n) * run / size) return false;
    }
    if (keys.size() < 2 * n) keys.resize(2 * n);
    place_scores(scores, n, high, per_step, last, keys.data());
    return sorted_by_keys(scores, index, n, items, keys.data());
}

// By the bins of strips that hold about equally many scores: a scale for clusters and heavy tails.
bool sorted_by_strips(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                      SortWorkspace &workspace) {
    auto &[spare, keys, sample, names] = workspace;
    sample.resize(kSampleOfStrips);
    for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = scores[sampled_place(i, sample.size(), n)];
    std::sort(sample.begin(), sample.end());
    if (!std::isfinite(sample.back() - sample.front())) return false;
    const StripBins bins(sample, std::min(std::bit_ceil(n), kPlaces) / StripBins::kStrips);
    if (names.size() < n) names.resize(n);
    if (keys.size() < 2 * n) keys.resize(2 * n);
    bins.find(scores, n, names.data());
    const std::uint64_t last = bins.count() - 1;
    for (std::size_t i = 0; i < n; ++i) keys[i] = (last - static_cast<std::uint32_t>(names[i])) << 32 | i;
    return sorted_by_keys(scores, index, n, items, keys.data());
}

// A radix sort on the 33 leading bits of the scores: relative precision, whatever their spread.
bool sorted_by_leading_bits(std::vector<Scored> &items, std::size_t n, std::vector<Scored> &spare) {
    constexpr int digits = 3;
    // A key that ascends as the score descends; adding zero makes −0 the same as 0.
    const auto key = [](const Scored &item) {
        const auto bits = std::bit_cast<std::uint64_t>(item.score + 0.0);
        return bits >> 63 ? bits : ~bits & ~(std::uint64_t{1} << 63);
    };
    std::uint32_t counts[digits][1u << kBits] = {};
    const auto shift = [](int d) { return static_cast<int>(64 - kBits * (digits - d)); };
    for (std::size_t i = 0; i < n; ++i)
        for (int d = 0; d < digits; ++d) ++counts[d][(key(items[i]) >> shift(d)) & ((1u << kBits) - 1)];
    if (spare.size() < items.size()) spare.resize(items.size());
    for (int d = 0; d < digits; ++d) {
        sort_by_digit(items.data(), spare.data(), n, shift(d), counts[d], 1u << kBits, key);
        items.swap(spare);
    }
    return sorted_by_insertion(items.data(), n);
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

void sort_scores(const double *scores, const std::int32_t *index, std::size_t n, std::vector<Scored> &items,
                 SortWorkspace &workspace) {
    if (items.size() < n) items.resize(n);
    if (n >= kFewToSort && n <= kFewPlaces && few_sorted_by_place(scores, index, n, items.data(), workspace.keys)) return;
    if (n > kFewPlaces && sorted_by_place(scores, index, n, items.data(), workspace.keys)) return;
    if (n >= 4 * kSampleOfStrips && sorted_by_strips(scores, index, n, items.data(), workspace)) return;
    for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    if (n >= kFewToSort && sorted_by_leading_bits(items, n, workspace.spare)) return;
    std::sort(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(n));
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

Scored *sort_run(const double *scores, std::size_t n, RunWorkspace &workspace) {
    constexpr std::size_t few = 24, most_places = 1u << 16;
    auto &[sorted, places, ends] = workspace;
    if (sorted.size() < n) {
        sorted.resize(n);
        places.resize(n);
    }
    Scored *const items = sorted.data();
    const auto [low, high] = n > few ? range_of(scores, n) : Range{scores[0], scores[0]};
    const std::size_t n_places = std::min(std::bit_ceil(n), most_places);
    // Denormal scores are lifted, whose differences are too small to divide by.
    const double lift = high - low < 0x1p-500 ? 0x1p500 : 1.0;
    const double last = static_cast<double>(n_places - 1), per_step = last / ((high - low) * lift);
    if (n <= few || !std::isnormal(per_step) || !std::isfinite(high - low)) {
        for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], static_cast<std::int32_t>(i)};
        if (n <= few || low < high) std::sort(items, items + n);
        return items;
    }
    ends.assign(n_places, 0);
    place_run(scores, n, high, lift, per_step, last, places.data());
    for (std::size_t i = 0; i < n; ++i) ++ends[places[i]];
    std::uint32_t end = 0;
    for (std::size_t place = 0; place < n_places; ++place) end += std::exchange(ends[place], end);
    for (std::size_t i = 0; i < n; ++i) items[ends[places[i]]++] = {scores[i], static_cast<std::int32_t>(i)};
    if (!sorted_by_insertion(items, n)) std::sort(items, items + n);
    return items;
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
