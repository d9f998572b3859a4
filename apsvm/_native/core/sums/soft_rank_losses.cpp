#include "sums/soft_rank_losses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sorting/sorting.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

// The rows of a list in descending order, and what is added up over them. Of two sums that are kept together the first is
// over all rows, the second over the positives.
struct Workspace {
    struct Two {
        double all, positives;
    };
    std::vector<double> scores;
    std::vector<std::int32_t> where;  // row of the list
    std::vector<Scored> items;
    SortWorkspace sorting;
    std::vector<double> decay;        // e^{(s_{i+1} − s_i)/τ}, from each row to the next
    std::vector<std::uint8_t> positive;
    std::vector<Two> above, around;   // Σ_{j above i} e^{−|s_j − s_i|/τ}; Σ_{j ≠ i}
    std::vector<Two> flow, back;      // dL/drank of each row; Σ_{j ≠ i} of it e^{−|s_j − s_i|/τ}
};

// sums[i] = Σ_{j < i} v_j Π decay between them, and what stands behind i added by `add`.
template <class Value, class Add>
void decaying(std::size_t n, const std::vector<double> &decay, std::vector<Workspace::Two> &sums, Value value, Add add) {
    Workspace::Two sum{0.0, 0.0};
    for (std::size_t i = 0; i < n; ++i) {
        if (i > 0) {
            const Workspace::Two last = value(i - 1);
            sum = {decay[i - 1] * (sum.all + last.all), decay[i - 1] * (sum.positives + last.positives)};
        }
        sums[i] = sum;
    }
    sum = {0.0, 0.0};
    for (std::size_t i = n; i-- > 0;) {
        if (i + 1 < n) {
            const Workspace::Two last = value(i + 1);
            sum = {decay[i] * (sum.all + last.all), decay[i] * (sum.positives + last.positives)};
        }
        add(i, sum);
    }
}

// The loss of a list in `work`, of n rows and P positives, and in work.flow its slope by each rank.
double by_ranks(const SoftRankLoss &loss, std::size_t n, double n_pos, Workspace &work) {
    double gained = 0.0, positives = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        work.flow[i] = {0.0, 0.0};
        if (!work.positive[i]) continue;
        const Workspace::Two &above = work.above[i], &around = work.around[i];
        // i − A/2 + B/2 = i − A + (A + B)/2, rows counted from 1.
        const double rank = std::max(0.5, static_cast<double>(i + 1) - above.all + 0.5 * around.all);
        positives += 1.0;
        if (loss.places.empty()) {
            const double among = std::max(0.5, positives - above.positives + 0.5 * around.positives);
            gained += among / rank / n_pos;
            work.flow[i] = {among / (rank * rank) / n_pos, -1.0 / rank / n_pos};
            continue;
        }
        const auto mean = static_cast<double>(loss.places.size());
        for (const double place : loss.places) {
            const double share = 1.0 / (1.0 + std::exp((rank - place - 0.5) / loss.tau_rank));
            const double weight = 1.0 / std::min(place, n_pos) / mean;
            gained += weight * share;
            work.flow[i].all += weight * share * (1.0 - share) / loss.tau_rank;
        }
    }
    return 1.0 - gained;
}

