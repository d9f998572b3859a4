// The ranking by score: g = max_R w·Ψ(R) − w·Ψ(R*), by which the hinge exceeds the tighter bound, and its row weights
//
//     c⁰ = scale · (positives below it) of a negative,     −scale · (negatives above it) of a positive.
//
// A negative of the score of a positive is not above it. No loss has a part in this, and a negative's weight hangs on
// no other negative: one pass in blocks that fit the cache can subtract c⁰ from weights that are there already.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracles/batch.hpp"
#include "sorting/count_below.hpp"

namespace apsvm {

// Solves one query after another.
class ByScoreSolver {
public:
    struct Task {
        std::int32_t n_pos;
        std::size_t n_neg;
    };
    struct Workspace {
        // Of a thread that works on a part of the negatives.
        struct Block {
            std::vector<std::int64_t> counts;  // of the negatives with k positives below them, at [k]
            std::vector<double> weights;
        };
        std::vector<double> weights_pos, sums;
        CountBelow count_below;
        std::vector<Block> blocks;
    };
    static constexpr bool kSharesTask = true;

    // Positives first in `scores` and `weights`. Writes the row weights.
    Answer solve(const Task &task, const double *scores, double *weights, Workspace &workspace,
                 std::size_t threads) const;
    // The same, but coefficient · c⁰ is subtracted from the weights.
    Answer subtract(const Task &task, double coefficient, const double *scores, double *weights, Workspace &workspace,
                    std::size_t threads) const;
};

// Many queries.
class RankingByScore {
public:
    explicit RankingByScore(std::size_t threads) : threads_(threads) {}

    // Tasks in the order of their rows, as RankingOracle takes them; n_pos and n_neg ≥ 1. Throws std::invalid_argument
    // where they do not fit together.
    void add_tasks(std::span<const std::int64_t> first, std::span<const std::int64_t> n_pos,
                   std::span<const std::int64_t> n_neg, std::span<const double> coefficients);

    // Rows that the arrays below must hold.
    std::size_t rows() const { return batch_.end(); }
    // Σ coefficient·g over all tasks; fills the row weights.
    Answer solve(const double *scores, double *weights) { return batch_.solve(solver_, scores, weights, threads_); }
    // The same, and the row weights are subtracted from those there are.
    Answer subtract(const double *scores, double *weights) {
        return batch_.subtract(solver_, scores, weights, threads_);
    }

private:
    ByScoreSolver solver_;
    std::size_t threads_;
    Batch<ByScoreSolver> batch_;
};

}  // namespace apsvm
