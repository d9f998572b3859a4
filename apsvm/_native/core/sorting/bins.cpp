#include "sorting/bins.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kBinsPerPositive = 24;  // a few are open for each change of rank
constexpr std::size_t kMostPerBin = 32, kLeastPerBin = 4;
constexpr std::size_t kRunLength = 512;       // of coarse bins: what the first-level cache sorts
constexpr std::size_t kBlock = 2048;  // the scores of a block stay in the cache between its steps
constexpr double kMostInACell = 0.125;       // of the sample, for bins of equal width
constexpr std::size_t kCells = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

template <class Name>
[[gnu::always_inline]] inline void find_even(const double *scores, std::size_t n, double low, double per_width,
                                             double last, Name *names) {
    for (std::size_t i = 0; i < n; ++i) {
        double place = (scores[i] - low) * per_width;
        place = place > 0.0 ? place : 0.0;
        place = place < last ? place : last;
        names[i] = static_cast<Name>(static_cast<std::int32_t>(place));
    }
}

APSVM_CLONES void find_named(const double *scores, std::size_t n, double low, double per_width, double last,
                             std::uint16_t *names) {
    find_even(scores, n, low, per_width, last, names);
}

APSVM_CLONES void find_of_many(const double *scores, std::size_t n, double low, double per_width, double last,
                               std::int32_t *names) {
    find_even(scores, n, low, per_width, last, names);
}

template <class Name>
[[gnu::always_inline]] inline void find_strips(const double *scores, std::size_t n, const double *splitters,
                                               const double *from, const double *per_width, std::size_t in_a_strip,
                                               Name *names) {
    constexpr std::size_t block = 256;  // in short loops, as compilers make vectors of these
    constexpr std::int64_t groups = 8, of_group = StripBins::kStrips / groups;
    const double last = static_cast<double>(in_a_strip) - 1.0;
    const auto bins = static_cast<std::int32_t>(in_a_strip);
    std::int64_t strips[block];  // as wide as a score
    double places[block];
    for (std::size_t at = 0; at < n; at += block) {
        const std::size_t size = std::min(block, n - at);
        const double *const here = scores + at;
        // The splitters between the groups of strips all stay in registers, those of a group are halved.
        for (std::size_t i = 0; i < size; ++i) {
            std::int64_t group = 0;
            for (std::int64_t g = 1; g < groups; ++g) group += splitters[g * of_group] <= here[i] ? 1 : 0;
            strips[i] = group * of_group;
        }
        for (std::int64_t step = of_group / 2; step > 0; step /= 2)
            for (std::size_t i = 0; i < size; ++i)
                strips[i] += splitters[strips[i] + step] <= here[i] ? step : 0;
        for (std::size_t i = 0; i < size; ++i) places[i] = (here[i] - from[strips[i]]) * per_width[strips[i]];
        for (std::size_t i = 0; i < size; ++i) {
            double place = places[i];
            place = place > 0.0 ? place : 0.0;
            place = place < last ? place : last;
            names[at + i] = static_cast<Name>(static_cast<std::int32_t>(strips[i]) * bins +
                                              static_cast<std::int32_t>(place));
        }
    }
}

APSVM_CLONES void find_in_strips(const double *scores, std::size_t n, const double *splitters, const double *from,
                                 const double *per_width, std::size_t in_a_strip, std::uint16_t *names) {
    find_strips(scores, n, splitters, from, per_width, in_a_strip, names);
}

APSVM_CLONES void find_in_many_strips(const double *scores, std::size_t n, const double *splitters, const double *from,
                                      const double *per_width, std::size_t in_a_strip, std::int32_t *names) {
    find_strips(scores, n, splitters, from, per_width, in_a_strip, names);
}

bool even_enough(const std::vector<double> &sample, double low, double high) {
    if (!(high > low) || !std::isfinite(high - low) || !std::isfinite(kCells / (high - low))) return false;
    std::size_t cells[kCells] = {};
    for (double score : sample) {
        const double place = (score - low) / (high - low) * kCells;
        ++cells[static_cast<std::size_t>(std::clamp(place, 0.0, kCells - 1.0))];
    }
    return static_cast<double>(*std::max_element(cells, cells + kCells)) <=
           kMostInACell * static_cast<double>(sample.size());
}

}  // namespace

EvenBins::EvenBins(double low, double high, std::size_t count)
    : low_(low),
      width_((high - low) / static_cast<double>(count)),
      per_width_(1.0 / width_),
      slack_(1e-9 * width_ + 8.0 * kEpsilon * std::max(std::abs(low), std::abs(high))),
      count_(count) {}

void EvenBins::find(const double *scores, std::size_t n, std::uint16_t *names) const {
    find_named(scores, n, low_, per_width_, static_cast<double>(count_ - 1), names);
}

