#include "oracles/lists.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sorting/count_below.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The memory of one thread.
struct Workspace {
    RankingSolver::Workspace solver;
    std::vector<double> positives, negatives, weights_pos, weights_neg;
    struct Ends {
        double low, high;
    };
    struct Tie {
        double score;
        std::int64_t sum, count;  // of its negatives, of the numbers of positives below them
    };
    std::vector<Ends> ends;  // of the scores of the negatives with k positives below them, at [k]
    std::vector<Tie> ties;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> tied;  // (negative, its tie)
    std::vector<std::int64_t> above;
    CountBelow count_below;
    std::vector<std::int32_t> below;  // positives below each negative

    template <class Score>
    bool split(const Score *scores, const ListRows &rows, std::size_t begin, std::size_t end);
    void share_ties(const LossView &loss);
    void share_ties_of_positives(std::size_t n_pos);
    void share_ties_of_negatives(const LossView &loss);
    void subtract_ranking_by_score(const LossView &loss);
};

// Memory that calls borrow, and give back for the next.
class Pool {
public:
    std::unique_ptr<Workspace> take() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<Workspace>();
        auto workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
    }

    void give_back(std::unique_ptr<Workspace> workspace) {
        constexpr std::size_t most_rows = 1u << 21;  // beyond, the memory matters and the time to ask for it does not
        if (workspace->positives.size() > most_rows) return;
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(workspace));
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Workspace>> idle_;
};

Pool &pool() {
    static Pool memory;
    return memory;
}

// The classes apart, in the order of the rows; false if a score is not finite.
template <class Score>
bool Workspace::split(const Score *scores, const ListRows &rows, std::size_t begin, std::size_t end) {
    // Room for one more of each, so that every row may be written to both.
    const std::size_t room = end - begin + 1;
    if (positives.size() < room) {
        positives.resize(room);
        negatives.resize(room);
    }
    std::size_t n_pos = 0, n_neg = 0;
    double faults = 0.0;  // NaN if a score is not finite
    for (std::size_t i = begin; i < end; ++i) {
        const std::size_t counts = rows.valid == nullptr ? 1 : rows.valid[i];
        const double score = counts ? static_cast<double>(scores[i]) : 0.0;
        faults += score * 0.0;
        positives[n_pos] = score;
        negatives[n_neg] = score;
        n_pos += counts & rows.positive[i];
        n_neg += counts & (rows.positive[i] ^ 1u);
    }
    return faults == 0.0;
}

void Workspace::share_ties_of_positives(std::size_t n_pos) {
    const std::vector<Scored> &order = solver.positives;
    for (std::size_t begin = 0, end; begin < n_pos; begin = end) {
        double sum = weights_pos[order[begin].index];
        for (end = begin + 1; end < n_pos && order[end].score == order[begin].score; ++end)
            sum += weights_pos[order[end].index];
        for (std::size_t k = begin; k < end; ++k)
            weights_pos[order[k].index] = sum / static_cast<double>(end - begin);
    }
}

// Ranks are monotone in the scores: only where the lowest score of one rank is the highest of the next are equal scores
// ranked apart.
void Workspace::share_ties_of_negatives(const LossView &loss) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const std::size_t ranks = static_cast<std::size_t>(loss.n_pos) + 1;
    const double per_scale = 1.0 / loss.scale;
    const auto positives_below = [&](double weight) { return static_cast<std::size_t>(weight * per_scale + 0.5); };
    ends.assign(ranks, {infinity, -infinity});
    for (std::size_t j = 0; j < loss.n_neg; ++j) {
        Ends &of_rank = ends[positives_below(weights_neg[j])];
        of_rank.low = std::min(of_rank.low, negatives[j]);
        of_rank.high = std::max(of_rank.high, negatives[j]);
    }
    // From here on an end that is part of no tie is NaN, which equals no score.
    ties.clear();
    Ends no_rank{kNan, kNan}, *previous = &no_rank;
    double low = kNan;  // of the previous rank, as it was
    for (std::size_t k = ranks; k-- > 0;) {
        if (ends[k].low > ends[k].high) continue;  // no negative has this rank
        const bool is_tie = low == ends[k].high;
        if (is_tie && (ties.empty() || ties.back().score != low)) ties.push_back({low, 0, 0});
        if (!is_tie) previous->low = kNan;
        low = ends[k].low;
        if (!is_tie) ends[k].high = kNan;
        previous = &ends[k];
    }
    if (ties.empty()) return;
    previous->low = kNan;
    tied.clear();
    for (std::size_t j = 0; j < loss.n_neg; ++j) {
        const double score = negatives[j];
        const std::size_t k = positives_below(weights_neg[j]);
        if (score != ends[k].low && score != ends[k].high) continue;
        const auto tie = std::lower_bound(ties.begin(), ties.end(), score,
                                          [](const Tie &other, double value) { return other.score > value; });
        tie->sum += static_cast<std::int64_t>(k);
        ++tie->count;
        tied.emplace_back(static_cast<std::uint32_t>(j), static_cast<std::uint32_t>(tie - ties.begin()));
    }
    for (const auto &[j, tie] : tied)
        weights_neg[j] = loss.scale * (static_cast<double>(ties[tie].sum) / static_cast<double>(ties[tie].count));
}

void Workspace::share_ties(const LossView &loss) {
    share_ties_of_positives(static_cast<std::size_t>(loss.n_pos));
    share_ties_of_negatives(loss);
}

