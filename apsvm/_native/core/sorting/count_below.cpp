#include "sorting/count_below.hpp"

#include <algorithm>
#include <limits>
#include <variant>

namespace apsvm {

namespace {

constexpr std::size_t kCellsPerValue = 2;
constexpr std::size_t kFew = 4;       // values in a cell that are compared without a branch
constexpr std::size_t kMany = 128;    // values from which on strips can pay
constexpr std::size_t kBlock = 2048;  // scores whose cells stay in the cache

}  // namespace

void CountBelow::fit(const double *values, std::size_t n) {
    values_.assign(values, values + n);
    if (std::is_sorted(values_.rbegin(), values_.rend()))
        std::reverse(values_.begin(), values_.end());
    else
        std::sort(values_.begin(), values_.end());
    largest_ = values_.back();
    below_.resize(n);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i > 0 && values_[i] == values_[kept - 1]) continue;
        values_[kept] = values_[i];
        below_[kept++] = static_cast<std::int32_t>(i);
    }
    values_.resize(kept);
    below_.resize(kept);
    bins_ = EvenBins(values_.front(), values_.back(), kCellsPerValue * values_.size());
    if (fill_cells() && values_.size() >= kMany) {
        bins_ = StripBins(values_, kCellsPerValue * values_.size() / StripBins::kStrips);
        fill_cells();
    }
    values_.resize(values_.size() + kFew, std::numeric_limits<double>::infinity());
    below_.resize(values_.size(), static_cast<std::int32_t>(n));
}

bool CountBelow::fill_cells() {
    begins_.assign(count_of(bins_) + 1, 0);
    std::int32_t cells[kBlock];
    for (std::size_t at = 0; at < values_.size(); at += kBlock) {
        const std::size_t n = std::min(kBlock, values_.size() - at);
        std::visit([&](const auto &kind) { kind.find(values_.data() + at, n, cells); }, bins_);
        for (std::size_t i = 0; i < n; ++i) ++begins_[static_cast<std::size_t>(cells[i]) + 1];
    }
    std::size_t crowded = 0;
    for (std::size_t c = 1; c < begins_.size(); ++c) {
        if (begins_[c] > static_cast<std::int32_t>(kFew)) crowded += static_cast<std::size_t>(begins_[c]);
        begins_[c] += begins_[c - 1];
    }
    return 8 * crowded > values_.size();
}

void CountBelow::operator()(const double *scores, std::size_t n, std::int32_t *counts) const {
    const double *const values = values_.data();
    for (std::size_t at = 0; at < n; at += kBlock) {
        const std::size_t stop = std::min(at + kBlock, n);
        std::visit([&](const auto &kind) { kind.find(scores + at, stop - at, counts + at); }, bins_);
        for (std::size_t i = at; i < stop; ++i) {
            const auto cell = static_cast<std::size_t>(counts[i]);
            const double score = scores[i];
            auto place = static_cast<std::size_t>(begins_[cell]);
            const auto end = static_cast<std::size_t>(begins_[cell + 1]);
            if (end - place > kFew)
                place = static_cast<std::size_t>(std::lower_bound(values + place, values + end, score) - values);
            else {  // values of later cells, too: they are above the score
                const double *const here = values + place;
                for (std::size_t k = 0; k < kFew; ++k) place += here[k] < score;
            }
            counts[i] = below_[place];
        }
    }
}

}  // namespace apsvm