template <class Score>
void of_list(const SoftRankLoss &loss, std::size_t list, const Score *scores, const ListRows &rows,
             const ListAnswers<Score> &answers, Workspace &work) {
    auto [values, counted, slopes] = answers;
    const std::size_t begin = list * rows.n, end = begin + rows.n, room = rows.n;
    const auto [n_pos, n_neg] = count_classes(rows, list);
    for (auto *numbers : {&work.scores, &work.decay})
        if (numbers->size() < room) numbers->resize(room);
    for (auto *sums : {&work.above, &work.around, &work.flow, &work.back})
        if (sums->size() < room) sums->resize(room);
    if (work.where.size() < room) work.where.resize(room);
    if (work.positive.size() < room) work.positive.resize(room);
    std::size_t n = 0;
    double faults = 0.0;  // NaN if a score is not finite
    for (std::size_t i = begin; i < end; ++i) {
        slopes[i] = 0;
        if (rows.valid != nullptr && !rows.valid[i]) continue;
        work.scores[n] = static_cast<double>(scores[i]);
        faults += work.scores[n] * 0.0;
        work.where[n++] = static_cast<std::int32_t>(i - begin);
    }
    values[list] = 0.0;
    counted[list] = n_pos > 0 && n_neg > 0;
    if (faults != 0.0) {
        values[list] = std::numeric_limits<double>::quiet_NaN();
        for (std::size_t i = 0; i < n; ++i) slopes[begin + work.where[i]] = static_cast<Score>(values[list]);
        return;
    }
    if (!counted[list]) return;
    const auto count = static_cast<double>(n);
    double tau = loss.tau, mean = 0.0, variance = 0.0;
    if (loss.relative) {
        for (std::size_t i = 0; i < n; ++i) mean += work.scores[i];
        mean /= count;
        for (std::size_t i = 0; i < n; ++i) variance += (work.scores[i] - mean) * (work.scores[i] - mean);
        variance /= count;
        if (variance > 0.0) tau *= std::sqrt(variance);
    }
    sort_scores(work.scores.data(), work.where.data(), n, work.items, work.sorting);
    for (std::size_t i = 0; i < n; ++i) {
        work.positive[i] = rows.positive[begin + work.items[i].index];
        if (i + 1 < n) work.decay[i] = std::exp((work.items[i + 1].score - work.items[i].score) / tau);
    }
    const auto one = [&](std::size_t i) { return Workspace::Two{1.0, work.positive[i] ? 1.0 : 0.0}; };
    decaying(n, work.decay, work.above, one, [&](std::size_t i, const Workspace::Two &below) {
        work.around[i] = {work.above[i].all + below.all, work.above[i].positives + below.positives};
    });
    values[list] = by_ranks(loss, n, static_cast<double>(n_pos), work);
    const auto flow = [&](std::size_t i) { return work.flow[i]; };
    double along = 0.0;  // how the loss rises with the scores' distance from their mean
    decaying(n, work.decay, work.back, flow, [&](std::size_t i, const Workspace::Two &below) {
        double slope = work.back[i].all + below.all;
        if (work.positive[i])
            slope += work.back[i].positives + below.positives - work.flow[i].all * work.around[i].all -
                     work.flow[i].positives * work.around[i].positives;
        work.scores[i] = 0.5 * slope / tau;
        along += work.scores[i] * (work.items[i].score - mean);
    });
    const double back = variance > 0.0 ? along / (count * variance) : 0.0;
    for (std::size_t i = 0; i < n; ++i)
        slopes[begin + work.items[i].index] = static_cast<Score>(work.scores[i] - back * (work.items[i].score - mean));
}

}  // namespace

template <class Score>
void soft_rank_losses(const SoftRankLoss &loss, const Score *scores, const ListRows &rows,
                      const ListAnswers<Score> &answers, std::size_t threads) {
    constexpr std::size_t rows_per_thread = 1u << 13;  // below, a thread costs more than it saves
    const std::size_t workers = std::clamp<std::size_t>(rows.n_lists * rows.n / rows_per_thread, 1, threads);
    thread_local Workspace own;  // kept from call to call, unless it is large
    std::vector<Workspace> others(workers - 1);
    in_runs(rows.n_lists, workers, [&, mine = &own](std::size_t list, std::size_t t) {
        of_list(loss, list, scores, rows, answers, t == 0 ? *mine : others[t - 1]);
    });
    if (own.scores.size() > (1u << 16)) own = {};
}

template void soft_rank_losses(const SoftRankLoss &, const float *, const ListRows &, const ListAnswers<float> &,
                               std::size_t);
template void soft_rank_losses(const SoftRankLoss &, const double *, const ListRows &, const ListAnswers<double> &,
                               std::size_t);

}  // namespace apsvm
