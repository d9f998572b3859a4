// The most violated labellings of the measures outside the two-array family.
//
// Ψ = (1/2n) Σ_i y_i x_i (Joachims 2005), so that a row labelled wrongly adds −y_i s_i / n.
#include <algorithm>
#include <cmath>
#include <utility>

#include "oracles/binned_ranks.hpp"
#include "sorting/bins.hpp"
#include "oracles/measure_parts.hpp"
#include "oracles/measures.hpp"
#include "sorting/sampling.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::int32_t kFew = 20'000;  // negatives that are sorted whole
constexpr std::size_t kSample = 4096;

// Σ weights · scores.
APSVM_CLONES double dot(const double *weights, const double *scores, std::size_t n) {
    double sum[4] = {0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; ++lane) sum[lane] += weights[i + lane] * scores[i + lane];
    for (; i < n; ++i) sum[0] += weights[i] * scores[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// What a row labelled wrongly adds to the margins, by its score.
double share_of(const MeasureQuery &query) {
    return 1.0 / (static_cast<double>(query.n_pos) + static_cast<double>(query.n_neg));
}

// The row weights of negatives by the names of their bins: `weight` above the bin `cut`, else 0.
APSVM_CLONES void weigh_bins(const std::uint16_t *names, std::size_t n, std::int32_t cut, double weight, double *out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = names[i] > cut ? weight : 0.0;
}

// The row weights, Δ and h of the labelling in which the a highest positives and some b negatives, whose row weights
// are written already, are positive.
Answer answer_of_labels(const MeasureQuery &query, std::int32_t a, std::int32_t b, double loss, std::int64_t evaluated,
                        const MeasureWorkspace &work) {
    std::fill(query.weights_pos, query.weights_pos + query.n_pos, -share_of(query));
    for (std::int32_t i = 0; i < a; ++i) query.weights_pos[work.positives[i].index] = 0.0;
    const double margin = dot(query.weights_pos, query.positives, static_cast<std::size_t>(query.n_pos)) +
                          dot(query.weights_neg, query.negatives, static_cast<std::size_t>(query.n_neg));
    return {loss + margin, loss, evaluated, query.n_pos - a + b};
}

// The same for the b highest negatives, which are in order.
Answer answer_of_top_labels(const MeasureQuery &query, std::int32_t a, std::int32_t b, double loss,
                            std::int64_t evaluated, const MeasureWorkspace &work) {
    std::fill(query.weights_neg, query.weights_neg + query.n_neg, 0.0);
    for (std::int32_t j = 0; j < b; ++j) query.weights_neg[work.negatives[j].index] = share_of(query);
    return answer_of_labels(query, a, b, loss, evaluated, work);
}

// The scores of the negatives, summed bin by bin, highest first. Filled bin t holds the negatives at begins[t] … of the
// order, and sums[t] is the sum of the scores before it.
struct FilledBins {
    std::vector<std::uint16_t> names;
    std::vector<std::int64_t> begins;
    std::vector<double> sums, lower, upper;  // edges

    std::size_t size() const { return names.size(); }
};

FilledBins fill_bins(const MeasureQuery &query, std::vector<std::uint16_t> &names) {
    const auto n = static_cast<std::size_t>(query.n_neg);
    std::vector<double> sample(kSample);
    for (std::size_t i = 0; i < kSample; ++i) sample[i] = query.negatives[sampled_place(i, kSample, n)];
    const Bins bins = make_bins(sample_spread(sample), sample, n, 1);
    names.resize(n);
    std::vector<std::int64_t> counts(count_of(bins), 0);
    std::vector<double> sums(count_of(bins), 0.0);
    count_scores(bins, query.negatives, n, names.data(), counts.data());
    for (std::size_t i = 0; i < n; ++i) sums[names[i]] += query.negatives[i];
    FilledBins filled;
    std::int64_t begin = 0;
    double sum = 0.0;
    std::visit(
        [&](const auto &edges) {
            for (std::size_t name = counts.size(); name-- > 0;) {
                if (counts[name] == 0) continue;
                filled.names.push_back(static_cast<std::uint16_t>(name));
                filled.begins.push_back(begin);
                filled.sums.push_back(sum);
                filled.lower.push_back(edges.lower_edge(name));
                filled.upper.push_back(edges.upper_edge(name));
                begin += counts[name];
                sum += sums[name];
            }
        },
        bins);
    filled.begins.push_back(begin);
    filled.sums.push_back(sum);
    return filled;
}

// The rows of the bins from … to, and their scores.
void gather_bins(const MeasureQuery &query, std::int32_t from, std::int32_t to, MeasureWorkspace &work) {
    constexpr std::int32_t block = 1024;
    work.rows.clear();
    work.open.clear();
    std::int32_t rows[block];
    for (std::int32_t at = 0; at < query.n_neg; at += block) {
        const std::int32_t stop = std::min(at + block, query.n_neg);
        std::size_t n = 0;
        for (std::int32_t j = at; j < stop; ++j) {
            rows[n] = j;
            n += from <= work.names[j] && work.names[j] <= to;
        }
        for (std::size_t i = 0; i < n; ++i) {
            work.rows.push_back(rows[i]);
            work.open.push_back(query.negatives[rows[i]]);
        }
    }
}

// F_β's part of the search for the best labelling. The value of a true positives and b false ones,
//     Δ(a, b) + share (Σ_{j ≤ b} s⁻_j − Σ_{i > a} s⁺_i),  Δ = 1 − (1+β²) a / (a + b + β²P),
// is concave in b: its last rise, found by bisection, ends at the best b.
struct FSearch {
    double square, n_pos, share;         // β², P
    const std::vector<double> &sums_pos;  // of the first i positives

    // Δ, nothing cancelled.
    double loss(std::int32_t a, std::int64_t b) const {
        return (static_cast<double>(b) + square * (n_pos - a)) / (a + static_cast<double>(b) + square * n_pos);
    }
    // What the negative after the first b adds, by its score.
    double rise(std::int32_t a, std::int64_t b, double score) const {
        const double below = a + static_cast<double>(b) + square * n_pos;
        return (1.0 + square) * a / (below * (below + 1.0)) + share * score;
    }
    double value(std::int32_t a, std::int64_t b, double sum_neg) const {
        return loss(a, b) + share * (sum_neg - (sums_pos.back() - sums_pos[a]));
    }

    // The first i in [0, n) with !rises(i), or n.
    template <class Rises>
    static std::size_t first_fall(std::size_t n, const Rises &rises) {
        std::size_t low = 0;
        while (low < n) {
            const std::size_t middle = low + (n - low) / 2;
            if (rises(middle))
                low = middle + 1;
            else
                n = middle;
        }
        return low;
    }

    // The filled bins [first, last) that hold the end of the best number for some a that can be the best one.
    std::pair<std::size_t, std::size_t> range(const FilledBins &bins) const {
        const auto n = static_cast<std::int32_t>(n_pos);
        struct Bound {
            std::size_t first, last;
            double above;
        };
        std::vector<Bound> bounds;
        double best = 0.0;
        for (std::int32_t a = n; a >= 0; --a) {
            // All of a bin count where its last would at its lower edge, none where its first would not at the upper.
            const std::size_t first = first_fall(
                bins.size(), [&](std::size_t t) { return rise(a, bins.begins[t + 1] - 1, bins.lower[t]) > 0.0; });
            std::size_t last = first;
            while (last < bins.size() && rise(a, bins.begins[last], bins.upper[last]) > 0.0) ++last;
            const double low = value(a, bins.begins[first], bins.sums[first]);
            double above = low;
            if (first < last)
                above += static_cast<double>(bins.begins[last] - bins.begins[first]) *
                         std::max(0.0, rise(a, bins.begins[first], bins.upper[first]));
            best = std::max({best, low, value(a, bins.begins[last], bins.sums[last])});
            bounds.push_back({first, last, above});
        }
        const double slack = 1e-12 * (1.0 + std::abs(best) + share * (std::abs(bins.sums.back()) +
                                                                      std::abs(sums_pos.back())));
        std::size_t first = bins.size(), last = 0;
        for (const Bound &bound : bounds)
            if (bound.above >= best - slack) {
                first = std::min(first, bound.first);
                last = std::max(last, bound.last);
            }
        return {std::min(first, last), last};
    }
};

}  // namespace

Answer f_measure(const MeasureQuery &query, double beta, MeasureWorkspace &work) {
    sort_positives(query, work);
    sum_scores(work.positives.data(), query.n_pos, 0.0, work.sums_pos);
    const FSearch search{beta * beta, static_cast<double>(query.n_pos), share_of(query), work.sums_pos};
    // Of the order of the negatives, [begin, end) are looked at: all of them, or where they are many only those of the
    // bins that can hold the answer, of which `cut` is the highest.
    const bool binned = query.n_neg >= kFew;
    std::int64_t begin = 0, end = query.n_neg;
    std::int32_t cut = 0;
    double sum_before = 0.0;
    if (binned) {
        const FilledBins bins = fill_bins(query, work.names);
        const auto [first, last] = search.range(bins);
        begin = bins.begins[first];
        end = bins.begins[last];
        sum_before = bins.sums[first];
        cut = first < bins.size() ? bins.names[first] : -1;
        gather_bins(query, first < last ? bins.names[last - 1] : cut + 1, cut, work);
        sort_scores(work.open.data(), nullptr, work.open.size(), work.negatives, work.sort);
    } else {
        sort_scores(query.negatives, nullptr, query.n_neg, work.negatives, work.sort);
    }
    const Scored *const items = work.negatives.data();
    const auto n_open = static_cast<std::size_t>(end - begin);
    sum_scores(items, static_cast<std::int32_t>(n_open), 0.0, work.sums_neg);
    std::int32_t a_best = query.n_pos;
    std::int64_t b_best = 0;
    double best = 0.0;
    for (std::int32_t a = query.n_pos; a >= 0; --a) {
        const std::size_t more = FSearch::first_fall(n_open, [&](std::size_t i) {
            return search.rise(a, begin + static_cast<std::int64_t>(i), items[i].score) > 0.0;
        });
        const std::int64_t b = begin + static_cast<std::int64_t>(more);
        const double value = search.value(a, b, sum_before + work.sums_neg[more]);
        if (value > best) {
            best = value;
            a_best = a;
            b_best = b;
        }
    }
    const double loss = search.loss(a_best, b_best);
    const auto evaluated = static_cast<std::int64_t>(query.n_pos) + 1;
    const auto b_label = static_cast<std::int32_t>(b_best);
    if (!binned) return answer_of_top_labels(query, a_best, b_label, loss, evaluated, work);
    if (best <= 0.0) {
        std::fill(query.weights_neg, query.weights_neg + query.n_neg, 0.0);
    } else {
        weigh_bins(work.names.data(), static_cast<std::size_t>(query.n_neg), cut, search.share, query.weights_neg);
        for (std::int64_t i = 0; i < b_best - begin; ++i) query.weights_neg[work.rows[items[i].index]] = search.share;
    }
    return answer_of_labels(query, a_best, b_label, loss, evaluated, work);
}

// k fixes b = k − a, so only the k highest of each class need an order. The true labelling, Δ = 0, is always among the
// candidates.
Answer labelled_at(const MeasureQuery &query, double k, double unit, MeasureWorkspace &work) {
    const std::int64_t depth = cutoff(query, k);
    const auto top_pos = static_cast<std::int32_t>(std::min<std::int64_t>(depth, query.n_pos));
    const auto top_neg = static_cast<std::int32_t>(std::min<std::int64_t>(depth, query.n_neg));
    sort_top(query.positives, query.n_pos, top_pos, work.positives, work.sort);
    sort_top(query.negatives, query.n_neg, top_neg, work.negatives, work.sort);
    sum_scores(work.positives.data(), top_pos, 0.0, work.sums_pos);
    sum_scores(work.negatives.data(), top_neg, 0.0, work.sums_neg);
    const double share = share_of(query), all_pos = sum(query.positives, query.n_pos);
    const auto most = static_cast<std::int32_t>(std::min<std::int64_t>(depth, query.n_pos));
    const auto least = static_cast<std::int32_t>(std::max<std::int64_t>(0, depth - query.n_neg));
    std::int32_t a_best = query.n_pos, b_best = 0;
    double best = 0.0;
    for (std::int32_t a = most; a >= least; --a) {
        const auto b = static_cast<std::int32_t>(depth - a);
        const double value = static_cast<double>(most - a) / unit +
                             share * (work.sums_neg[b] - (all_pos - work.sums_pos[a]));
        if (value > best) {
            best = value;
            a_best = a;
            b_best = b;
        }
    }
    // Where nothing is better than the true labelling, b = 0 and a = P, which may be more than are in order.
    if (best <= 0.0) sort_positives(query, work);
    const double loss = best > 0.0 ? static_cast<double>(most - a_best) / unit : 0.0;
    return answer_of_top_labels(query, a_best, b_best, loss, most - least + 1, work);
}

}  // namespace apsvm
