// Loss-augmented inference: what the oracle kernels share. j, k and r count from 1, as in the papers.
//
//   g_j(k) = u_k [D(k+j−1) − D(k+j)] − scale (s⁺_k − s⁻_j),   f_j(r) = Σ_{k=r..P} g_j(k),   f_j(P+1) = 0
//
// The most violated ranking gives the j-th negative the rank argmax_r f_j(r); of equal maxima the largest r is taken.
// Negatives are totally ordered (score descending, then index ascending), so every kernel gives the same ranks but for
// rounding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace apsvm {

struct Scored {
    double score;
    std::int32_t index;
    bool operator<(const Scored &other) const {  // "stands before"
        return score > other.score || (score == other.score && index < other.index);
    }
};

// Puts scores[0, n) in order into items[0, n); index[i] (i where there is no index) ascends with i. `spare` and `keys`
// are room to work in.
struct SortWorkspace {
    std::vector<Scored> spare;
    std::vector<std::uint64_t> keys;  // two arrays of n
};
void sort_scores(const double *scores, const std::int32_t *index, std::size_t n, std::vector<Scored> &items,
                 SortWorkspace &workspace);

// What is found of one query. value: h = loss + weights·scores. evaluated: argmaxes computed. violating: negatives above
// some positive; for a measure of labellings, rows labelled wrongly.
struct Answer {
    double value = 0.0, loss = 0.0;
    std::int64_t evaluated = 0, violating = 0;

    void add(const Answer &other, double coefficient) {
        value += coefficient * other.value;
        loss += coefficient * other.loss;
        evaluated += other.evaluated;
        violating += other.violating;
    }
};

// The sum of the tasks [begin, end) of the same rows, by their coefficients: solve(task, own) writes a task's row weights
// to own[0, rows); c becomes their sum. `spare` is room to work in.
template <class Task, class Solve>
Answer add_up(Task *begin, Task *end, std::size_t rows, double *c, std::vector<double> &spare, Solve solve) {
    Answer total;
    for (Task *task = begin; task != end; ++task) {
        const bool first = task == begin;
        if (!first && spare.size() < rows) spare.resize(rows);
        double *const own = first ? c : spare.data();
        total.add(solve(*task, own), task->coefficient);
        if (!first)
            for (std::size_t i = 0; i < rows; ++i) c[i] += task->coefficient * own[i];
        else if (task->coefficient != 1.0)
            for (std::size_t i = 0; i < rows; ++i) c[i] *= task->coefficient;
    }
    return total;
}

struct Task {
    const double *positives;  // descending
    std::int32_t n_pos;
    const double *weights;  // u_k at [k - 1]
    const double *drops;    // D(p) − D(p+1) at [p - 1]
    double scale;           // 2 / (n_pos n_neg)
    bool bisect = false;    // g_j is non-decreasing on 1..min(P, j), and best_rank may rely on it

    double gain(std::int64_t j, std::int32_t k, double score) const {
        return weights[k - 1] * drops[k + j - 2] - scale * (positives[k - 1] - score);
    }

    // The largest maximiser of f_j over [low, high]: by trying them all, or where g_j is known to be non-decreasing, by
    // bisection for the first positive g_j, which leaves only the ranks above j to be tried.
    std::int32_t best_rank(std::int64_t j, double score, std::int32_t low, std::int32_t high) const {
        if (bisect) {
            const auto edge = static_cast<std::int32_t>(std::min<std::int64_t>(j + 1, high));
            if (low < edge) low = first_gain(j, score, low, edge);
            if (edge == high) return low;
        }
        const double *drop = drops + (j - 1);
        double value = 0.0, best = 0.0;
        std::int32_t rank = high;
        for (std::int32_t k = high - 1; k >= low; --k) {
            value += weights[k - 1] * drop[k - 1] - scale * (positives[k - 1] - score);
            if (value > best) {
                best = value;
                rank = k;
            }
        }
        return rank;
    }

    // The first k in [low, high) with g_j(k) > 0, or high, where g_j is non-decreasing.
    std::int32_t first_gain(std::int64_t j, double score, std::int32_t low, std::int32_t high) const {
        while (low < high) {
            const std::int32_t middle = low + (high - low) / 2;
            if (gain(j, middle, score) > 0.0)
                high = middle;
            else
                low = middle + 1;
        }
        return low;
    }

