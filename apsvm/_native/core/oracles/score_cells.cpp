#include "oracles/score_cells.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <variant>

#include "support/checks.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kBlock = 2048;    // what stays in the cache between two steps
constexpr std::int32_t kFew = 8;        // thresholds that are counted through rather than halved

// The places of the rows of some cells, that stand cell after cell.
class Places {
public:
    template <class Taken>
    Places(std::span<const std::int64_t> counts, Taken taken) : next_(counts.size()) {
        for (std::size_t cell = 0; cell < counts.size(); ++cell) {
            next_[cell] = static_cast<std::uint32_t>(size_);
            if (taken(cell)) size_ += static_cast<std::size_t>(counts[cell]);
        }
        if (size_ > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("expected fewer open rows");
    }

    std::size_t size() const { return size_; }

    // The place of the next row of the cell.
    std::size_t take(std::int32_t cell) {
        const std::size_t place = next_[static_cast<std::size_t>(cell)]++;
        if (place >= size_) throw std::invalid_argument("expected the counts of these cells");
        return place;
    }

private:
    std::vector<std::uint32_t> next_;  // not of 64 bits: they are to stay in the cache
    std::size_t size_ = 0;
};

APSVM_CLONES double weighted(const double *weights, const double *values, double top, std::size_t n) {
    double sum[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) sum[lane] += weights[i + lane] * (values[i + lane] - top);
    for (; i < n; ++i) sum[0] += weights[i] * (values[i] - top);
    return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

APSVM_CLONES void widen(Range &range, const double *scores, std::size_t n) {
    double low[8], high[8];
    std::fill_n(low, 8, range.lowest);
    std::fill_n(high, 8, range.highest);
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t lane = 0; lane < 8; ++lane) {
            low[lane] = scores[i + lane] < low[lane] ? scores[i + lane] : low[lane];
            high[lane] = scores[i + lane] > high[lane] ? scores[i + lane] : high[lane];
        }
    for (; i < n; ++i) {
        low[0] = std::min(low[0], scores[i]);
        high[0] = std::max(high[0], scores[i]);
    }
    range = {*std::min_element(low, low + 8), *std::max_element(high, high + 8)};
}

}  // namespace

Range number_cells(const Bins &bins, std::span<const double> scores, std::span<std::int32_t> cells,
                   std::span<std::int64_t> counts) {
    constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    Range range{infinity, -infinity};
    bool finite = true;
    std::vector<std::uint32_t> of_bins(counts.size(), 0);  // half as much of the cache as counts
    std::visit(
        [&](const auto &kind) {
            for (std::size_t at = 0; at < scores.size(); at += kBlock) {
                const auto block = scores.subspan(at, std::min(kBlock, scores.size() - at));
                kind.find(block.data(), block.size(), cells.data() + at);
                for (const std::int32_t cell : cells.subspan(at, block.size())) ++of_bins[static_cast<std::size_t>(cell)];
                widen(range, block.data(), block.size());
                finite = finite && all_finite(block);
            }
        },
        bins);
    std::ranges::copy(of_bins, counts.begin());
    return finite ? range : Range{nan, nan};
}

void split_cells(std::span<const double> scores, std::span<std::int32_t> cells, std::span<const std::int32_t> starts,
                 std::span<const double> thresholds, std::span<std::int64_t> counts) {
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const std::int32_t cell = cells[i];
        const std::int32_t begin = starts[static_cast<std::size_t>(cell)];
        const std::int32_t end = starts[static_cast<std::size_t>(cell) + 1];
        const double score = scores[i];
        std::int32_t part = 0;
        if (end - begin <= kFew)
            for (std::int32_t t = begin; t < end; ++t) part += thresholds[static_cast<std::size_t>(t)] <= score;
        else
            part = static_cast<std::int32_t>(
                std::upper_bound(thresholds.begin() + begin, thresholds.begin() + end, score) -
                (thresholds.begin() + begin));
        cells[i] = cell + begin + part;
        ++counts[static_cast<std::size_t>(cells[i])];
    }
}

std::vector<double> collect_scores(std::span<const double> scores, std::span<const std::int32_t> cells,
                                   std::span<const std::uint8_t> wanted, std::span<const std::int64_t> counts) {
    Places places(counts, [&](std::size_t cell) { return wanted[cell] != 0; });
    std::vector<double> collected(places.size());
    std::size_t rows[kBlock];
    for (std::size_t at = 0; at < scores.size(); at += kBlock) {
        const std::size_t stop = std::min(at + kBlock, scores.size());
        std::size_t n = 0;
        for (std::size_t i = at; i < stop; ++i) {  // without a branch: which are wanted is hard to foretell
            rows[n] = i;
            n += wanted[static_cast<std::size_t>(cells[i])] != 0;
        }
        for (std::size_t k = 0; k < n; ++k) collected[places.take(cells[rows[k]])] = scores[rows[k]];
    }
    return collected;
}

WeightedSums weigh_cells(std::span<const double> scores, std::span<const std::int32_t> cells,
                         std::span<const std::int64_t> counts, const CellRanks &ranks, double top,
                         std::span<const double> other, std::span<double> row_weights) {
    Places places(counts, [&](std::size_t cell) { return ranks.of_cell[cell] == 0; });
    if (places.size() != ranks.of_open.size()) throw std::invalid_argument("expected ranks of all open rows");
    WeightedSums sums;
    std::int32_t block[kBlock];
    std::size_t rows[kBlock];
    for (std::size_t at = 0; at < scores.size(); at += kBlock) {
        const std::size_t size = std::min(kBlock, scores.size() - at);
        std::size_t n = 0;
        for (std::size_t i = 0; i < size; ++i) {
            block[i] = ranks.of_cell[static_cast<std::size_t>(cells[at + i])];
            rows[n] = i;
            n += block[i] == 0;
        }
        for (std::size_t k = 0; k < n; ++k) block[rows[k]] = ranks.of_open[places.take(cells[at + rows[k]])];
        double *const weights = row_weights.data() + at;
        for (std::size_t i = 0; i < size; ++i)
            weights[i] = ranks.scale * static_cast<double>(ranks.n_pos + 1 - block[i]);
        sums.scores += weighted(weights, scores.data() + at, top, size);
        if (!other.empty()) sums.other += weighted(weights, other.data() + at, 0.0, size);
    }
    return sums;
}

}  // namespace apsvm
