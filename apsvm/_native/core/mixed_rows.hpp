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
    std::vector<double> positives, negatives, weights_pos, weights_neg;

    void take_apart(std::span<const double> scores, const bool *relevant, std::size_t n_pos, std::size_t n_neg) {
        // One place more, for what is written past the last of a class.
        positives.resize(n_pos + 1);
        negatives.resize(n_neg + 1);
        weights_pos.resize(n_pos + 1);
        weights_neg.resize(n_neg + 1);
        double *pos = positives.data(), *neg = negatives.data();
        for_runs(relevant, scores.size(), [&](std::size_t i, bool only_negatives) {
            if (only_negatives) {
                neg = std::copy_n(&scores[i], kRun, neg);
                return;
            }
            *pos = *neg = scores[i];
            pos += relevant[i];
            neg += !relevant[i];
        });
    }

    void put_together(const bool *relevant, std::span<double> weights) const {
        const double *pos = weights_pos.data(), *neg = weights_neg.data();
        for_runs(relevant, weights.size(), [&](std::size_t i, bool only_negatives) {
            if (only_negatives) {
                std::copy_n(neg, kRun, &weights[i]);
                neg += kRun;
                return;
            }
            weights[i] = relevant[i] ? *pos : *neg;
            pos += relevant[i];
            neg += !relevant[i];
        });
    }

private:
    static constexpr std::size_t kRun = sizeof(std::uint64_t);

    // Calls take(i, true) for runs of negatives that begin at i, positives being mostly few, and take(i, false) for each
    // of the other rows.
    template <class Take>
    static void for_runs(const bool *relevant, std::size_t n, const Take &take) {
        std::size_t i = 0;
        for (; i + kRun <= n; i += kRun) {
            std::uint64_t run;
            std::memcpy(&run, relevant + i, kRun);
            if (run == 0)
                take(i, true);
            else
                for (std::size_t k = i; k < i + kRun; ++k) take(k, false);
        }
        for (; i < n; ++i) take(i, false);
    }
};

}  // namespace apsvm