    // The largest maximiser over 1..P+1 where g_j is non-decreasing on 1..min(P, j): bisection there, and the ranks
    // above j one by one (AP-SVM-SEARCH, Algorithm 2).
    std::int32_t searched_rank(std::int64_t j, double score) const;
};

// Takes the ranks as they are found: writes the negatives' row weights and counts the negatives of each rank.
struct Sink {
    double *weights;               // of the negatives as given: scale (P + 1 − r)
    const double *weight_of_rank;  // at [r]
    std::int64_t *counts;          // at [r]

    void take(const Scored &item, std::int32_t rank) const {
        weights[item.index] = weight_of_rank[rank];
        ++counts[rank];
    }
    void take(const Scored *begin, const Scored *end, std::int32_t rank) const {
        for (const Scored *item = begin; item != end; ++item) weights[item->index] = weight_of_rank[rank];
        counts[rank] += end - begin;
    }
};

// The quicksort-flavoured oracle, Algorithm 1 of Mohapatra, Rolínek et al. 2018: OptRanks on [begin, end), whose first
// item has position j and whose ranks are known to lie in [low, high]. `sorted`: the items are in order already.
// Returns how many ranks were evaluated.
std::int64_t rank_by_quicksort(const Task &task, const Sink &sink, std::int64_t j, Scored *begin, Scored *end,
                               std::int32_t low, std::int32_t high, bool sorted = false);

struct Bin {
    std::int64_t first;  // position of its first negative
    std::int64_t count;
    std::uint32_t name;
    std::int32_t low, high;  // bounds on its ranks; equal: solved
};

// Memory for binning, kept from call to call.
struct BinsWorkspace {
    std::vector<std::uint16_t> names;   // of each score's bin
    std::vector<std::int64_t> counts;   // chunk by chunk, of each bin
    std::vector<double> weights;        // of each bin's negatives, or −1: open
    std::vector<Bin> filled;            // in descending order of score
};

// Ranks of sorted items[0, n) where each g_j is non-decreasing on 1..min(P, j): ranks grow with j, so from j = P on one
// walk down the positives finds them all.
std::int64_t rank_by_walking(const Task &task, const Sink &sink, Scored *items, std::size_t n);

// Memory of the search against the loss, kept from call to call.
struct AgainstLossWorkspace {
    std::vector<std::size_t> ends;    // of each positive: the most negatives above it
    std::vector<std::size_t> starts;  // of each positive, in is_best
    std::vector<double> sums;         // of the first n scores, at [n]
    std::vector<double> best;         // max_{m ≤ n} M_k(m) at [n]
    std::vector<bool> is_best;        // whether M_k(n) is that maximum
};

// The ranking that maximises F − Δ, of items[0, n_neg) in order (against_loss.cpp); of equal maxima, the one with the
// most negatives on top. Returns how many sums were compared.
std::int64_t rank_against_loss(const Task &task, const double *discount, const Sink &sink, const Scored *items,
                               std::size_t n_neg, AgainstLossWorkspace &work);

// The bucket oracle (bucket.cpp) and its memory. `violating`: the negatives with r ≤ P in this query's last call, or −1;
// becomes that of this call.
class Bucket {
public:
    std::int64_t rank(const Task &task, const Sink &sink, const double *scores, std::size_t n_neg,
                      std::int64_t &violating, std::size_t threads);

private:
    bool few_violated() const;  // in the last call
    bool rank_survivors(const Task &task, const Sink &sink, const double *scores);
    void rank_all(const Task &task, const Sink &sink, const double *scores, const std::int32_t *index, std::size_t n);
    void rank_whole(const Task &task, const Sink &sink, const double *scores, const std::int32_t *index, std::size_t n);
    void sample(const double *scores, std::size_t n);
    double of_sample(std::size_t place);

    std::size_t n_neg_ = 0;
    std::size_t threads_ = 1;
    std::int64_t evaluated_ = 0;
    std::int64_t violating_ = -1;  // in the last call
    std::vector<double> sample_;
    BinsWorkspace bins_;
    std::vector<Scored> items_;
    SortWorkspace sort_;
    std::vector<double> survivor_scores_;
    std::vector<std::int32_t> survivors_;
};

}  // namespace apsvm
