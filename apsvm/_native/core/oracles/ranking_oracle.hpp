// The oracles for losses of two arrays, weights u and a convex discount D: algorithms that find the ranks of the
// negatives, and what turns ranks into an answer: row weights, Δ and h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "oracles/batch.hpp"
#include "oracles/bucket.hpp"
#include "oracles/inference.hpp"
#include "oracles/mixed_rows.hpp"

namespace apsvm {

enum class Algorithm { greedy, search, select, search_select, qs, bucket };

// By its name in the registry of oracles; throws std::invalid_argument where there is none.
Algorithm algorithm_named(std::string_view name);

// A loss written out for one size of query, in arrays that stand elsewhere.
struct LossView {
    std::int32_t n_pos;
    std::size_t n_neg;
    double scale;                               // 2 / (P N)
    const double *weights, *discount;  // u_k at [k − 1], D(p) at [p − 1]
    bool rising = false;               // 0 ≤ u_1 ≤ u_2 ≤ …
};

// The same with its own arrays.
struct LossTables {
    LossTables(std::size_t n_neg, std::span<const double> weights, std::span<const double> discount);

    std::int32_t n_pos;
    std::size_t n_neg;
    double scale;  // 2 / (P N)
    std::vector<double> weights, discount;
    bool rising;

    std::size_t rows() const { return static_cast<std::size_t>(n_pos) + n_neg; }
    LossView view() const {
        return {n_pos, n_neg, scale, weights.data(), discount.data(), rising};
    }
};

// Solves one query after another.
class RankingSolver {
public:
    struct Task {
        std::size_t tables;
        std::int64_t violating = -1;  // negatives in the last call, or −1
    };
    struct Workspace {
        std::vector<Scored> positives, items;
        SortWorkspace sort;
        std::vector<double> sorted;  // the positives' scores
        std::vector<std::int64_t> counts;
        Bucket bucket;
    };
    static constexpr bool kSharesTask = true;

    RankingSolver(Algorithm algorithm, bool unimodal)
        : algorithm_(algorithm), bisect_(unimodal && algorithm == Algorithm::bucket) {}

    void add_tables(LossTables tables) { tables_.push_back(std::move(tables)); }
    const std::vector<LossTables> &tables() const { return tables_; }

    // Positives first in `scores` and `weights`.
    Answer solve(Task &task, const double *scores, double *weights, Workspace &workspace, std::size_t threads) const {
        const std::int32_t n_pos = tables_[task.tables].n_pos;
        return solve(task, scores, scores + n_pos, weights, weights + n_pos, workspace, threads);
    }

    // The most violated ranking of the task, or the one that maximises F − Δ; its row weights are written.
    Answer solve(Task &task, const double *positives, const double *negatives, double *weights_pos, double *weights_neg,
                 Workspace &workspace, std::size_t threads) const {
        return solve(tables_[task.tables].view(), task.violating, positives, negatives, weights_pos, weights_neg,
                     workspace, threads);
    }

    // The same of any loss. `violating`: the task's, or −1. `ranks`: room for the negatives' ranks, for callers that want
    // them. Leaves the positives in order in the workspace.
    Answer solve(const LossView &loss, std::int64_t &violating, const double *positives, const double *negatives,
                 double *weights_pos, double *weights_neg, Workspace &workspace, std::size_t threads,
                 std::int32_t *ranks = nullptr) const;

private:
    // `spare`: room for as many numbers as there are negatives, of which the ranks may take the second half.
    std::int64_t rank_negatives(const Problem &problem, const LossView &loss, const Sink &sink,
                                const double *negatives, double *spare, std::int64_t &violating, Workspace &workspace,
                                std::size_t threads) const;

    Algorithm algorithm_;
    bool bisect_;  // the papers' own algorithms try every rank they are said to try
    std::vector<LossTables> tables_;
};

// An algorithm made ready for many queries, or for one whose classes stand apart.
class RankingOracle {
public:
    RankingOracle(Algorithm algorithm, bool unimodal, std::size_t threads)
        : solver_(algorithm, unimodal), threads_(threads) {}

    void add_tables(LossTables tables) { solver_.add_tables(std::move(tables)); }

    // Tasks in the order of their rows: the first row of each, its tables (in the order they were added) and its
    // coefficient. Throws std::invalid_argument where they do not fit together.
    void add_tasks(std::span<const std::int64_t> first, std::span<const std::int64_t> tables,
                   std::span<const double> coefficients);

    // Rows that the arrays of solve() must hold.
    std::size_t rows() const { return batch_.end(); }
    // (Σ coefficient·h, Σ coefficient·Δ, …) over all tasks; fills the row weights.
    Answer solve(const double *scores, double *weights) { return batch_.solve(solver_, scores, weights, threads_); }

    // The sizes of the query that solve_one() takes: those of the first tables.
    const LossTables &tables_of_one() const;
    // `ranks`: the negatives', where they are wanted.
    Answer solve_one(const double *positives, const double *negatives, double *weights_pos, double *weights_neg,
                     std::int32_t *ranks = nullptr) {
        return solver_.solve(tables_of_one().view(), one_.violating, positives, negatives, weights_pos, weights_neg,
                             workspace_, threads_, ranks);
    }
    // Room for the rows of a query for solve_one().
    MixedRows &mixed_rows() { return mixed_rows_; }

private:
    RankingSolver solver_;
    std::size_t threads_;
    Batch<RankingSolver> batch_;
    RankingSolver::Task one_{0};
    RankingSolver::Workspace workspace_;  // of solve_one()
    MixedRows mixed_rows_;
};

}  // namespace apsvm
