#include "oracles/inference.hpp"

#include <cstring>
#include <numeric>
#include <vector>

#include "support/threads.hpp"

namespace apsvm {

namespace {

// Ranks are read some at a time, before any weight is written that may overwrite them.
APSVM_CLONES double weigh_block(const std::int32_t *ranks, const double *scores, std::size_t n, std::int32_t n_pos,
                                double scale, double top, double *weights) {
    constexpr std::size_t some = 512;
    std::int32_t steps[some];
    double sum[4] = {0, 0, 0, 0};
    for (std::size_t at = 0; at < n; at += some, weights += some, scores += some) {
        const std::size_t here = std::min(some, n - at);
        std::memcpy(steps, ranks + at, here * sizeof *ranks);
        std::size_t i = 0;
        for (; i + 4 <= here; i += 4)
            for (int lane = 0; lane < 4; ++lane) {
                weights[i + lane] = scale * static_cast<double>(n_pos + 1 - steps[i + lane]);
                sum[lane] += weights[i + lane] * (scores[i + lane] - top);
            }
        for (; i < here; ++i) {
            weights[i] = scale * static_cast<double>(n_pos + 1 - steps[i]);
            sum[0] += weights[i] * (scores[i] - top);
        }
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

constexpr std::int32_t kRun = 32;

// Where all gains of a run have one sign, its sum says whether its lowest rank is the best yet.
APSVM_CLONES std::int32_t try_ranks(const double *weights, const double *discount, const double *positives,
                                    double scale, double score, std::int32_t low, std::int32_t high) {
    double gains[kRun];
    double value = 0.0, best = 0.0;
    std::int32_t rank = high, end = high;
    while (end > low) {
        const std::int32_t begin = std::max(end - kRun, low);
        if (end - begin == kRun) {
            double sums[8] = {};
            std::int32_t n_gains = 0;
            for (std::int32_t i = 0; i < kRun; ++i) {
                gains[i] = weights[begin + i] * (discount[begin + i] - discount[begin + i + 1]) -
                           scale * (positives[begin + i] - score);
                n_gains += gains[i] > 0.0;
            }
            for (std::int32_t i = 0; i < kRun; i += 8)
                for (std::int32_t lane = 0; lane < 8; ++lane) sums[lane] += gains[i + lane];
            if (n_gains == 0 || n_gains == kRun) {
                value += ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
                if (n_gains == kRun && value > best) {
                    best = value;
                    rank = begin;
                }
                end = begin;
                continue;
            }
        }
        for (std::int32_t k = end; k-- > begin;) {
            value += weights[k] * (discount[k] - discount[k + 1]) - scale * (positives[k] - score);
            if (value > best) {
                best = value;
                rank = k;
            }
        }
        end = begin;
    }
    return rank;
}

}  // namespace

// Discounts are convex and positives descend: where u does not fall, the ends of a run of ranks bound its gains, and what
// lies beyond the runs of surely positive gains above the best rank, or of surely none below it, need not be tried.
std::int32_t Problem::rank_of_many(std::int64_t j, double score, std::int32_t low, std::int32_t high) const {
    if (rising) {
        const double *const here = discount + (j - 2);  // of rank k at [k]
        const auto bound = [&](std::int32_t u, std::int32_t d, std::int32_t p) {
            return weights[u - 1] * (here[d] - here[d + 1]) - scale * (positives[p - 1] - score);
        };
        for (std::int32_t run = (high - low) / 2; run >= kRun && high - low >= run;)
            if (bound(high - run, high - 1, high - run) > 0.0)
                high -= run;
            else
                run /= 2;
        for (std::int32_t run = (high - low) / 2; run >= kRun && high - low >= run;)
            if (bound(low + run - 1, low, low + run - 1) <= 0.0)
                low += run;
            else
                run /= 2;
    }
    return 1 + try_ranks(weights, discount + (j - 1), positives, scale, score, low - 1, high - 1);
}

double dot(const double *a, const double *b, double from, std::size_t n) {
    double sum[4] = {0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * (b[i + lane] - from);
    for (; i < n; ++i) sum[0] += a[i] * (b[i] - from);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// In blocks whose number depends on n alone: the sum does not depend on the number of threads.
double weigh_ranks(const std::int32_t *ranks, const double *scores, std::size_t n, std::int32_t n_pos, double scale,
                   double top, double *weights, std::size_t threads) {
    constexpr std::size_t block = 1u << 17;
    if (n <= block) return weigh_block(ranks, scores, n, n_pos, scale, top, weights);
    std::vector<double> sums((n + block - 1) / block);
    // The weights of the rows up to `end` overwrite the ranks of those before 2·end − n, which must have been read.
    const bool overlap = ranks == ranks_within(weights, n);
    for (std::size_t done = 0; done < sums.size();) {
        const std::size_t end = overlap ? std::max((n + done * block) / (2 * block), done + 1) : sums.size();
        in_threads(end - done, threads, [&](std::size_t t) {
            const std::size_t begin = (done + t) * block;
            sums[done + t] = weigh_block(ranks + begin, scores + begin, std::min(n - begin, block), n_pos, scale, top,
                                         weights + begin);
        });
        done = end;
    }
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace apsvm
