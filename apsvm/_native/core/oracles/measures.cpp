// The most violated rankings of the measures outside the two-array family.
//
// As in inference.hpp: positives and negatives in descending order, r_j the interleaving ranks,
//     h = max_R Δ(R) + scale Σ_j Σ_{k≥r_j} (s⁻_j − s⁺_k),   scale = 2/(PN)
// The sum alone is largest for the order of the scores, r⁰_j = 1 + #{k : s⁺_k ≥ s⁻_j}; what another order loses against
// that one is a sum of terms ≥ 0 over the pairs it treats differently, |s⁺_k − s⁻_j| each.
#include "oracles/measures.hpp"

#include <limits>
#include <utility>

#include "oracles/measure_parts.hpp"
#include "oracles/quicksort.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

// Who stands before whom in the order of the scores, positives first where they are equal: of all positives and of the
// first n_top negatives.
void merge(const MeasureQuery &query, std::int32_t n_top, MeasureWorkspace &work) {
    work.not_below.resize(n_top);
    work.beaten_by.resize(query.n_pos);
    std::int32_t i = 0, j = 0;
    while (i < query.n_pos || j < n_top) {
        if (j == n_top || (i < query.n_pos && work.positives[i].score >= work.negatives[j].score))
            work.beaten_by[i++] = j;
        else
            work.not_below[j++] = i;
    }
}

double scale_of(const MeasureQuery &query) {
    return 2.0 / (static_cast<double>(query.n_pos) * static_cast<double>(query.n_neg));
}

// A sink for the ranks of a query's negatives, with nothing counted.
Sink empty_sink(const MeasureQuery &query, MeasureWorkspace &work) {
    work.ranks.resize(query.n_neg);
    work.counts.assign(query.n_pos + 2, 0);
    return {work.ranks.data(), work.counts.data()};
}

// Sorts the positives, and the negatives as far as a cutoff at `depth` looks: to the first `depth`, or all where these
// are not few. Returns how many of the negatives are in order.
std::int32_t sort_to(const MeasureQuery &query, std::int64_t depth, MeasureWorkspace &work) {
    sort_positives(query, work);
    const auto n_top = static_cast<std::int32_t>(std::min<std::int64_t>(depth, query.n_neg));
    return sort_top(query.negatives, query.n_neg, n_top, work.negatives, work.sort) ? query.n_neg : n_top;
}

// The ranks of the negatives in the order of the scores, 1 + #{k : s⁺_k ≥ s⁻_j}. `n_sorted`: negatives in order, of which merge() has said where they stand.
Sink rank_by_score(const MeasureQuery &query, std::int32_t n_sorted, MeasureWorkspace &work) {
    const Sink sink = empty_sink(query, work);
    if (n_sorted == query.n_neg) {
        for (std::int32_t j = 0; j < query.n_neg; ++j) sink.take(work.negatives[j], 1 + work.not_below[j]);
        return sink;
    }
    // The most violated ranking where no ranking loses anything.
    work.zeros.resize(static_cast<std::size_t>(query.n_pos) + static_cast<std::size_t>(query.n_neg), 0.0);
    const Problem problem{work.scores_pos.data(), query.n_pos, work.zeros.data(), work.zeros.data(), 1.0, true};
    const auto n_neg = static_cast<std::size_t>(query.n_neg);
    if (work.n_ranked != n_neg) work.violating = -1;
    work.n_ranked = n_neg;
    work.bucket.rank(problem, sink, query.negatives, n_neg, query.weights_neg, work.violating, query.threads);
    return sink;
}

// Of the first `most` positives: how many negatives beat them, and the sum of these scores less `origin` each, from
// the ranks by score.
void sum_by_rank(const MeasureQuery &query, std::int32_t most, double origin, MeasureWorkspace &work) {
    constexpr std::int32_t lanes = 4;  // neighbours of one rank need not wait for one another
    work.sums_beating.assign(static_cast<std::size_t>(most + 2) * lanes, 0.0);
    double *const sums = work.sums_beating.data();
    const std::int32_t *const ranks = work.ranks.data();
    const double *const negatives = query.negatives;
    for (std::int32_t j = 0, n = query.n_neg; j < n; ++j)
        sums[std::min(ranks[j], most + 1) * lanes + j % lanes] += negatives[j] - origin;
    double sum = 0.0;
    std::int64_t count = 0;
    for (std::int32_t i = 1; i <= most; ++i) {
        for (std::int32_t lane = 0; lane < lanes; ++lane) sum += work.sums_beating[i * lanes + lane];
        count += work.counts[i];
        work.beaten_by[i - 1] = static_cast<std::int32_t>(count);
        work.sums_beating[i - 1] = sum;
    }
}

// What is kept behind a reference would be read anew for every rank that is written.
APSVM_CLONES void keep_from(std::int32_t *ranks, std::int32_t n, std::int32_t least) {
    for (std::int32_t j = 0; j < n; ++j) ranks[j] = std::max(ranks[j], least);
}