void EvenBins::find(const double *scores, std::size_t n, std::int32_t *names) const {
    find_of_many(scores, n, low_, per_width_, static_cast<double>(count_ - 1), names);
}

double EvenBins::lower_edge(std::size_t bin) const {
    return bin == 0 ? -kInfinity : low_ + static_cast<double>(bin) * width_ - slack_;
}

double EvenBins::upper_edge(std::size_t bin) const {
    return bin + 1 == count_ ? kInfinity : low_ + static_cast<double>(bin + 1) * width_ + slack_;
}

StripBins::StripBins(const std::vector<double> &sample, std::size_t in_a_strip) : in_a_strip_(in_a_strip) {
    for (std::size_t p = 0; p < kStrips; ++p) {
        const double next = p + 1 < kStrips ? sample[(p + 1) * sample.size() / kStrips] : sample.back();
        from_[p] = splitters_[p] = sample[p * sample.size() / kStrips];
        width_[p] = (next - from_[p]) / static_cast<double>(in_a_strip_);
        per_width_[p] = 1.0 / width_[p];
        // Too narrow or too wide for arithmetic: one bin.
        if (!std::isnormal(width_[p]) || !std::isnormal(per_width_[p])) per_width_[p] = 0.0;
    }
    splitters_[0] = -kInfinity;
    splitters_[kStrips] = kInfinity;
}

void StripBins::find(const double *scores, std::size_t n, std::uint16_t *names) const {
    find_in_strips(scores, n, splitters_, from_, per_width_, in_a_strip_, names);
}

void StripBins::find(const double *scores, std::size_t n, std::int32_t *names) const {
    find_in_many_strips(scores, n, splitters_, from_, per_width_, in_a_strip_, names);
}

double StripBins::slack(std::size_t strip) const {
    return 1e-9 * width_[strip] +
           8.0 * kEpsilon * (std::abs(from_[strip]) + static_cast<double>(in_a_strip_) * width_[strip]);
}

double StripBins::lower_edge(std::size_t bin) const {
    const std::size_t strip = bin / in_a_strip_, part = bin % in_a_strip_;
    if (part == 0 || per_width_[strip] == 0.0) return splitters_[strip];
    return std::max(splitters_[strip], from_[strip] + static_cast<double>(part) * width_[strip] - slack(strip));
}

double StripBins::upper_edge(std::size_t bin) const {
    const std::size_t strip = bin / in_a_strip_, part = bin % in_a_strip_;
    if (part + 1 == in_a_strip_ || per_width_[strip] == 0.0) return splitters_[strip + 1];
    return std::min(splitters_[strip + 1], from_[strip] + static_cast<double>(part + 1) * width_[strip] + slack(strip));
}

void count_scores(const Bins &bins, const double *scores, std::size_t n, std::uint16_t *names, std::int64_t *counts) {
    std::visit([&](const auto &kind) {
        for (std::size_t at = 0; at < n; at += kBlock) {
            const std::size_t stop = std::min(at + kBlock, n);
            kind.find(scores + at, stop - at, names + at);
            for (std::size_t i = at; i < stop; ++i) ++counts[names[i]];
        }
    }, bins);
}

double sample_quantile(std::vector<double> &sample, std::size_t place) {
    const auto at = sample.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(sample.begin(), at, sample.end());
    return *at;
}

Spread sample_spread(std::vector<double> &sample) {
    const std::size_t tail = sample.size() / 512;
    const double inner_low = sample_quantile(sample, tail);
    const double inner_high = sample_quantile(sample, sample.size() - 1 - tail);
    // Half as wide again: the tails are where ranks change fastest.
    const double margin = 0.25 * (inner_high - inner_low);
    const double low = inner_low - margin, high = inner_high + margin;
    return {low, high, even_enough(sample, low, high)};
}

Bins make_coarse_bins(const Spread &spread, std::vector<double> &sample, std::size_t n) {
    const std::size_t count = std::clamp<std::size_t>(n / kRunLength, 1, kNamedBins);
    if (spread.even) return EvenBins(spread.low, spread.high, count);
    std::sort(sample.begin(), sample.end());
    return StripBins(sample, (count + StripBins::kStrips - 1) / StripBins::kStrips);
}

Bins make_bins(const Spread &spread, std::vector<double> &sample, std::size_t n, std::size_t n_pos) {
    if (spread.even) {
        const std::size_t count = std::clamp(kBinsPerPositive * n_pos, n / kMostPerBin, n / kLeastPerBin);
        return EvenBins(spread.low, spread.high, std::clamp<std::size_t>(count, 1, kNamedBins));
    }
    std::sort(sample.begin(), sample.end());
    return StripBins(sample);
}

}  // namespace apsvm
