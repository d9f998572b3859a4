// The measures of measures.hpp, each made ready for many queries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "oracles/batch.hpp"
#include "oracles/measures.hpp"
#include "oracles/mixed_rows.hpp"

namespace apsvm {

enum class Measure { ndcg_first_two, ndcg_at, precision_at, f_measure, set_precision_at, set_recall_at, break_even };

// By its form in the registry of losses; throws std::invalid_argument where there is none.
Measure measure_named(std::string_view form);

// Solves one query after another.
class MeasureSolver {
public:
    struct Task {
        std::int32_t n_pos, n_neg;
    };
    using Workspace = MeasureWorkspace;
    static constexpr bool kSharesTask = true;

    // `parameter`: k, β or nothing; `discount` as the measure wants it, for the largest query.
    MeasureSolver(Measure measure, double parameter, std::span<const double> discount);

    // Positives first in `scores` and `weights`.
    Answer solve(const Task &task, const double *scores, double *weights, Workspace &workspace,
                 std::size_t threads) const {
        return solve({scores, task.n_pos, scores + task.n_pos, task.n_neg, weights, weights + task.n_pos, threads},
                     workspace);
    }
    Answer solve(const MeasureQuery &query, Workspace &workspace) const;

    // Throws std::invalid_argument where a query of these sizes cannot be solved.
    void check_sizes(std::int64_t n_pos, std::int64_t n_neg) const;

private:
    Measure measure_;
    double parameter_;
    std::vector<double> discount_;
};

class MeasureOracle {
public:
    MeasureOracle(MeasureSolver solver, std::size_t threads) : solver_(std::move(solver)), threads_(threads) {}

    // Tasks in the order of their rows: the first row of each, its positives and the negatives after them, and its
    // coefficient. Throws std::invalid_argument where they do not fit together.
    void add_tasks(std::span<const std::int64_t> first, std::span<const std::int64_t> n_pos,
                   std::span<const std::int64_t> n_neg, std::span<const double> coefficients);

    // Rows that the arrays of solve() must hold.
    std::size_t rows() const { return batch_.end(); }
    // (Σ coefficient·h, Σ coefficient·Δ, …) over all tasks; fills the row weights.
    Answer solve(const double *scores, double *weights) { return batch_.solve(solver_, scores, weights, threads_); }

    // The same for one query whose classes stand apart.
    Answer solve_one(const MeasureQuery &query) { return solver_.solve(query, workspace_); }
    // The negatives' ranks in the last answer of solve_one(), of a measure over rankings; of no other there are any.
    std::span<const std::int32_t> ranks_of_one() const { return workspace_.ranks; }
    // Room for the rows of a query for solve_one().
    MixedRows &mixed_rows() { return mixed_rows_; }
    const MeasureSolver &solver() const { return solver_; }
    std::size_t threads() const { return threads_; }

private:
    MeasureSolver solver_;
    std::size_t threads_;
    Batch<MeasureSolver> batch_;
    MeasureWorkspace workspace_;  // of solve_one()
    MixedRows mixed_rows_;
};

}  // namespace apsvm
