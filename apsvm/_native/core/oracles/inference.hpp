// Loss-augmented inference: what the oracle kernels share. j, k and r count from 1, as in the papers.
//
//   g_j(k) = u_k [D(k+j−1) − D(k+j)] − scale (s⁺_k − s⁻_j),   f_j(r) = Σ_{k=r..P} g_j(k),   f_j(P+1) = 0
//
// The most violated ranking gives the j-th negative the rank argmax_r f_j(r); of equal maxima the largest r is taken.
// Negatives are totally ordered (score descending, then index ascending), so every kernel gives the same ranks except for
// rounding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sorting/sorting.hpp"

namespace apsvm {

// The answer to one query, or the sum of many.
struct Answer {
    double value = 0.0;          // h = loss + weights·scores
    double loss = 0.0;           // Δ
    std::int64_t evaluated = 0;  // argmaxes computed
    std::int64_t violating = 0;  // negatives above some positive; for a measure of labellings, rows labelled wrongly

    void add(const Answer &other, double coefficient) {
        value += coefficient * other.value;
        loss += coefficient * other.loss;
        evaluated += other.evaluated;
        violating += other.violating;
    }
};

// One query, as its negatives see it: the positives and the loss, written out for its sizes.
struct Problem {
    const double *positives;  // descending
    std::int32_t n_pos;
    const double *weights;  // u_k at [k - 1]
    const double *discount;  // D(p) at [p - 1]
    double scale;           // 2 / (n_pos n_neg)
    bool bisect = false;    // g_j is non-decreasing on 1..min(P, j), and best_rank may rely on it
    bool rising = false;    // 0 ≤ u_1 ≤ u_2 ≤ …

    double gain(std::int64_t j, std::int32_t k, double score) const {
        const double *const here = discount + (k + j - 2);
        return weights[k - 1] * (here[0] - here[1]) - scale * (positives[k - 1] - score);
    }

    // The largest maximiser of f_j over [low, high]: by trying them all, or where g_j is known to be non-decreasing, by
    // bisection for the first positive g_j, which leaves only the ranks above j to be tried.
    std::int32_t best_rank(std::int64_t j, double score, std::int32_t low, std::int32_t high) const {
        if (bisect) {
            const auto edge = static_cast<std::int32_t>(std::min<std::int64_t>(j + 1, high));
            if (low < edge) low = first_gain(j, score, low, edge);
            if (edge == high) return low;
        }
        constexpr std::int32_t many = 48;
        if (high - low > many) return rank_of_many(j, score, low, high);
        double value = 0.0, best = 0.0;
        std::int32_t rank = high;
        for (std::int32_t k = high - 1; k >= low; --k) {
            value += gain(j, k, score);
            if (value > best) {
                best = value;
                rank = k;
            }
        }
        return rank;
    }

    // The same, a run of ranks at a time.
    std::int32_t rank_of_many(std::int64_t j, double score, std::int32_t low, std::int32_t high) const;

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
};

// Takes the ranks as they are found, and counts the negatives of each.
struct Sink {
    std::int32_t *ranks;   // of the negatives as given
    std::int64_t *counts;  // at [r]

    void take(const Scored &item, std::int32_t rank) const {
        ranks[item.index] = rank;
        ++counts[rank];
    }
    void take(const Scored *begin, const Scored *end, std::int32_t rank) const {
        for (const Scored *item = begin; item != end; ++item) ranks[item->index] = rank;
        counts[rank] += end - begin;
    }
};

// Σ a · (b − from)
double dot(const double *a, const double *b, double from, std::size_t n);

// Where the ranks of n rows may stand in the memory of their weights: in its second half.
inline std::int32_t *ranks_within(double *weights, std::size_t n) {
    return reinterpret_cast<std::int32_t *>(weights) + n;
}

// The row weights scale (P + 1 − r) of n negatives, and the sum of weight · (score − top). The ranks may be
// ranks_within(weights, n).
double weigh_ranks(const std::int32_t *ranks, const double *scores, std::size_t n, std::int32_t n_pos, double scale,
                   double top, double *weights, std::size_t threads);

}  // namespace apsvm