// No rank above a + 1.
void lower_ranks(const Sink &sink, std::int32_t a, std::int32_t n_neg) {
    for (std::int32_t rank = 1; rank <= a; ++rank) sink.counts[a + 1] += std::exchange(sink.counts[rank], 0);
    keep_from(sink.ranks, n_neg, a + 1);
}

// Takes the ranks of items back, so that others can be taken.
void take_back(const Sink &sink, const Scored *items, std::int32_t n) {
    for (std::int32_t j = 0; j < n; ++j) --sink.counts[sink.ranks[items[j].index]];
}

// The row weights, Δ and h of the ranks taken by `sink`; lost(k, p): what the k-th positive at the position
// p adds to Δ.
template <class Lost>
Answer answer_of_ranks(const MeasureQuery &query, const Sink &sink, double scale, std::int64_t evaluated,
                       const MeasureWorkspace &work, const Lost &lost) {
    double loss = 0.0, margin = 0.0;
    // Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
    const double top = work.scores_pos[0];
    std::int64_t above = 0;
    for (std::int32_t k = 1; k <= query.n_pos; ++k) {
        above += sink.counts[k];
        const double weight = -scale * static_cast<double>(above);
        query.weights_pos[work.positives[k - 1].index] = weight;
        margin += weight * (work.scores_pos[k - 1] - top);
        loss += lost(k, k + above);
    }
    margin += weigh_ranks(sink.ranks, query.negatives, static_cast<std::size_t>(query.n_neg), query.n_pos, scale, top,
                          query.weights_neg, query.threads);
    return {loss + margin, loss, evaluated, query.n_neg - sink.counts[query.n_pos + 1]};
}

}  // namespace

// The first drop, the one that breaks convexity, belongs to j = k = 1 alone. Where r_1 ≥ 2 all ranks are (they are
// monotone), and no gain at k = 1 counts; where r_1 = 1 the other negatives have only drops from the second on: both
// restricted problems are of the family. The better of the two is taken.
Answer ndcg_first_two(const MeasureQuery &query, const double *discount, MeasureWorkspace &work) {
    sort_positives(query, work);
    sort_scores(query.negatives, nullptr, query.n_neg, work.negatives, work.sort);
    const double scale = scale_of(query), unit = 1.0 / sum(discount, query.n_pos);
    const auto lost = [&](std::int64_t k, std::int64_t p) { return unit * (discount[k - 1] - discount[p - 1]); };
    work.weights.assign(query.n_pos, unit);
    const Problem problem{work.scores_pos.data(), query.n_pos, work.weights.data(), discount, scale};
    Scored *const begin = work.negatives.data(), *const end = begin + query.n_neg;

    Sink sink = empty_sink(query, work);
    sink.take(*begin, 1);
    std::int64_t evaluated = rank_by_quicksort(problem, sink, 2, begin + 1, end, 1, query.n_pos + 1, true);
    const Answer first = answer_of_ranks(query, sink, scale, evaluated, work, lost);
    work.other_ranks = work.ranks;

    sink = empty_sink(query, work);
    evaluated += rank_by_quicksort(problem, sink, 1, begin, end, 2, query.n_pos + 1, true);
    const Answer second = answer_of_ranks(query, sink, scale, evaluated, work, lost);
    if (second.value >= first.value) return second;

    work.counts.assign(query.n_pos + 2, 0);
    work.ranks.swap(work.other_ranks);
    for (const std::int32_t rank : work.ranks) ++work.counts[rank];
    sink = {work.ranks.data(), work.counts.data()};
    return answer_of_ranks(query, sink, scale, evaluated, work, lost);
}

