// Bins for scores, numbered ascending, and the edges that bound the scores of each.
//
// Bins adapt to the scores by a sample of them: where it is spread evenly enough they are of equal width; otherwise
// splitters drawn from it cut the scores into strips of about equal numbers, and each strip is cut into bins of equal
// width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

namespace apsvm {

// Ascending bins of equal width over [low, high); the first and the last are open-ended.
class EvenBins {
public:
    EvenBins(double low, double high, std::size_t count);

    std::size_t count() const { return count_; }
    void find(const double *scores, std::size_t n, std::uint16_t *names) const;
    void find(const double *scores, std::size_t n, std::int32_t *names) const;
    double lower_edge(std::size_t bin) const;
    double upper_edge(std::size_t bin) const;

private:
    double low_, width_, per_width_;
    double slack_;  // what rounding can move a score over an edge
    std::size_t count_;
};

// Strips [t_p, t_{p+1}) between ascending splitters, t_0 = −∞ and t_kStrips = +∞, each of `in_a_strip` bins of equal
// width between `from` and the next strip's; an empty strip has equal splitters.
class StripBins {
public:
    static constexpr std::size_t kStrips = 64;  // 2^k
    static constexpr std::size_t kBinsInAStrip = 128;

    explicit StripBins(const std::vector<double> &ascending_sample, std::size_t in_a_strip = kBinsInAStrip);

    std::size_t count() const { return kStrips * in_a_strip_; }
    void find(const double *scores, std::size_t n, std::uint16_t *names) const;
    void find(const double *scores, std::size_t n, std::int32_t *names) const;
    double lower_edge(std::size_t bin) const;
    double upper_edge(std::size_t bin) const;

private:
    double slack(std::size_t strip) const;

    std::size_t in_a_strip_;
    double splitters_[kStrips + 1];
    double from_[kStrips];
    double width_[kStrips];
    double per_width_[kStrips];
};

using Bins = std::variant<EvenBins, StripBins>;

inline std::size_t count_of(const Bins &bins) {
    return std::visit([](const auto &kind) { return kind.count(); }, bins);
}

// names[i] becomes the bin of scores[i], and counts[name] grows by one for each of them.
void count_scores(const Bins &bins, const double *scores, std::size_t n, std::uint16_t *names, std::int64_t *counts);

// What a sample says of the scores; sample_spread reorders it.
struct Spread {
    double low, high;  // of bins of equal width: the bulk of the sample, and half as wide again
    bool even;         // no such bin would be crowded
};
Spread sample_spread(std::vector<double> &sample);

// What 16 bits name.
constexpr std::size_t kNamedBins = 1u << 16;

// Bins for n scores of which `sample` is one, to be ranked against n_pos positives, at most kNamedBins; sorts the sample.
Bins make_bins(const Spread &spread, std::vector<double> &sample, std::size_t n, std::size_t n_pos);

// The same, fewer: to be sorted one by one, where nearly each of them holds a change of rank.
Bins make_coarse_bins(const Spread &spread, std::vector<double> &sample, std::size_t n);

// The sample's `place`-th score, counted from 0, ascending; reorders it.
double sample_quantile(std::vector<double> &sample, std::size_t place);

}  // namespace apsvm
