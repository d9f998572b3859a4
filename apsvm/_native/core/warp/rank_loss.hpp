// The search for a violating negative, and the weight of the step it leads to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "support/random.hpp"

namespace apsvm::warp {

struct Counts {
    std::int64_t trials = 0;
    std::int64_t updates = 0;
    double loss = 0.0;  // Σ of L̂ · hinge over the steps

    Counts &operator+=(const Counts &other) {
        trials += other.trials;
        updates += other.updates;
        loss += other.loss;
        return *this;
    }
};

inline double harmonic(std::int64_t n) {
    if (n < 64) {
        double sum = 0.0;
        for (std::int64_t i = n; i > 0; --i) sum += 1.0 / static_cast<double>(i);
        return sum;
    }
    const double x = static_cast<double>(n), square = x * x;
    return std::log(x) + std::numbers::egamma + 0.5 / x - 1.0 / (12.0 * square) + 1.0 / (120.0 * square * square);
}

enum class Estimator { plugin, log_unbiased, exact };

// log-unbiased serves L(r) = H_r. With p = r/N, t is geometric, and E[ln N − H_{t−1}] = ln r, E[t/N] = 1/r,
// E[t(t+1)/2N²] = 1/r², so that
//     E[ln N + γ − H_{t−1} + t/2N − t(t+1)/24N²] = ln r + γ + 1/2r − 1/12r² = H_r − 1/120r⁴ + …
class RankLoss {
public:
    // loss_of_rank: L(0), L(1), …; max_trials: T, or 0 for the lesser of N and 1,000. Throws std::invalid_argument for
    // an unknown estimator.
    RankLoss(std::span<const double> loss_of_rank, std::string_view estimator, double scale, std::int64_t max_trials)
        : loss_of_rank_(loss_of_rank), scale_(scale), max_trials_(max_trials) {
        if (estimator == "plugin")
            estimator_ = Estimator::plugin;
        else if (estimator == "log-unbiased")
            estimator_ = Estimator::log_unbiased;
        else if (estimator == "exact")
            estimator_ = Estimator::exact;
        else
            throw std::invalid_argument("unknown estimator " + std::string(estimator));
    }

    struct Found {
        std::int64_t which = -1;
        double hinge = 0.0;
        double weight = 0.0;
    };

    // Among the negatives 0..n−1, n ≥ 1: scores_of(which, k, out) tells the scores of k of them, at most AtOnce, and
    // drawn(t) is told that t more have been tried.
    template <std::size_t AtOnce, class ScoresOf, class Drawn>
    Found find(std::int64_t n, double positive, Random &random, Counts &counts, ScoresOf scores_of, Drawn drawn) const {
        Found found = estimator_ == Estimator::exact
                          ? among_all<AtOnce>(n, positive, random, counts, scores_of)
                          : by_trials<AtOnce>(n, positive, random, counts, scores_of, drawn);
        if (found.which >= 0) {
            ++counts.updates;
            counts.loss += found.weight * found.hinge;
        }
        return found;
    }

    // The most negatives that a positive may have.
    std::int64_t most_negatives() const { return static_cast<std::int64_t>(loss_of_rank_.size()) - 1; }

private:
    double weight_after(std::int64_t n, std::int64_t trials) const {
        if (estimator_ == Estimator::plugin) return scale_ * loss_of_rank_[std::max<std::int64_t>(n / trials, 1)];
        const double all = static_cast<double>(n), t = static_cast<double>(trials);
        return scale_ * (std::log(all) + std::numbers::egamma - harmonic(trials - 1) + t / (2.0 * all) -
                         t * (t + 1.0) / (24.0 * all * all));
    }

    template <std::size_t AtOnce, class ScoresOf, class Drawn>
    Found by_trials(std::int64_t n, double positive, Random &random, Counts &counts, ScoresOf scores_of,
                    Drawn drawn) const {
        const std::int64_t last = max_trials_ > 0 ? max_trials_ : std::min<std::int64_t>(n, 1000);
        std::int64_t which[AtOnce];
        double score[AtOnce];
        Random after[AtOnce];
        for (std::int64_t trials = 0; trials < last;) {
            // The first is often the last. Of more, those behind a violator have never been drawn.
            const auto k = trials == 0 ? 1 : std::min<std::int64_t>(AtOnce, last - trials);
            for (std::int64_t i = 0; i < k; ++i) {
                which[i] = random.below(n);
                after[i] = random;
            }
            scores_of(which, static_cast<std::size_t>(k), score);
            for (std::int64_t i = 0; i < k; ++i) {
                const double hinge = 1.0 - positive + score[i];
                if (hinge > 0.0) {
                    random = after[i];
                    drawn(i + 1);
                    counts.trials += trials + i + 1;
                    return {which[i], hinge, weight_after(n, trials + i + 1)};
                }
            }
            drawn(k);
            trials += k;
        }
        counts.trials += last;
        return {};
    }

    template <std::size_t AtOnce, class ScoresOf>
    Found among_all(std::int64_t n, double positive, Random &random, Counts &counts, ScoresOf scores_of) const {
        Found found;
        std::int64_t violators = 0;
        std::int64_t which[AtOnce];
        double score[AtOnce];
        for (std::int64_t begin = 0; begin < n; begin += AtOnce) {
            const auto k = std::min<std::int64_t>(AtOnce, n - begin);
            std::iota(which, which + k, begin);
            scores_of(which, static_cast<std::size_t>(k), score);
            for (std::int64_t i = 0; i < k; ++i) {
                const double hinge = 1.0 - positive + score[i];
                // The k-th violator takes the place of the one kept with probability 1/k: each is as likely in the end.
                if (hinge > 0.0 && random.below(++violators) == 0) found = {which[i], hinge, 0.0};
            }
        }
        counts.trials += n;
        found.weight = scale_ * loss_of_rank_[violators];
        return found;
    }

    std::span<const double> loss_of_rank_;
    double scale_;
    std::int64_t max_trials_;
    Estimator estimator_ = Estimator::plugin;
};

}  // namespace apsvm::warp
