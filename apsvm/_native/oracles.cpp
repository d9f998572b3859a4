// Exact loss-augmented inference for every loss Δ = Σ_k u_k [D(k) − D(k + n_k)] with D convex and non-increasing.
//
//   g_j(k) = u_k [D(k+j−1) − D(k+j)] − scale (s⁺_k − s⁻_j),   f_j(r) = Σ_{k=r..P} g_j(k),   f_j(P+1) = 0
//
// and the most violated ranking gives the j-th negative the rank argmax_r f_j(r); of equal maxima the largest r is taken.
// Negatives are totally ordered (score descending, then index ascending), so every kernel here returns the same ranks
// but for rounding. j, k and r count from 1, as in the papers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "module.hpp"

namespace {

using namespace apsvm;

struct Scored {
    double score;
    std::int32_t index;
    bool operator<(const Scored &other) const {  // "stands before"
        return score > other.score || (score == other.score && index < other.index);
    }
};

struct Task {
    const double *positives;  // descending
    std::int32_t n_pos;
    const double *weights;  // u_k at [k - 1]
    const double *drops;    // D(p) − D(p+1) at [p - 1]
    double scale;           // 2 / (n_pos n_neg)

    double gain(std::int64_t j, std::int32_t k, double score) const {
        return weights[k - 1] * drops[k + j - 2] - scale * (positives[k - 1] - score);
    }

    // The largest maximiser of f_j over [low, high], by trying them all.
    std::int32_t best_rank(std::int64_t j, double score, std::int32_t low, std::int32_t high) const {
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

    // The same where g_j is non-decreasing on 1..min(P, j) (a loss that declares itself unimodal): a binary search for
    // the first positive g_j there, and the ranks above j one by one (AP-SVM-SEARCH, Algorithm 2).
    std::int32_t searched_rank(std::int64_t j, double score) const {
        const auto edge = static_cast<std::int32_t>(std::min<std::int64_t>(n_pos, j));
        std::int32_t first = 1, last = edge + 1;
        while (first < last) {
            const std::int32_t middle = first + (last - first) / 2;
            if (gain(j, middle, score) > 0.0)
                last = middle;
            else
                first = middle + 1;
        }
        if (edge == n_pos) return first;
        double value = 0.0, best = 0.0;
        std::int32_t rank = n_pos + 1;
        for (std::int32_t k = n_pos; k > edge; --k) {
            value += gain(j, k, score);
            if (value > best) {
                best = value;
                rank = k;
            }
        }
        for (std::int32_t k = edge; k >= first; --k) value += gain(j, k, score);
        return first <= edge && value > best ? first : rank;
    }
};

struct Found {
    std::vector<std::int32_t> ranks;   // of the negatives as given
    std::int64_t ranks_evaluated = 0;  // negatives for which an argmax was computed
};

std::vector<Scored> scored(const double *scores, std::size_t n) {
    std::vector<Scored> items(n);
    for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], static_cast<std::int32_t>(i)};
    return items;
}

using RankOf = std::function<std::int32_t(std::int64_t j, double score)>;

// Yue et al. 2007, Algorithm 1; with searched_rank, AP-SVM-SEARCH.
void rank_in_order(Scored *begin, Scored *end, const RankOf &rank_of, Found &found) {
    std::sort(begin, end);
    for (Scored *item = begin; item != end; ++item)
        found.ranks[item->index] = rank_of(item - begin + 1, item->score);
    found.ranks_evaluated += end - begin;
}

// AP-SVM-SELECT, Algorithm 3: by quickselect, the first negative in order that lies below every positive; then only
// those before it are sorted and solved.
void rank_selected(std::vector<Scored> &items, std::int32_t n_pos, const RankOf &rank_of, Found &found) {
    Scored *const begin = items.data();
    Scored *low = begin, *high = begin + items.size();  // the boundary lies in [low, high]
    while (low < high) {
        Scored *middle = low + (high - low) / 2;
        std::nth_element(low, middle, high);
        ++found.ranks_evaluated;
        if (rank_of(middle - begin + 1, middle->score) == n_pos + 1)
            high = middle;
        else
            low = middle + 1;
    }
    for (Scored *item = low; item != begin + items.size(); ++item) found.ranks[item->index] = n_pos + 1;
    rank_in_order(begin, low, rank_of, found);
}

