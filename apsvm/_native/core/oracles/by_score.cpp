#include "oracles/by_score.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "support/require.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kBlock = 1u << 17;  // as weigh_ranks adds up
constexpr std::size_t kSome = 2048;       // positives

// What becomes of n row weights that were found for the rows from `at` on.
struct Write {
    double *weights;
    void operator()(std::size_t at, const double *found, std::size_t n) const { std::copy_n(found, n, weights + at); }
};

struct Subtract {
    double *weights, coefficient;
    void operator()(std::size_t at, const double *found, std::size_t n) const {
        for (std::size_t i = 0; i < n; ++i) weights[at + i] -= coefficient * found[i];
    }
};

// The negatives' part of g, measured from the score `top`. `put` takes their weights; workspace.blocks[0].counts become
// how many of them have k positives below them.
template <class Put>
double weigh_negatives(const ByScoreSolver::Task &task, const double *scores, double scale, double top, const Put &put,
                       ByScoreSolver::Workspace &workspace, std::size_t threads) {
    const auto n_pos = static_cast<std::size_t>(task.n_pos);
    workspace.sums.assign((task.n_neg + kBlock - 1) / kBlock, 0.0);
    threads = std::min(threads, workspace.sums.size());
    if (workspace.blocks.size() < threads) workspace.blocks.resize(threads);
    in_threads(threads, threads, [&](std::size_t t) {
        auto &[counts, weights] = workspace.blocks[t];
        counts.assign(n_pos + 1, 0);
        weights.resize(std::max(weights.size(), std::min(kBlock, task.n_neg)));
        for (std::size_t b = t; b < workspace.sums.size(); b += threads) {
            const std::size_t begin = b * kBlock, n = std::min(kBlock, task.n_neg - begin);
            std::int32_t *const ranks = ranks_within(weights.data(), n);
            workspace.count_below(scores + begin, n, ranks);
            for (std::size_t i = 0; i < n; ++i) {
                ++counts[static_cast<std::size_t>(ranks[i])];
                ranks[i] = task.n_pos + 1 - ranks[i];
            }
            workspace.sums[b] = weigh_ranks(ranks, scores + begin, n, task.n_pos, scale, top, weights.data(), 1);
            put(n_pos + begin, weights.data(), n);
        }
    });
    std::vector<std::int64_t> &counts = workspace.blocks[0].counts;
    for (std::size_t t = 1; t < threads; ++t)
        for (std::size_t k = 0; k <= n_pos; ++k) counts[k] += workspace.blocks[t].counts[k];
    return std::accumulate(workspace.sums.begin(), workspace.sums.end(), 0.0);
}

template <class Put>
Answer weigh(const ByScoreSolver::Task &task, const double *scores, const Put &put,
             ByScoreSolver::Workspace &workspace, std::size_t threads) {
    const auto n_pos = static_cast<std::size_t>(task.n_pos);
    const double *const positives = scores, *const negatives = scores + n_pos;
    const double scale = 2.0 / (static_cast<double>(task.n_pos) * static_cast<double>(task.n_neg));
    workspace.count_below.fit(positives, n_pos);
    const double top = workspace.count_below.largest();
    const double of_negatives = weigh_negatives(task, negatives, scale, top, put, workspace, threads);
    // Above a positive are the negatives that have more positives below them than it has itself.
    std::vector<std::int64_t> &counts = workspace.blocks[0].counts;
    const std::int64_t below_all = counts[0];
    std::int64_t above = 0;
    for (std::size_t k = n_pos + 1; k-- > 0;) above += std::exchange(counts[k], above);
    workspace.weights_pos.resize(n_pos);
    std::int32_t below[kSome];
    for (std::size_t at = 0; at < n_pos; at += kSome) {
        const std::size_t n = std::min(kSome, n_pos - at);
        workspace.count_below(positives + at, n, below);
        for (std::size_t i = 0; i < n; ++i)
            workspace.weights_pos[at + i] = -scale * static_cast<double>(counts[static_cast<std::size_t>(below[i])]);
    }
    Answer answer;
    answer.value = dot(workspace.weights_pos.data(), positives, top, n_pos) + of_negatives;
    answer.violating = static_cast<std::int64_t>(task.n_neg) - below_all;
    put(0, workspace.weights_pos.data(), n_pos);
    return answer;
}

}  // namespace

Answer ByScoreSolver::solve(const Task &task, const double *scores, double *weights, Workspace &workspace,
                            std::size_t threads) const {
    return weigh(task, scores, Write{weights}, workspace, threads);
}

Answer ByScoreSolver::subtract(const Task &task, double coefficient, const double *scores, double *weights,
                               Workspace &workspace, std::size_t threads) const {
    return weigh(task, scores, Subtract{weights, coefficient}, workspace, threads);
}

void RankingByScore::add_tasks(std::span<const std::int64_t> first, std::span<const std::int64_t> n_pos,
                               std::span<const std::int64_t> n_neg, std::span<const double> coefficients) {
    require(first.size() == n_pos.size() && first.size() == n_neg.size() && first.size() == coefficients.size(),
            "expected a first row, the sizes of both classes and a coefficient for each task");
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
    for (std::size_t t = 0; t < first.size(); ++t) {
        require(first[t] >= 0, "expected first rows that are not negative");
        require(0 < n_pos[t] && n_pos[t] <= most && 0 < n_neg[t] && n_neg[t] <= most,
                "expected at least one positive and one negative, and fewer than 2^30 of each");
        const auto sizes = static_cast<std::size_t>(n_pos[t] + n_neg[t]);
        batch_.add(static_cast<std::size_t>(first[t]), sizes, coefficients[t],
                   {static_cast<std::int32_t>(n_pos[t]), static_cast<std::size_t>(n_neg[t])});
    }
}

}  // namespace apsvm
