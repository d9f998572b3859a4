// Rows of one query whose classes are mixed: taken apart for an oracle, and its answer put together again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace apsvm {

struct MixedRows {
    std::vector<double> positives, negatives, weights_pos;

    void take_apart(std::span<const double> scores, const bool *relevant, std::size_t n_pos, std::size_t n_neg) {
        // One place more, for what is written past the last of a class.
        positives.resize(n_pos + 1);
        negatives.resize(n_neg + 1);
        weights_pos.resize(n_pos + 1);
        double *pos = positives.data(), *neg = negatives.data();
        for_runs(relevant, scores.size(), [&](std::size_t i, std::size_t run) {
            if (run > 0) {
                neg = std::copy_n(&scores[i], run, neg);
                return;
            }
            *pos = *neg = scores[i];
            pos += relevant[i];
            neg += !relevant[i];
        });
    }

    // Where the weights of n_neg negatives stand until they are put together: at the end of all rows'. Each moves towards
    // the front, where no other is still to come.
    static double *weights_neg(std::span<double> weights, std::size_t n_neg) {
        return weights.data() + (weights.size() - n_neg);
    }

    void put_together(const bool *relevant, std::span<double> weights, std::size_t n_neg) const {
        const double *pos = weights_pos.data(), *neg = weights_neg(weights, n_neg);
        const double *const last = weights.data() + weights.size() - 1;
        for_runs(relevant, weights.size(), [&](std::size_t i, std::size_t run) {
            if (run > 0) {
                std::memmove(&weights[i], neg, run * sizeof *neg);
                neg += run;
                return;
            }
            weights[i] = relevant[i] ? *pos : *std::min(neg, last);
            pos += relevant[i];
            neg += !relevant[i];
        });
    }

private:
    static constexpr std::size_t kRun = sizeof(std::uint64_t), kLongRun = 16 * kRun;

    static bool any(const bool *relevant, std::size_t n) {  // n: a multiple of kRun
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < n; i += kRun) {
            std::uint64_t run;
            std::memcpy(&run, relevant + i, kRun);
            all |= run;
        }
        return all != 0;
    }

    // Calls take(i, run) for runs of this many negatives that begin at i, positives being mostly few, and take(i, 0) for
    // each of the other rows.
    template <class Take>
    static void for_runs(const bool *relevant, std::size_t n, const Take &take) {
        for (std::size_t i = 0; i < n;) {
            if (i + kLongRun <= n && !any(relevant + i, kLongRun)) {
                take(i, kLongRun);
                i += kLongRun;
                continue;
            }
            const std::size_t stop = std::min(i + kLongRun, n);
            for (; i + kRun <= stop; i += kRun) {
                if (!any(relevant + i, kRun))
                    take(i, kRun);
                else
                    for (std::size_t k = i; k < i + kRun; ++k) take(k, 0);
            }
            for (; i < stop; ++i) take(i, 0);
        }
    }
};

}  // namespace apsvm