// The quicksort-flavoured oracle, Algorithm 1 of Mohapatra, Rolínek et al. 2018: OptRanks on [begin, end), whose ranks
// are known to lie in [low, high]. `first` is the start of all negatives.
void rank_by_quicksort(const Task &task, Scored *first, Scored *begin, Scored *end, std::int32_t low,
                       std::int32_t high, Found &found) {
    while (begin < end) {
        if (low == high) {
            for (Scored *item = begin; item != end; ++item) found.ranks[item->index] = low;
            return;
        }
        Scored *middle = begin + (end - begin) / 2;
        std::nth_element(begin, middle, end);
        const std::int32_t rank = task.best_rank(middle - first + 1, middle->score, low, high);
        found.ranks[middle->index] = rank;
        ++found.ranks_evaluated;
        rank_by_quicksort(task, first, begin, middle, low, rank, found);
        begin = middle + 1;
        low = rank;
    }
}

Found solve(const std::string &algorithm, const Task &task, const double *negatives, std::size_t n_neg) {
    Found found;
    found.ranks.resize(n_neg);
    std::vector<Scored> items = scored(negatives, n_neg);
    Scored *const begin = items.data(), *const end = begin + n_neg;
    const RankOf linear = [&](std::int64_t j, double score) { return task.best_rank(j, score, 1, task.n_pos + 1); };
    const RankOf binary = [&](std::int64_t j, double score) { return task.searched_rank(j, score); };
    if (algorithm == "greedy")
        rank_in_order(begin, end, linear, found);
    else if (algorithm == "search")
        rank_in_order(begin, end, binary, found);
    else if (algorithm == "select")
        rank_selected(items, task.n_pos, linear, found);
    else if (algorithm == "search-select")
        rank_selected(items, task.n_pos, binary, found);
    else if (algorithm == "qs")
        rank_by_quicksort(task, begin, begin, end, 1, task.n_pos + 1, found);
    else
        throw std::invalid_argument("unknown algorithm " + algorithm);
    return found;
}

// Positions of the scores in descending order, equal ones by position.
std::vector<std::int64_t> descending(const double *scores, std::size_t n) {
    std::vector<Scored> items = scored(scores, n);
    std::sort(items.begin(), items.end());
    std::vector<std::int64_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = items[i].index;
    return order;
}

}  // namespace

void bind_oracles(nb::module_ &m) {
    m.def("descending_order", [](In<double> scores) {
        std::vector<std::int64_t> order;
        {
            nb::gil_scoped_release unlocked;
            order = descending(scores.data(), scores.size());
        }
        return to_numpy(std::move(order));
    });

    m.def("interleaving_ranks", [](const std::string &algorithm, In<double> positives, In<double> negatives,
                                   In<double> weights, In<double> drops) {
        Found found;
        {
            nb::gil_scoped_release unlocked;
            const double pairs = static_cast<double>(positives.size()) * static_cast<double>(negatives.size());
            const Task task{positives.data(), static_cast<std::int32_t>(positives.size()), weights.data(),
                            drops.data(), 2.0 / pairs};
            found = solve(algorithm, task, negatives.data(), negatives.size());
        }
        return nb::make_tuple(to_numpy(std::move(found.ranks)), found.ranks_evaluated);
    });

    // n_k and the signed row weights of a ranking given by its interleaving ranks; `order` sorts the positives.
    m.def("row_weights", [](In<std::int32_t> ranks, In<std::int64_t> order, Out<double> weights_pos,
                            Out<double> weights_neg) {
        const auto n_pos = static_cast<std::int64_t>(order.size());
        std::vector<std::int64_t> above(n_pos + 2, 0);
        {
            nb::gil_scoped_release unlocked;
            const double scale = 2.0 / (static_cast<double>(n_pos) * static_cast<double>(ranks.size()));
            for (std::size_t j = 0; j < ranks.size(); ++j) {
                const std::int32_t rank = ranks.data()[j];
                ++above[rank];
                weights_neg.data()[j] = scale * static_cast<double>(n_pos + 1 - rank);
            }
            for (std::int64_t k = 1; k <= n_pos; ++k) {
                above[k] += above[k - 1];
                weights_pos.data()[order.data()[k - 1]] = -scale * static_cast<double>(above[k]);
            }
            above.erase(above.begin());
            above.pop_back();
        }
        return to_numpy(std::move(above));
    });
}