// c − c⁰: c⁰ of a negative is scale · the positives below it, of a positive −scale · the negatives above it.
void Workspace::subtract_ranking_by_score(const LossView &loss) {
    const auto n_pos = static_cast<std::size_t>(loss.n_pos);
    count_below.fit(solver.sorted.data(), n_pos);
    above.assign(n_pos + 1, 0);  // negatives with k positives below them, at [k]
    if (below.size() < loss.n_neg) below.resize(loss.n_neg);
    count_below(negatives.data(), loss.n_neg, below.data());
    for (std::size_t j = 0; j < loss.n_neg; ++j) {
        weights_neg[j] -= loss.scale * static_cast<double>(below[j]);
        ++above[static_cast<std::size_t>(below[j])];
    }
    // The k-th positive from below has above it the negatives with k and more below them.
    for (std::size_t k = n_pos; k-- > 0;) above[k] += above[k + 1];
    for (std::size_t k = 0; k < n_pos; ++k)
        weights_pos[solver.positives[n_pos - 1 - k].index] += loss.scale * static_cast<double>(above[k + 1]);
}

template <class Score>
void solve_list(const RankingSolver &solver, ListForm form, std::size_t list, const Score *scores, const ListRows &rows,
                const ListLosses &losses, const ListAnswers<Score> &answers, Workspace &work,
                std::size_t threads) {
    const std::size_t begin = list * rows.n, end = begin + rows.n;
    const auto [n_pos, n_neg] = count_classes(rows, list);
    const bool finite = work.split(scores, rows, begin, end);
    const auto counts = [&](std::size_t i) { return rows.valid == nullptr || rows.valid[i]; };
    answers.counts[list] = n_pos > 0 && n_neg > 0;
    if (!finite || !answers.counts[list]) {
        const double value = finite ? 0.0 : kNan;
        answers.values[list] = value;
        for (std::size_t i = begin; i < end; ++i)
            answers.row_weights[i] = static_cast<Score>(counts(i) ? value : 0.0);
        return;
    }
    const double scale = 2.0 / (static_cast<double>(n_pos) * static_cast<double>(n_neg));
    if (work.weights_pos.size() < static_cast<std::size_t>(n_pos)) work.weights_pos.resize(n_pos);
    if (work.weights_neg.size() < static_cast<std::size_t>(n_neg)) work.weights_neg.resize(n_neg);
    const LossView loss{static_cast<std::int32_t>(n_pos),
                        static_cast<std::size_t>(n_neg),
                        scale,
                        losses.weights + losses.weights_begin[list],
                        losses.discount + losses.discount_begin[list]};
    std::int64_t violating = -1;
    const Answer answer = solver.solve(loss, violating, work.positives.data(), work.negatives.data(),
                                       work.weights_pos.data(), work.weights_neg.data(), work.solver, threads);
    work.share_ties(loss);
    double value = answer.value;
    if (form == ListForm::ramp) {
        work.subtract_ranking_by_score(loss);
        const double top = work.solver.sorted[0];
        value = answer.loss + dot(work.weights_pos.data(), work.positives.data(), top, n_pos) +
                dot(work.weights_neg.data(), work.negatives.data(), top, n_neg);
    }
    answers.values[list] = value;
    const double *of_pos = work.weights_pos.data(), *of_neg = work.weights_neg.data();
    for (std::size_t i = begin; i < end; ++i) {
        double weight = 0.0;
        if (counts(i)) weight = rows.positive[i] ? *of_pos++ : *of_neg++;
        answers.row_weights[i] = static_cast<Score>(weight);
    }
}

}  // namespace

ClassSizes count_classes(const ListRows &rows, std::size_t list) {
    const std::size_t begin = list * rows.n, end = begin + rows.n;
    std::int64_t positives = 0, counted = 0;
    if (rows.valid == nullptr) {
        for (std::size_t i = begin; i < end; ++i) positives += rows.positive[i];
        counted = static_cast<std::int64_t>(rows.n);
    } else {
        for (std::size_t i = begin; i < end; ++i) {
            positives += rows.positive[i] & rows.valid[i];
            counted += rows.valid[i];
        }
    }
    return {positives, counted - positives};
}

template <class Score>
void solve_lists(Algorithm algorithm, bool unimodal, ListForm form, const Score *scores, const ListRows &rows,
                 const ListLosses &losses, const ListAnswers<Score> &answers, std::size_t threads) {
    constexpr std::size_t rows_per_thread = 1u << 13;  // below, a thread costs more than it saves
    const RankingSolver solver(algorithm, unimodal);
    // A single list has all threads to itself.
    const std::size_t workers =
        rows.n_lists == 1 ? 1 : std::clamp<std::size_t>(rows.n_lists * rows.n / rows_per_thread, 1, threads);
    std::vector<std::unique_ptr<Workspace>> workspaces(workers);
    for (auto &workspace : workspaces) workspace = pool().take();
    in_runs(rows.n_lists, workers, [&](std::size_t list, std::size_t t) {
        solve_list(solver, form, list, scores, rows, losses, answers, *workspaces[t], workers == 1 ? threads : 1);
    });
    for (auto &workspace : workspaces) pool().give_back(std::move(workspace));
}

template void solve_lists(Algorithm, bool, ListForm, const float *, const ListRows &, const ListLosses &,
                          const ListAnswers<float> &, std::size_t);
template void solve_lists(Algorithm, bool, ListForm, const double *, const ListRows &, const ListLosses &,
                          const ListAnswers<double> &, std::size_t);

}  // namespace apsvm
