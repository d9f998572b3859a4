#include "rows.hpp"

#include <algorithm>
#include <type_traits>

#include "../matrices.hpp"
#include "../require.hpp"

namespace apsvm::warp {

namespace {

// step(column, x_b − x_a) for every column where row b differs from row a; CSR rows are sorted.
template <class Value, class Index, class Step>
void each_difference(const Csr<Value, Index> &X, std::size_t a, std::size_t b, Step step) {
    Index i = X.indptr[a], j = X.indptr[b];
    const Index end_i = X.indptr[a + 1], end_j = X.indptr[b + 1];
    while (i < end_i && j < end_j) {
        const Index column_i = X.indices[i], column_j = X.indices[j];
        if (column_i < column_j) {
            step(column_i, -static_cast<double>(X.values[i++]));
        } else if (column_j < column_i) {
            step(column_j, static_cast<double>(X.values[j++]));
        } else {
            step(column_i, static_cast<double>(X.values[j++]) - static_cast<double>(X.values[i++]));
        }
    }
    for (; i < end_i; ++i) step(X.indices[i], -static_cast<double>(X.values[i]));
    for (; j < end_j; ++j) step(X.indices[j], static_cast<double>(X.values[j]));
}

template <class Value, class Step>
void each_difference(const Dense<Value> &X, std::size_t a, std::size_t b, Step step) {
    const Value *x = X.values + a * X.n_columns, *y = X.values + b * X.n_columns;
    for (std::size_t at = 0; at < X.n_columns; ++at) step(at, static_cast<double>(y[at]) - static_cast<double>(x[at]));
}

}  // namespace

Rows::Rows(const Parameters<double> &parameters, const Candidates &candidates, const Descent &descent)
    : parameters_(parameters),
      positives_(candidates.positives),
      starts_(candidates.starts),
      counts_(candidates.counts),
      members_(candidates.members),
      loss_(descent.loss),
      pace_(descent.pace),
      instalment_(descent.instalment),
      workers_(make_workers(descent.seed, descent.threads)) {
    require(starts_.size() == positives_.size() && counts_.size() == positives_.size(),
            "expected a start and a count of negatives for each positive");
    const auto n_members = static_cast<std::int64_t>(members_.size());
    for (std::size_t p = 0; p < positives_.size(); ++p) {
        require(0 < counts_[p] && counts_[p] <= n_members && 0 <= starts_[p] && starts_[p] <= n_members - counts_[p],
                "expected the negatives of each positive, one or more, among the members");
        require(counts_[p] <= loss_.most_negatives(), "expected a loss for each rank that a positive may have");
    }
    for (const std::span<const std::int64_t> &rows : {positives_, members_})
        for (const std::int64_t row : rows) {
            require(row >= 0, "expected rows that are not negative");
            last_row_ = std::max(last_row_, row);
        }
}

template <class Matrix>
Counts Rows::run(const Matrix &X, std::size_t n_rows, std::span<const std::int64_t> order) {
    require(last_row_ < static_cast<std::int64_t>(n_rows), "expected a matrix with all rows that may be drawn");
    for (const std::int64_t p : order)
        require(0 <= p && p < static_cast<std::int64_t>(positives_.size()), "expected an order of the positives");
    return run_all(order.size(), workers_, [&]<class Access>(std::size_t i, Worker &worker, Counts &counts) {
        draw<Access>(X, order[i], worker, counts);
    });
}

void Rows::settle() {
    for (Worker &worker : workers_) pay<Plain>(worker);
}

template <class Access, class Matrix>
void Rows::draw(const Matrix &X, std::int64_t p, Worker &worker, Counts &counts) {
    const View<Access, double> w{parameters_.value};
    RankLoss::Found found;
    if constexpr (Matrix::dense && std::is_same_v<Access, Relaxed>) {
        // Atomic loads come one at a time: a copy made by one pass of them is what dot products can take in pairs.
        worker.copy.resize(parameters_.size);
        for (std::size_t i = 0; i < worker.copy.size(); ++i) worker.copy[i] = w[i];
        found = search(X, p, View<Plain, double>{worker.copy.data()}, worker, counts);
    } else {
        found = search(X, p, w, worker, counts);
    }
    if (found.which >= 0) {
        const auto positive = static_cast<std::size_t>(positives_[p]);
        const auto negative = static_cast<std::size_t>(members_[starts_[p] + found.which]);
        with_rule(pace_.rule, [&]<Rule rule>() {
            each_difference(X, positive, negative, [&](std::size_t column, double difference) {
                const double gradient = found.weight * difference;
                if (gradient != 0.0) parameters_.template descend<rule, Access>(column, gradient, pace_.rate);
            });
        });
    }
    if (pace_.l2 > 0.0 && ++worker.unpaid >= instalment_) pay<Access>(worker);
}

template <class Matrix, class Weights>
RankLoss::Found Rows::search(const Matrix &X, std::int64_t p, Weights w, Worker &worker, Counts &counts) const {
    const std::int64_t *negatives = members_.data() + starts_[p];
    const double positive = X.dot(static_cast<std::size_t>(positives_[p]), w);
    return loss_.find(counts_[p], positive, worker.random, counts,
                      [&](std::int64_t j) { return X.dot(static_cast<std::size_t>(negatives[j]), w); });
}

template <class Access>
void Rows::pay(Worker &worker) {
    const auto draws = static_cast<double>(worker.unpaid);
    worker.unpaid = 0;
    if (draws > 0) with_rule(pace_.rule, [&]<Rule rule>() { parameters_.template shrink<rule, Access>(draws, pace_); });
}

template Counts Rows::run(const Csr<double, std::int32_t> &, std::size_t, std::span<const std::int64_t>);
template Counts Rows::run(const Csr<double, std::int64_t> &, std::size_t, std::span<const std::int64_t>);
template Counts Rows::run(const Csr<float, std::int32_t> &, std::size_t, std::span<const std::int64_t>);
template Counts Rows::run(const Csr<float, std::int64_t> &, std::size_t, std::span<const std::int64_t>);
template Counts Rows::run(const Dense<double> &, std::size_t, std::span<const std::int64_t>);
template Counts Rows::run(const Dense<float> &, std::size_t, std::span<const std::int64_t>);

}  // namespace apsvm::warp
