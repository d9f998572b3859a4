// The exact oracles of the papers, and what turns interleaving ranks into the answer of an oracle: row weights, Δ, h.
#include "inference.hpp"
#include "threads.hpp"

#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "module.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kFewToSort = 8;
constexpr std::size_t kBits = 11;  // of a digit of the radix sorts

// Stable counting sort of from[0, n) into to[0, n) by the digit at `shift` of key_of(item), ascending; `counts` says how
// often each of the `digits` values occurs.
template <class Item, class Key>
void sort_by_digit(const Item *from, Item *to, std::size_t n, int shift, std::uint32_t *counts, std::size_t digits,
                   Key key_of) {
    std::uint32_t place = 0;
    for (std::size_t digit = 0; digit < digits; ++digit) place += std::exchange(counts[digit], place);
    for (std::size_t i = 0; i < n; ++i) to[counts[(key_of(from[i]) >> shift) & (digits - 1)]++] = from[i];
}

// Insertion of what is nearly sorted; false if it takes more than a few moves an item.
bool sorted_by_insertion(Scored *items, std::size_t n) {
    auto moves = static_cast<std::int64_t>(4 * n);
    for (std::size_t k = 1; k < n; ++k) {
        if (!(items[k] < items[k - 1])) continue;
        const Scored item = items[k];
        std::size_t at = k;
        for (; at > 0 && item < items[at - 1]; --at, --moves) items[at] = items[at - 1];
        items[at] = item;
        if (moves < 0) return false;
    }
    return true;
}

// Places 0..last on a scale from `high` down, those beyond its ends at the ends, above the number of the score.
APSVM_CLONES void place_scores(const double *scores, std::size_t n, double high, double per_step, double last,
                               std::uint64_t *keys) {
    for (std::size_t i = 0; i < n; ++i) {
        double place = (high - scores[i]) * per_step;
        place = place > 0.0 ? place : 0.0;
        place = place < last ? place : last;
        keys[i] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(static_cast<std::int32_t>(place))) << 32 |
                  static_cast<std::uint32_t>(i);
    }
}

// By their places on a scale over the range of the scores, or where they are many of a sample of them, where these tell
// nearly all scores apart; what lies beyond the scale is sorted by comparison. One digit will do for a few scores.
bool sorted_by_place(const double *scores, const std::int32_t *index, std::size_t n, Scored *items,
                     std::vector<std::uint64_t> &keys) {
    constexpr std::size_t few = 1u << (kBits - 1), sample = 64;
    const bool short_of_two_digits = n <= few;
    double low = scores[0], high = low;
    if (short_of_two_digits) {
        double lows[4] = {low, low, low, low}, highs[4] = {low, low, low, low};
        std::size_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (int lane = 0; lane < 4; ++lane) {
                lows[lane] = scores[i + lane] < lows[lane] ? scores[i + lane] : lows[lane];
                highs[lane] = scores[i + lane] > highs[lane] ? scores[i + lane] : highs[lane];
            }
        for (; i < n; ++i) {
            lows[0] = std::min(lows[0], scores[i]);
            highs[0] = std::max(highs[0], scores[i]);
        }
        low = std::min(std::min(lows[0], lows[1]), std::min(lows[2], lows[3]));
        high = std::max(std::max(highs[0], highs[1]), std::max(highs[2], highs[3]));
    } else {
        for (std::size_t i = 1; i < sample; ++i) {
            low = std::min(low, scores[n * i / sample]);
            high = std::max(high, scores[n * i / sample]);
        }
        const double margin = 0.5 * (high - low);
        low -= margin;
        high += margin;
    }
    const std::size_t places =
        short_of_two_digits ? std::bit_ceil(2 * n) : std::size_t{1} << (2 * kBits);
    const double last = static_cast<double>(places - 1), per_step = last / (high - low);
    if (!std::isnormal(per_step) || !std::isfinite(high - low)) return false;
    if (keys.size() < 2 * n) keys.resize(2 * n);
    std::uint64_t *first = keys.data(), *second = first + n;
    place_scores(scores, n, high, per_step, last, first);
    const auto key = [](std::uint64_t item) { return item; };
    if (short_of_two_digits) {
        std::uint32_t counts[1u << kBits];
        std::fill_n(counts, places, 0u);
        for (std::size_t i = 0; i < n; ++i) ++counts[first[i] >> 32];
        sort_by_digit(first, second, n, 32, counts, places, key);
        std::swap(first, second);
    } else {
        std::uint32_t counts[2][1u << kBits] = {};
        for (std::size_t i = 0; i < n; ++i) {
            ++counts[0][(first[i] >> 32) & ((1u << kBits) - 1)];
            ++counts[1][first[i] >> (32 + kBits)];
        }
        sort_by_digit(first, second, n, 32, counts[0], 1u << kBits, key);
        sort_by_digit(second, first, n, 32 + kBits, counts[1], 1u << kBits, key);
    }
    for (std::size_t k = 0; k < n; ++k) {
        const auto i = static_cast<std::uint32_t>(first[k]);
        items[k] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    }
    if (!short_of_two_digits) {
        std::size_t head = 0, tail = n;
        while (head < n && first[head] >> 32 == 0) ++head;
        while (tail > head && first[tail - 1] >> 32 == places - 1) --tail;
        std::sort(items, items + head);
        std::sort(items + tail, items + n);
    }
    return sorted_by_insertion(items, n);
}

