// WARP (Weston, Bengio, Usunier 2010): stochastic steps on a rank-weighted pairwise hinge.
//
//   draw a positive i; draw negatives uniformly with replacement until 1 − s_i + s_j > 0, say at the t-th, t ≤ T
//   θ ← θ − rate · L̂(t) · ∇(1 − s_i + s_j),      L(r) = τ_1 + … + τ_r,   r = #negatives with 1 − s_i + s_j > 0
//
// L̂ is read off the trials (plugin: L(⌊N/t⌋); log-unbiased: see RankLoss) or off r itself (exact: all N are scored and
// the violator is drawn from among them). A trial costs one dot product, a step one pass over the rows it moves. The L2
// penalty is paid in instalments, which cost a fraction of the trials.
//
// With one thread the draws come from one generator in one order: the same seed gives the same bits, however the work
// is cut into calls. With more, each has its own, and they share the parameters without locks (Hogwild, Niu et al.
// 2011): loads and stores are relaxed atomics, so that a step may be lost but nothing is undefined, and no two runs
// agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "warp/parameters.hpp"
#include "warp/rank_loss.hpp"
#include "warp/workers.hpp"

namespace apsvm::warp {

// Rows by their numbers: the negatives of positive p are members[starts[p]] … members[starts[p] + counts[p] − 1].
struct Candidates {
    std::span<const std::int64_t> positives, starts, counts, members;
};

// A linear ranker over rows. What it is made of must outlive it.
class Rows {
public:
    // Throws std::invalid_argument where the candidates do not fit together or with the loss.
    Rows(const Parameters<double> &parameters, const Candidates &candidates, const Descent &descent);

    std::size_t n_columns() const { return parameters_.size; }

    // Draws the positives of `order` in turn, from the n_rows rows of X, a CSR matrix with columns that ascend. Throws
    // std::invalid_argument for rows that do not exist.
    template <class Matrix>
    Counts run(const Matrix &X, std::size_t n_rows, std::span<const std::int64_t> order);

    void settle();

private:
    template <class Access, class Matrix>
    void draw(const Matrix &X, std::int64_t p, Worker &worker, Counts &counts);

    template <class Matrix, class Weights>
    RankLoss::Found search(const Matrix &X, std::int64_t p, Weights w, Worker &worker, Counts &counts) const;

    // One step, on the parameters of the columns where the rows differ.
    template <class Access, class Matrix>
    void move(const Matrix &X, std::size_t positive, std::size_t negative, double weight, Worker &worker);

    // On those of column(i), with the gradient weight · differences[i]; no column comes twice.
    template <class Access, class Column>
    void move_some(Column column, std::span<const double> differences, double weight);

    template <class Access>
    void pay(Worker &worker);

    Parameters<double> parameters_;
    std::span<const std::int64_t> positives_, starts_, counts_, members_;
    std::int64_t last_row_ = -1;  // that any draw may ask for
    RankLoss loss_;
    Pace pace_;
    std::int64_t instalment_;
    std::vector<Worker> workers_;
};

}  // namespace apsvm::warp
