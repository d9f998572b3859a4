// The exact oracles of the papers, and what turns interleaving ranks into the answer of an oracle: row weights, Δ, h.
#include "inference.hpp"
#include "threads.hpp"

#include <bit>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "module.hpp"

namespace apsvm {

void sort_scored(std::vector<Scored> &items, std::size_t n, std::vector<Scored> &spare) {
    constexpr std::size_t few = 200;
    constexpr int digit_bits = 11, digits = 3;
    constexpr std::size_t radix = 1u << digit_bits;
    const auto begin = items.begin(), end = begin + static_cast<std::ptrdiff_t>(n);
    if (n < few) {
        std::sort(begin, end);
        return;
    }
    // A key that ascends as the score descends; adding zero makes −0 the same as 0.
    const auto key = [](const Scored &item) {
        const auto bits = std::bit_cast<std::uint64_t>(item.score + 0.0);
        return bits >> 63 ? bits : ~bits & ~(std::uint64_t{1} << 63);
    };
    std::uint32_t counts[digits][radix] = {};
    const auto digit = [&](const Scored &item, int d) {
        return (key(item) >> (64 - digit_bits * (digits - d))) & (radix - 1);
    };
    for (auto item = begin; item != end; ++item)
        for (int d = 0; d < digits; ++d) ++counts[d][digit(*item, d)];
    if (spare.size() < items.size()) spare.resize(items.size());
    for (int d = 0; d < digits; ++d) {
        std::uint32_t place = 0;
        for (std::uint32_t &count : counts[d]) place += std::exchange(count, place);
        for (std::size_t i = 0; i < n; ++i) spare[counts[d][digit(items[i], d)]++] = items[i];
        items.swap(spare);
    }
    auto moves = static_cast<std::int64_t>(8 * n);
    for (std::size_t k = 1; k < n; ++k) {
        const Scored item = items[k];
        std::size_t at = k;
        for (; at > 0 && item < items[at - 1]; --at, --moves) items[at] = items[at - 1];
        items[at] = item;
        if (moves < 0) {
            std::sort(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(n));
            return;
        }
    }
}

std::int32_t Task::searched_rank(std::int64_t j, double score) const {
    const auto edge = static_cast<std::int32_t>(std::min<std::int64_t>(n_pos, j));
    const std::int32_t first = first_gain(j, score, 1, edge + 1);
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

// So few are sorted faster than they are halved.
constexpr std::ptrdiff_t kSortedWhole = 32;

std::int64_t rank_by_quicksort(const Task &task, const Sink &sink, std::int64_t j, Scored *begin, Scored *end,
                               std::int32_t low, std::int32_t high, bool sorted) {
    std::int64_t evaluated = 0;
    while (begin < end) {
        if (low == high) {
            sink.take(begin, end, low);
            return evaluated;
        }
        if (!sorted && end - begin <= kSortedWhole) {
            std::sort(begin, end);
            sorted = true;
        }
        Scored *middle = begin + (end - begin) / 2;
        if (!sorted) std::nth_element(begin, middle, end);
        const std::int32_t rank = task.best_rank(j + (middle - begin), middle->score, low, high);
        sink.take(*middle, rank);
        evaluated += 1 + rank_by_quicksort(task, sink, j, begin, middle, low, rank, sorted);
        j += middle + 1 - begin;
        begin = middle + 1;
        low = rank;
    }
    return evaluated;
}

}  // namespace apsvm

namespace {

using namespace apsvm;

using RankOf = std::function<std::int32_t(std::int64_t j, double score)>;

// Yue et al. 2007, Algorithm 1; with searched_rank, AP-SVM-SEARCH.
std::int64_t rank_in_order(const Sink &sink, Scored *begin, Scored *end, const RankOf &rank_of) {
    std::sort(begin, end);
    for (Scored *item = begin; item != end; ++item) sink.take(*item, rank_of(item - begin + 1, item->score));
    return end - begin;
}

// AP-SVM-SELECT, Algorithm 3: by quickselect, the first negative in order that lies below every positive; then only
// those before it are sorted and solved.
std::int64_t rank_selected(const Sink &sink, Scored *begin, Scored *end, std::int32_t n_pos, const RankOf &rank_of) {
    std::int64_t evaluated = 0;
    Scored *low = begin, *high = end;  // the boundary lies in [low, high]
    while (low < high) {
        Scored *middle = low + (high - low) / 2;
        std::nth_element(low, middle, high);
        ++evaluated;
        if (rank_of(middle - begin + 1, middle->score) == n_pos + 1)
            high = middle;
        else
            low = middle + 1;
    }
    sink.take(low, end, n_pos + 1);
    return evaluated + rank_in_order(sink, begin, low, rank_of);
}

// Σ a (b − from), in blocks whose number depends on n alone: the sum does not depend on the number of threads.
double dot(const double *a, const double *b, double from, std::size_t n, std::size_t threads) {
    constexpr std::size_t block = 1u << 17;
    std::vector<double> sums((n + block - 1) / block);
    in_threads(sums.size(), threads, [&](std::size_t t) {
        const std::size_t end = std::min(n, (t + 1) * block);
        double sum[4] = {0, 0, 0, 0};
        std::size_t i = t * block;
        for (; i + 4 <= end; i += 4)
            for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * (b[i + lane] - from);
        for (; i < end; ++i) sum[0] += a[i] * (b[i] - from);
        sums[t] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// One oracle made ready for one query's sizes: tables, workspaces, and what helps the next call.
class RankingOracle {
public:
    RankingOracle(std::string algorithm, std::size_t n_neg, In<double> weights, In<double> discount, In<double> drops,
                  bool unimodal, std::size_t threads)
        : algorithm_(std::move(algorithm)), bisect_(unimodal && algorithm_ == "bucket"), n_pos_(static_cast<std::int32_t>(weights.size())), n_neg_(n_neg), threads_(threads),
          weights_(weights.data(), weights.data() + weights.size()),
          discount_(discount.data(), discount.data() + discount.size()),
          drops_(drops.data(), drops.data() + drops.size()), bucket_(n_neg, threads) {
        scale_ = 2.0 / (static_cast<double>(n_pos_) * static_cast<double>(n_neg));
        weight_of_rank_.resize(n_pos_ + 2);
        for (std::int32_t r = 1; r <= n_pos_ + 1; ++r)
            weight_of_rank_[r] = scale_ * static_cast<double>(n_pos_ + 1 - r);
        positives_.resize(n_pos_);
        sorted_.resize(n_pos_);
    }

    // (h, Δ, ranks evaluated, negatives with r ≤ P); fills the row weights.
    nb::tuple call(In<double> positives, In<double> negatives, Out<double> weights_pos, Out<double> weights_neg) {
        double value, loss;
        std::int64_t evaluated, violating;
        {
            nb::gil_scoped_release unlocked;
            sort_positives(positives.data());
            const Task task{sorted_.data(), n_pos_, weights_.data(), drops_.data(), scale_, bisect_};
            counts_.assign(n_pos_ + 2, 0);
            const Sink sink{weights_neg.data(), weight_of_rank_.data(), counts_.data()};
            evaluated = rank(task, sink, negatives.data());
            violating = static_cast<std::int64_t>(n_neg_) - counts_[n_pos_ + 1];
            loss = 0.0;
            std::int64_t above = 0;
            for (std::int32_t k = 1; k <= n_pos_; ++k) {
                above += counts_[k];
                weights_pos.data()[positives_[k - 1].index] = -scale_ * static_cast<double>(above);
                loss += weights_[k - 1] * (discount_[k - 1] - discount_[k - 1 + above]);
            }
            // Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
            const double top = sorted_[0];
            value = loss + dot(weights_pos.data(), positives.data(), top, static_cast<std::size_t>(n_pos_), 1) +
                    dot(weights_neg.data(), negatives.data(), top, n_neg_, threads_);
        }
        return nb::make_tuple(value, loss, evaluated, violating);
    }

private:
    void sort_positives(const double *scores) {
        for (std::int32_t k = 0; k < n_pos_; ++k) positives_[k] = {scores[k], k};
        sort_scored(positives_, positives_.size(), spare_);
        for (std::int32_t k = 0; k < n_pos_; ++k) sorted_[k] = positives_[k].score;
    }

    std::int64_t rank(const Task &task, const Sink &sink, const double *negatives) {
        if (algorithm_ == "bucket") return bucket_.rank(task, sink, negatives);
        items_.resize(n_neg_);
        for (std::size_t i = 0; i < n_neg_; ++i) items_[i] = {negatives[i], static_cast<std::int32_t>(i)};
        Scored *const begin = items_.data(), *const end = begin + n_neg_;
        const RankOf linear = [&](std::int64_t j, double score) { return task.best_rank(j, score, 1, n_pos_ + 1); };
        const RankOf binary = [&](std::int64_t j, double score) { return task.searched_rank(j, score); };
        if (algorithm_ == "greedy") return rank_in_order(sink, begin, end, linear);
        if (algorithm_ == "search") return rank_in_order(sink, begin, end, binary);
        if (algorithm_ == "select") return rank_selected(sink, begin, end, n_pos_, linear);
        if (algorithm_ == "search-select") return rank_selected(sink, begin, end, n_pos_, binary);
        if (algorithm_ == "qs") return rank_by_quicksort(task, sink, 1, begin, end, 1, n_pos_ + 1);
        throw std::invalid_argument("unknown algorithm " + algorithm_);
    }

    std::string algorithm_;
    bool bisect_;  // the papers' own algorithms try every rank they are said to try
    std::int32_t n_pos_;
    std::size_t n_neg_, threads_;
    double scale_;
    std::vector<double> weights_, discount_, drops_, weight_of_rank_;
    std::vector<Scored> positives_, items_, spare_;
    std::vector<double> sorted_;
    std::vector<std::int64_t> counts_;
    Bucket bucket_;
};

// Positions of the scores in descending order, equal ones by position.
std::vector<std::int64_t> descending(const double *scores, std::size_t n) {
    std::vector<Scored> items(n);
    for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], static_cast<std::int32_t>(i)};
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

    nb::class_<RankingOracle>(m, "RankingOracle")
        .def(nb::init<std::string, std::size_t, In<double>, In<double>, In<double>, bool, std::size_t>())
        .def("__call__", &RankingOracle::call);
}