// A radix sort on the 33 leading bits of the scores: relative precision, whatever their spread.
bool sorted_by_leading_bits(std::vector<Scored> &items, std::size_t n, std::vector<Scored> &spare) {
    constexpr int digits = 3;
    // A key that ascends as the score descends; adding zero makes −0 the same as 0.
    const auto key = [](const Scored &item) {
        const auto bits = std::bit_cast<std::uint64_t>(item.score + 0.0);
        return bits >> 63 ? bits : ~bits & ~(std::uint64_t{1} << 63);
    };
    std::uint32_t counts[digits][1u << kBits] = {};
    const auto shift = [](int d) { return static_cast<int>(64 - kBits * (digits - d)); };
    for (std::size_t i = 0; i < n; ++i)
        for (int d = 0; d < digits; ++d) ++counts[d][(key(items[i]) >> shift(d)) & ((1u << kBits) - 1)];
    if (spare.size() < items.size()) spare.resize(items.size());
    for (int d = 0; d < digits; ++d) {
        sort_by_digit(items.data(), spare.data(), n, shift(d), counts[d], 1u << kBits, key);
        items.swap(spare);
    }
    return sorted_by_insertion(items.data(), n);
}

}  // namespace

void sort_scores(const double *scores, const std::int32_t *index, std::size_t n, std::vector<Scored> &items,
                 SortWorkspace &workspace) {
    if (items.size() < n) items.resize(n);
    if (n >= kFewToSort && sorted_by_place(scores, index, n, items.data(), workspace.keys)) return;
    for (std::size_t i = 0; i < n; ++i) items[i] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    if (n >= kFewToSort && sorted_by_leading_bits(items, n, workspace.spare)) return;
    std::sort(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(n));
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

// More ranks than this for each item are halved rather than walked through.
constexpr std::ptrdiff_t kStepsPerItem = 8;

namespace {

// Ranks of sorted items from position j ≥ P on, where each g_j is non-decreasing: as ranks grow with j, one walk from
// `low` to `high` finds them all.
std::int64_t walk(const Task &task, const Sink &sink, std::int64_t j, Scored *begin, Scored *end, std::int32_t low,
                  std::int32_t high) {
    for (Scored *item = begin; item != end; ++item, ++j) {
        while (low < high && !(task.gain(j, low, item->score) > 0.0)) ++low;
        if (low == high) {
            sink.take(item, end, high);
            return item - begin;
        }
        sink.take(*item, low);
    }
    return end - begin;
}

}  // namespace

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
        if (sorted && task.bisect && j >= task.n_pos && high - low <= kStepsPerItem * (end - begin))
            return evaluated + walk(task, sink, j, begin, end, low, high);
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

std::int64_t rank_by_walking(const Task &task, const Sink &sink, Scored *items, std::size_t n) {
    const std::size_t head = std::min(n, static_cast<std::size_t>(task.n_pos) - 1);  // positions below P
    const std::int32_t bound =
        head < n ? task.best_rank(task.n_pos, items[head].score, 1, task.n_pos + 1) : task.n_pos + 1;
    return rank_by_quicksort(task, sink, 1, items, items + head, 1, bound, true) +
           rank_by_quicksort(task, sink, task.n_pos, items + head, items + n, bound, task.n_pos + 1, true);
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

double dot_block(const double *a, const double *b, double from, std::size_t n) {
    double sum[4] = {0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * (b[i + lane] - from);
    for (; i < n; ++i) sum[0] += a[i] * (b[i] - from);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Σ a (b − from), in blocks whose number depends on n alone: the sum does not depend on the number of threads.
double dot(const double *a, const double *b, double from, std::size_t n, std::size_t threads) {
    constexpr std::size_t block = 1u << 17;
    if (n <= block) return dot_block(a, b, from, n);
    std::vector<double> sums((n + block - 1) / block);
    in_threads(sums.size(), threads, [&](std::size_t t) {
        const std::size_t begin = t * block;
        sums[t] = dot_block(a + begin, b + begin, from, std::min(n - begin, block));
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// A loss written out for one size of query.
struct Tables {
    std::int32_t n_pos;
    std::size_t n_neg;
    double scale;                                                   // 2 / (P N)
    std::vector<double> weights, discount, drops, weight_of_rank;  // the last: scale (P + 1 − r) at [r]

    Tables(std::size_t n_neg, In<double> u, In<double> D, In<double> steps)
        : n_pos(static_cast<std::int32_t>(u.size())), n_neg(n_neg),
          scale(2.0 / (static_cast<double>(n_pos) * static_cast<double>(n_neg))), weights(u.data(), u.data() + u.size()),
          discount(D.data(), D.data() + D.size()), drops(steps.data(), steps.data() + steps.size()),
          weight_of_rank(n_pos + 2) {
        for (std::int32_t r = 1; r <= n_pos + 1; ++r)
            weight_of_rank[r] = scale * static_cast<double>(n_pos + 1 - r);
    }
};

// What one thread needs to solve one query after another.
struct Workspace {
    std::vector<Scored> positives, items;
    SortWorkspace sort;
    std::vector<double> sorted;
    std::vector<std::int64_t> counts;
    Bucket bucket;
    AgainstLossWorkspace against_loss;
    std::vector<double> weights;  // of a task that is not the first of its rows
};

enum class Algorithm { greedy, search, select, search_select, qs, bucket, against_loss };

Algorithm algorithm_of(const std::string &name) {
    if (name == "greedy") return Algorithm::greedy;
    if (name == "search") return Algorithm::search;
    if (name == "select") return Algorithm::select;
    if (name == "search-select") return Algorithm::search_select;
    if (name == "qs") return Algorithm::qs;
    if (name == "bucket") return Algorithm::bucket;
    if (name == "against-loss") return Algorithm::against_loss;
    throw std::invalid_argument("unknown algorithm " + name);
}

std::int64_t rank_negatives(Algorithm algorithm, const Task &task, const Sink &sink, const double *negatives,
                            std::size_t n_neg, std::int64_t &violating, Workspace &workspace, std::size_t threads) {
    if (algorithm == Algorithm::bucket)
        return workspace.bucket.rank(task, sink, negatives, n_neg, violating, threads);
    if (workspace.items.size() < n_neg) workspace.items.resize(n_neg);
    for (std::size_t i = 0; i < n_neg; ++i) workspace.items[i] = {negatives[i], static_cast<std::int32_t>(i)};
    Scored *const begin = workspace.items.data(), *const end = begin + n_neg;
    const RankOf linear = [&](std::int64_t j, double score) { return task.best_rank(j, score, 1, task.n_pos + 1); };
    const RankOf binary = [&](std::int64_t j, double score) { return task.searched_rank(j, score); };
    switch (algorithm) {
        case Algorithm::greedy: return rank_in_order(sink, begin, end, linear);
        case Algorithm::search: return rank_in_order(sink, begin, end, binary);
        case Algorithm::select: return rank_selected(sink, begin, end, task.n_pos, linear);
        case Algorithm::search_select: return rank_selected(sink, begin, end, task.n_pos, binary);
        default: return rank_by_quicksort(task, sink, 1, begin, end, 1, task.n_pos + 1);
    }
}

// One query: its most violated ranking, whose row weights are written; or, against the loss, the one that maximises F − Δ.
Answer solve(Algorithm algorithm, bool bisect, const Tables &tables, const double *positives, const double *negatives,
             double *weights_pos, double *weights_neg, std::int64_t &violating, Workspace &workspace,
             std::size_t threads) {
    const std::int32_t n_pos = tables.n_pos;
    auto &[order, items, sort, sorted, counts, bucket, against_loss, spare] = workspace;
    sort_scores(positives, nullptr, static_cast<std::size_t>(n_pos), order, sort);
    if (sorted.size() < static_cast<std::size_t>(n_pos)) sorted.resize(n_pos);
    for (std::int32_t k = 0; k < n_pos; ++k) sorted[k] = order[k].score;
    const Task task{sorted.data(), n_pos, tables.weights.data(), tables.drops.data(), tables.scale, bisect};
    counts.assign(n_pos + 2, 0);
    const Sink sink{weights_neg, tables.weight_of_rank.data(), counts.data()};
    Answer answer;
    if (algorithm == Algorithm::against_loss) {
        sort_scores(negatives, nullptr, tables.n_neg, items, sort);
        answer.evaluated =
            rank_against_loss(task, tables.discount.data(), sink, items.data(), tables.n_neg, against_loss);
    } else {
        answer.evaluated =
            rank_negatives(algorithm, task, sink, negatives, tables.n_neg, violating, workspace, threads);
    }
    answer.violating = static_cast<std::int64_t>(tables.n_neg) - counts[n_pos + 1];
    std::int64_t above = 0;
    for (std::int32_t k = 1; k <= n_pos; ++k) {
        above += counts[k];
        weights_pos[order[k - 1].index] = -tables.scale * static_cast<double>(above);
        answer.loss += tables.weights[k - 1] * (tables.discount[k - 1] - tables.discount[k - 1 + above]);
    }
    // Σc = 0: measuring the scores from the top positive keeps a common offset from eating the digits.
    const double top = sorted[0];
    answer.value = (algorithm == Algorithm::against_loss ? -answer.loss : answer.loss) +
                   dot(weights_pos, positives, top, static_cast<std::size_t>(n_pos), 1) +
                   dot(weights_neg, negatives, top, tables.n_neg, threads);
    return answer;
}

// An oracle made ready for many queries. A query's rows stand together in the scores, positives first. Several tasks may
// share their rows: the grades of a graded loss, each with its own first rows as the positives; their sum counts.
class RankingOracle {
public:
    RankingOracle(const std::string &algorithm, bool unimodal, std::size_t threads)
        : algorithm_(algorithm_of(algorithm)), bisect_(unimodal && algorithm_ == Algorithm::bucket), threads_(threads),
          workspaces_(1) {}

    void add_tables(std::size_t n_neg, In<double> weights, In<double> discount, In<double> drops) {
        tables_.emplace_back(n_neg, weights, discount, drops);
    }

    // Tasks in order: the first row of each, its tables (in the order they were added) and its coefficient.
    void add_tasks(In<std::int64_t> first, In<std::int64_t> tables, In<double> coefficients) {
        for (std::size_t t = 0; t < first.size(); ++t) {
            const auto at = static_cast<std::size_t>(first.data()[t]);
            const std::size_t rows = tables_[tables.data()[t]].n_pos + tables_[tables.data()[t]].n_neg;
            if (queries_.empty() || queries_.back().first != at)
                queries_.push_back({at, rows, tasks_.size(), tasks_.size()});
            tasks_.push_back({static_cast<std::size_t>(tables.data()[t]), coefficients.data()[t], -1});
            queries_.back().end = tasks_.size();
        }
        rows_ = 0;
        largest_ = 0;
        for (const Query &query : queries_) {
            rows_ += query.rows;
            largest_ = std::max(largest_, query.rows);
        }
        answers_.resize(queries_.size());
    }

    // (Σ coefficient·h, Σ coefficient·Δ, ranks evaluated, negatives with r ≤ P); fills the row weights.
    nb::tuple call(In<double> scores, Out<double> weights) {
        Answer total;
        {
            nb::gil_scoped_release unlocked;
            if (2 * largest_ > rows_)
                for (std::size_t q = 0; q < queries_.size(); ++q)
                    answer(q, scores.data(), weights.data(), workspaces_[0], threads_);
            else
                answer_in_threads(scores.data(), weights.data());
            for (const Answer &answer : answers_) total.add(answer, 1.0);
        }
        return nb::make_tuple(total.value, total.loss, total.evaluated, total.violating);
    }

    // The same for one query whose classes stand apart.
    nb::tuple call_one(In<double> positives, In<double> negatives, Out<double> weights_pos, Out<double> weights_neg) {
        Answer one;
        {
            nb::gil_scoped_release unlocked;
            one = solve(algorithm_, bisect_, tables_[0], positives.data(), negatives.data(), weights_pos.data(),
                        weights_neg.data(), violating_, workspaces_[0], threads_);
        }
        return nb::make_tuple(one.value, one.loss, one.evaluated, one.violating);
    }

private:
    struct OneTask {
        std::size_t tables;
        double coefficient;
        std::int64_t violating;  // in the last call, or −1
    };
    struct Query {
        std::size_t first, rows;
        std::size_t begin, end;  // of its tasks
    };

    void answer(std::size_t q, const double *scores, double *weights, Workspace &workspace, std::size_t threads) {
        const Query &query = queries_[q];
        const double *const s = scores + query.first;
        double *const c = weights + query.first;
        OneTask *const tasks = tasks_.data();
        answers_[q] = add_up(tasks + query.begin, tasks + query.end, query.rows, c, workspace.weights,
                             [&](OneTask &task, double *own) {
                                 const Tables &tables = tables_[task.tables];
                                 return solve(algorithm_, bisect_, tables, s, s + tables.n_pos, own,
                                              own + tables.n_pos, task.violating, workspace, threads);
                             });
    }

    void answer_in_threads(const double *scores, double *weights) {
        // Below so many rows a thread costs more than it saves.
        constexpr std::size_t rows_per_thread = 1u << 13;
        const std::size_t threads = std::clamp<std::size_t>(rows_ / rows_per_thread, 1, threads_);
        if (workspaces_.size() < threads) workspaces_.resize(threads);
        in_runs(queries_.size(), threads,
                [&](std::size_t q, std::size_t t) { answer(q, scores, weights, workspaces_[t], 1); });
    }

    Algorithm algorithm_;
    bool bisect_;  // the papers' own algorithms try every rank they are said to try
    std::size_t threads_;
    std::vector<Tables> tables_;
    std::vector<OneTask> tasks_;
    std::vector<Query> queries_;
    std::vector<Answer> answers_;
    std::vector<Workspace> workspaces_;
    std::size_t rows_ = 0, largest_ = 0;
    std::int64_t violating_ = -1;
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
        .def(nb::init<std::string, bool, std::size_t>())
        .def("add_tables", &RankingOracle::add_tables)
        .def("add_tasks", &RankingOracle::add_tasks)
        .def("__call__", &RankingOracle::call)
        .def("one", &RankingOracle::call_one);
}
