#include "oracles/ranking_oracle.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "oracles/papers.hpp"
#include "oracles/quicksort.hpp"
#include "support/require.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

std::vector<double> copied(std::span<const double> values) { return {values.begin(), values.end()}; }

}  // namespace

Algorithm algorithm_named(std::string_view name) {
    if (name == "greedy") return Algorithm::greedy;
    if (name == "search") return Algorithm::search;
    if (name == "select") return Algorithm::select;
    if (name == "search-select") return Algorithm::search_select;
    if (name == "qs") return Algorithm::qs;
    if (name == "bucket") return Algorithm::bucket;
    throw std::invalid_argument("unknown algorithm " + std::string(name));
}

LossTables::LossTables(std::size_t n_neg, std::span<const double> weights, std::span<const double> discount)
    : n_pos(static_cast<std::int32_t>(weights.size())),
      n_neg(n_neg),
      scale(2.0 / (static_cast<double>(n_pos) * static_cast<double>(n_neg))),
      weights(copied(weights)),
      discount(copied(discount)),
      rising(std::is_sorted(weights.begin(), weights.end()) && !weights.empty() && weights[0] >= 0.0) {
    constexpr std::size_t most = std::numeric_limits<std::int32_t>::max() / 2;
    require(0 < weights.size() && weights.size() <= most && 0 < n_neg && n_neg <= most,
            "expected at least one positive and one negative, and fewer than 2^30 of each");
    require(discount.size() == rows(), "expected a discount for each position");
}

std::int64_t RankingSolver::rank_negatives(const Problem &problem, const LossView &loss, const Sink &sink,
                                           const double *negatives, double *spare, std::int64_t &violating,
                                           Workspace &workspace, std::size_t threads) const {
    const std::size_t n_neg = loss.n_neg;
    if (algorithm_ == Algorithm::bucket)
        return workspace.bucket.rank(problem, sink, negatives, n_neg, spare, violating, threads);
    if (workspace.items.size() < n_neg) workspace.items.resize(n_neg);
    for (std::size_t i = 0; i < n_neg; ++i) workspace.items[i] = {negatives[i], static_cast<std::int32_t>(i)};
    Scored *const begin = workspace.items.data(), *const end = begin + n_neg;
    switch (algorithm_) {
        case Algorithm::greedy: return rank_in_order(problem, sink, begin, end, RankSearch::linear);
        case Algorithm::search: return rank_in_order(problem, sink, begin, end, RankSearch::binary);
        case Algorithm::select: return rank_selected(problem, sink, begin, end, RankSearch::linear);
        case Algorithm::search_select: return rank_selected(problem, sink, begin, end, RankSearch::binary);
        default: return rank_by_quicksort(problem, sink, 1, begin, end, 1, problem.n_pos + 1);
    }
}

Answer RankingSolver::solve(const LossView &loss, std::int64_t &violating, const double *positives,
                            const double *negatives, double *weights_pos, double *weights_neg, Workspace &workspace,
                            std::size_t threads, std::int32_t *ranks) const {
    const std::int32_t n_pos = loss.n_pos;
    auto &order = workspace.positives;
    auto &sorted = workspace.sorted;
    auto &counts = workspace.counts;
    sort_scores(positives, nullptr, static_cast<std::size_t>(n_pos), order, workspace.sort);
    if (sorted.size() < static_cast<std::size_t>(n_pos)) sorted.resize(n_pos);
    for (std::int32_t k = 0; k < n_pos; ++k) sorted[k] = order[k].score;
    const Problem problem{sorted.data(), n_pos, loss.weights, loss.discount, loss.scale, bisect_,
                          bisect_ && loss.rising};
    counts.assign(n_pos + 2, 0);
    const Sink sink{ranks != nullptr ? ranks : ranks_within(weights_neg, loss.n_neg), counts.data()};
    Answer answer;
    answer.evaluated = rank_negatives(problem, loss, sink, negatives, weights_neg, violating, workspace, threads);
    answer.violating = static_cast<std::int64_t>(loss.n_neg) - counts[n_pos + 1];
    std::int64_t above = 0;
    for (std::int32_t k = 1; k <= n_pos; ++k) {
        above += counts[k];
        weights_pos[order[k - 1].index] = -loss.scale * static_cast<double>(above);
        answer.loss += loss.weights[k - 1] * (loss.discount[k - 1] - loss.discount[k - 1 + above]);
    }
    // Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
    const double top = sorted[0];
    answer.value = answer.loss + dot(weights_pos, positives, top, static_cast<std::size_t>(n_pos)) +
                   weigh_ranks(sink.ranks, negatives, loss.n_neg, n_pos, loss.scale, top, weights_neg, threads);
    return answer;
}

void RankingOracle::add_tasks(std::span<const std::int64_t> first, std::span<const std::int64_t> tables,
                              std::span<const double> coefficients) {
    require(first.size() == tables.size() && first.size() == coefficients.size(),
            "expected a first row, tables and a coefficient for each task");
    for (std::size_t t = 0; t < first.size(); ++t) {
        require(first[t] >= 0, "expected first rows that are not negative");
        const auto which = static_cast<std::size_t>(tables[t]);
        require(which < solver_.tables().size(), "expected tasks of tables that were added");
        batch_.add(static_cast<std::size_t>(first[t]), solver_.tables()[which].rows(), coefficients[t], {which});
    }
}

const LossTables &RankingOracle::tables_of_one() const {
    require(!solver_.tables().empty(), "expected tables for the query");
    return solver_.tables().front();
}

}  // namespace apsvm