// Let a positives and b negatives, a + b = k, stand in the first k places. A path over such (a, b) lays them out place
// by place: a positive gains D, a negative put before a positive of higher score (or the other way) loses their
// difference; what follows the k-th place is in the order of the scores. The best path's value is a recurrence; its end
// (a, b) known, the order of its first k is a problem of the family again, on a positives and b negatives.
Answer ndcg_at(const MeasureQuery &query, double k, const double *discount, MeasureWorkspace &work) {
    const double scale = scale_of(query);
    const std::int64_t depth = cutoff(query, k);
    const std::int32_t n_sorted = sort_to(query, depth, work);
    merge(query, n_sorted, work);
    const Sink sink = rank_by_score(query, n_sorted, work);
    const double unit = 1.0 / sum(discount, std::min<std::int64_t>(query.n_pos, depth));
    const auto least = static_cast<std::int32_t>(std::max<std::int64_t>(0, depth - query.n_neg));
    const auto most = static_cast<std::int32_t>(std::min<std::int64_t>(depth, query.n_pos));
    std::int32_t a_best = most;
    std::int64_t evaluated = 0;
    if (least < most) {
        const double origin = work.scores_pos[0];
        sum_scores(work.positives.data(), query.n_pos, origin, work.sums_pos);
        sum_scores(work.negatives.data(), n_sorted, origin, work.sums_neg);
        if (n_sorted < query.n_neg) sum_by_rank(query, most, origin, work);
        const auto swapped_neg = [&](std::int32_t a, std::int32_t j) {  // the j-th negative before positives a+1, …
            const std::int32_t last = work.not_below[j - 1];
            if (last <= a) return 0.0;
            return work.sums_pos[last] - work.sums_pos[a] - (last - a) * (work.negatives[j - 1].score - origin);
        };
        const auto swapped_pos = [&](std::int32_t i, std::int32_t b) {  // the i-th positive before negatives b+1, …
            const std::int32_t last = work.beaten_by[i - 1];
            if (last <= b) return 0.0;
            const double sum = n_sorted < query.n_neg ? work.sums_beating[i - 1] : work.sums_neg[last];
            return sum - work.sums_neg[b] - (last - b) * (work.positives[i - 1].score - origin);
        };
        const auto widest = static_cast<std::int32_t>(std::min<std::int64_t>(depth, query.n_neg));
        std::vector<double> &best = work.best;  // at [b], of the paths to (a, b)
        best.assign(widest + 1, 0.0);
        double highest = -std::numeric_limits<double>::infinity();
        for (std::int32_t a = 0; a <= most; ++a) {
            const auto end = static_cast<std::int32_t>(std::min<std::int64_t>(depth - a, query.n_neg));
            for (std::int32_t b = 0; b <= end; ++b) {
                const double by_negative = b > 0 ? best[b - 1] - scale * swapped_neg(a, b)
                                                 : (a > 0 ? -std::numeric_limits<double>::infinity() : 0.0);
                const double by_positive =
                    a > 0 ? best[b] - unit * discount[a + b - 1] - scale * swapped_pos(a, b) : by_negative;
                best[b] = std::max(by_negative, by_positive);
            }
            evaluated += end + 1;
            if (a >= least && best[end] >= highest) {
                highest = best[end];
                a_best = a;
            }
        }
    }
    const auto b_best = static_cast<std::int32_t>(depth - a_best);
    work.weights.assign(query.n_pos, unit);
    const Problem problem{work.scores_pos.data(), query.n_pos, work.weights.data(), discount, scale};
    Scored *const begin = work.negatives.data();
    lower_ranks(sink, a_best, query.n_neg);
    take_back(sink, begin, b_best);
    evaluated += rank_by_quicksort(problem, sink, 1, begin, begin + b_best, 1, a_best + 1, true);
    return answer_of_ranks(query, sink, scale, evaluated, work, [&](std::int64_t i, std::int64_t p) {
        return unit * ((i <= depth ? discount[i - 1] : 0.0) - (p <= depth ? discount[p - 1] : 0.0));
    });
}

// The order of the scores has the most positives in the first k that can pay: more lose both Δ and margins. From there,
// the lowest positive inside and the highest negative outside change places, one pair after another: Δ gains 1/k, and
// the positives left out lose their differences against the negatives let in.
Answer precision_at(const MeasureQuery &query, double k, MeasureWorkspace &work) {
    const std::int64_t depth = cutoff(query, k);
    const std::int32_t n_sorted = sort_to(query, depth, work);
    merge(query, n_sorted, work);
    const double scale = scale_of(query), origin = work.scores_pos[0];
    sum_scores(work.positives.data(), query.n_pos, origin, work.sums_pos);
    sum_scores(work.negatives.data(), n_sorted, origin, work.sums_neg);
    std::int32_t a = 0;  // positives in the first `depth` by score
    while (a < query.n_pos && a + 1 + static_cast<std::int64_t>(work.beaten_by[a]) <= depth) ++a;
    auto b = static_cast<std::int32_t>(depth - a);

    const std::int32_t most = std::min(a, query.n_neg - b);
    double lost = 0.0, best = 0.0;
    std::int32_t fewer = 0;
    for (std::int32_t m = 1; m <= most; ++m) {
        // The positive a − m + 1 below the negatives up to b + m − 1, the negative b + m above the positives from
        // there.
        const std::int32_t out = a - m, in = b + m - 1;
        const std::int32_t above = work.beaten_by[out], below = work.not_below[in];
        if (above < in)
            lost += (in - above) * (work.positives[out].score - origin) - (work.sums_neg[in] - work.sums_neg[above]);
        lost += work.sums_pos[below] - work.sums_pos[out] - (below - out) * (work.negatives[in].score - origin);
        const double value = static_cast<double>(m) / k - scale * lost;
        if (value > best) {
            best = value;
            fewer = m;
        }
    }
    a -= fewer;
    b += fewer;
    const Sink sink = rank_by_score(query, n_sorted, work);
    lower_ranks(sink, a, query.n_neg);
    take_back(sink, work.negatives.data(), b);
    for (std::int32_t j = 0; j < b; ++j) sink.take(work.negatives[j], 1 + std::min(work.not_below[j], a));
    return answer_of_ranks(query, sink, scale, most + 1, work, [&](std::int64_t i, std::int64_t p) {
        return (static_cast<double>(i <= depth) - static_cast<double>(p <= depth)) / k;
    });
}

}  // namespace apsvm
