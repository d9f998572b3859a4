#include "warp/rows.hpp"

#include <algorithm>
#include <type_traits>

#include "rows/dense_rows.hpp"
#include "rows/matrices.hpp"
#include "support/require.hpp"
#include "warp/steps.hpp"

namespace apsvm::warp {

namespace {

constexpr std::size_t kAtOnce = 128;  // parameters

// body(i) for the i below n; so little is done for each that counting them costs as much.
template <class Body>
void each_of(std::size_t n, Body body) {
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (std::size_t k = 0; k < 4; ++k) body(i + k);
    for (; i < n; ++i) body(i);
}

// Rows scored at once: a sparse row has enough to do by itself.
template <class Matrix>
constexpr std::size_t kScoredAtOnce = Matrix::dense ? 4 : 1;

template <class Value, class Index, class Weights>
void scores(const Csr<Value, Index> &X, const std::size_t *rows, std::size_t n, Weights w, double *out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = X.dot(rows[i], w);
}

template <class Value>
void scores(const Dense<Value> &X, const std::size_t *rows, std::size_t n, View<Plain, double> w, double *out) {
    dots(X, rows, n, w.at, out, 1, false);
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
    for (Worker &worker : workers_) worker.ahead.start(worker.random);
    return run_all(order.size(), workers_, [&]<class Access>(std::size_t i, Worker &worker, Counts &counts) {
        if (i + 4 < order.size()) __builtin_prefetch(&positives_[order[i + 4]]);
        if (i + 3 < order.size()) prefetch_place(X, static_cast<std::size_t>(positives_[order[i + 3]]));
        if (i + 2 < order.size()) prefetch_row(X, static_cast<std::size_t>(positives_[order[i + 2]]));
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
    if (found.which >= 0)
        move<Access>(X, static_cast<std::size_t>(positives_[p]),
                     static_cast<std::size_t>(members_[starts_[p] + found.which]), found.weight, worker);
    if (pace_.l2 > 0.0 && ++worker.unpaid >= instalment_) pay<Access>(worker);
}

template <class Matrix, class Weights>
RankLoss::Found Rows::search(const Matrix &X, std::int64_t p, Weights w, Worker &worker, Counts &counts) const {
    constexpr std::size_t at_once = kScoredAtOnce<Matrix>;
    const std::int64_t *negatives = members_.data() + starts_[p], n = counts_[p];
    const auto row = static_cast<std::size_t>(positives_[p]);
    double positive;
    scores(X, &row, 1, w, &positive);
    return loss_.find<at_once>(
        n, positive, worker.random, counts,
        [&](const std::int64_t *which, std::size_t k, double *out) {
            std::size_t rows[at_once];
            for (std::size_t i = 0; i < k; ++i) rows[i] = static_cast<std::size_t>(negatives[which[i]]);
            scores(X, rows, k, w, out);
        },
        [&](std::int64_t trials) {
            for (std::int64_t i = 0; i < trials; ++i) worker.ahead.next(X, negatives, n);
        });
}

template <class Access, class Matrix>
void Rows::move(const Matrix &X, std::size_t positive, std::size_t negative, double weight, Worker &worker) {
    if constexpr (Matrix::dense) {
        worker.difference.resize(X.n_columns);
        difference(X, positive, negative, worker.difference.data());
        if constexpr (std::is_same_v<Access, Plain>)
            descend(pace_.rule, parameters_, worker.difference.data(), weight, pace_.rate);
        else
            move_some<Access>([](std::size_t i) { return i; }, worker.difference, weight);
    } else {
        worker.sparse_difference.find(X, positive, negative);
        const std::size_t *const columns = worker.sparse_difference.columns();
        move_some<Access>([columns](std::size_t i) { return columns[i]; }, worker.sparse_difference.values(), weight);
    }
}

template <class Access, class Column>
void Rows::move_some(Column column, std::span<const double> differences, double weight) {
    double value[kAtOnce], squares[kAtOnce], steps[kAtOnce];
    const bool has_squares = pace_.rule != Rule::sgd, has_steps = pace_.rule == Rule::adadelta;
    for (std::size_t begin = 0; begin < differences.size(); begin += kAtOnce) {
        const std::size_t n = std::min(kAtOnce, differences.size() - begin);
        const auto collect = [&](const double *from, double *to) {
            each_of(n, [&](std::size_t i) { to[i] = Access::load(from[column(begin + i)]); });
        };
        const auto spread = [&](const double *from, double *to) {
            each_of(n, [&](std::size_t i) { Access::store(to[column(begin + i)], from[i]); });
        };
        collect(parameters_.value, value);
        if (has_squares) collect(parameters_.squares, squares);
        if (has_steps) collect(parameters_.steps, steps);
        descend(pace_.rule, {value, squares, steps, n}, differences.data() + begin, weight, pace_.rate);
        spread(value, parameters_.value);
        if (has_squares) spread(squares, parameters_.squares);
        if (has_steps) spread(steps, parameters_.steps);
    }
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
