// How the bucket oracle goes about a call: which of the negatives are binned, and when sorting is the faster way.
//
// A second call starts from what the first found: where few negatives violated, only those above a threshold, guessed
// from a sample, are binned at all, and one evaluation at (their number + 1, threshold) proves the guess or refutes it.
#include "oracles/bucket.hpp"

#include <cmath>

#include "oracles/quicksort.hpp"
#include "sorting/sampling.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kFew = 5000;  // below, binning does not pay
constexpr std::size_t kSortable = 100'000;
constexpr std::size_t kPerPositive = 64;  // at least this many negatives, for fine bins to pay
constexpr std::size_t kManyPositives = 12'000;  // for which fine bins would be too many
constexpr double kFewViolate = 0.2;       // of the negatives
constexpr std::size_t kSample = 4096;  // less than kFew
constexpr std::size_t kPerThread = 1u << 17;  // below this many scores a thread costs more than it saves

bool all_equal(const double *scores, std::size_t n) {
    return std::all_of(scores, scores + n, [&](double score) { return score == scores[0]; });
}

// How many scores are not below the threshold.
APSVM_CLONES std::size_t count_from(const double *scores, std::size_t n, double threshold) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += scores[i] >= threshold;
    return count;
}

// Negatives [begin, end) that all have this score (at w = 0, say) stand in the order of their indices.
std::int64_t rank_equals(const Problem &problem, const Sink &sink, double score, std::size_t begin, std::size_t end,
                         std::int32_t low, std::int32_t high) {
    std::int64_t evaluated = 0;
    while (begin < end) {
        if (low == high) {
            std::fill(sink.ranks + begin, sink.ranks + end, low);
            sink.counts[low] += static_cast<std::int64_t>(end - begin);
            return evaluated;
        }
        const std::size_t middle = begin + (end - begin) / 2;
        const std::int32_t rank = problem.best_rank(static_cast<std::int64_t>(middle) + 1, score, low, high);
        evaluated += 1 + rank_equals(problem, sink, score, begin, middle, low, rank);
        sink.ranks[middle] = rank;
        ++sink.counts[rank];
        begin = middle + 1;
        low = rank;
    }
    return evaluated;
}

bool sort_is_faster(const Problem &problem, std::size_t n) {
    return n <= kSortable && n < kPerPositive * static_cast<std::size_t>(problem.n_pos);
}

}  // namespace

std::int64_t Bucket::rank(const Problem &problem, const Sink &sink, const double *scores, std::size_t n_neg,
                          double *spare, std::int64_t &violating, std::size_t threads) {
    n_neg_ = n_neg;
    threads_ = threads;
    violating_ = violating;
    evaluated_ = 0;
    if (n_neg_ < kFew || (!few_violated() && sort_is_faster(problem, n_neg_)))
        rank_whole(problem, sink, scores, nullptr, n_neg_);
    else {
        sample(scores, n_neg_);
        if (all_equal(sample_.data(), sample_.size()) && all_equal(scores, n_neg_))
            evaluated_ += rank_equals(problem, sink, scores[0], 0, n_neg_, 1, problem.n_pos + 1);
        else if (!few_violated() || !rank_survivors(problem, sink, scores, spare))
            rank_all(problem, sink, scores, nullptr, n_neg_, spare);
    }
    violating = static_cast<std::int64_t>(n_neg_) - sink.counts[problem.n_pos + 1];
    return evaluated_;
}

bool Bucket::few_violated() const {
    return violating_ >= 0 && static_cast<double>(violating_) <= kFewViolate * static_cast<double>(n_neg_);
}

void Bucket::sample(const double *scores, std::size_t n) {
    sample_.resize(kSample);
    for (std::size_t i = 0; i < kSample; ++i) sample_[i] = scores[sampled_place(i, kSample, n)];
}

// The first half of `spare` holds the survivors' scores, and then those of them that are in open bins.
bool Bucket::rank_survivors(const Problem &problem, const Sink &sink, const double *scores, double *spare) {
    const double share = static_cast<double>(violating_) / static_cast<double>(n_neg_);
    // Three standard deviations of the sample's count, and a tenth for what the scores have moved.
    const double expected = 1.1 * share * static_cast<double>(kSample);
    const auto guess = static_cast<std::size_t>(expected + 3.0 * std::sqrt(expected) + 3.0);
    const double threshold = sample_quantile(sample_, kSample - guess);
    const std::size_t n_survivors = count_from(scores, n_neg_, threshold);
    if (n_survivors >= n_neg_ / 4) return false;
    // One more: the loop writes each before it knows whether it survives. They stand behind the room for the names of
    // their bins.
    const std::size_t behind = (n_survivors + 1) / 2 * 2;
    if (names_.size() < behind + 2 * (n_survivors + 1))
        names_ = std::vector<std::uint16_t>(behind + 2 * (n_survivors + 1));
    auto *const survivors = reinterpret_cast<std::int32_t *>(names_.data() + behind);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n_neg_; ++i) {
        survivors[kept] = static_cast<std::int32_t>(i);
        spare[kept] = scores[i];
        kept += scores[i] >= threshold;
    }
    ++evaluated_;
    const auto next = static_cast<std::int64_t>(kept) + 1;
    if (problem.best_rank(next, threshold, 1, problem.n_pos + 1) != problem.n_pos + 1) return false;
    std::fill(sink.ranks, sink.ranks + n_neg_, problem.n_pos + 1);
    sink.counts[problem.n_pos + 1] += static_cast<std::int64_t>(n_neg_ - kept);
    if (kept < kFew)
        rank_whole(problem, sink, spare, survivors, kept);
    else {
        sample(spare, kept);
        rank_all(problem, sink, spare, survivors, kept, spare + kept);
    }
    return true;
}

void Bucket::rank_whole(const Problem &problem, const Sink &sink, const double *scores, const std::int32_t *index,
                        std::size_t n) {
    if (few_violated() && n == n_neg_) {
        if (items_.size() < n) items_.resize(n);
        for (std::size_t i = 0; i < n; ++i) items_[i] = {scores[i], static_cast<std::int32_t>(i)};
        evaluated_ += rank_by_quicksort(problem, sink, 1, items_.data(), items_.data() + n, 1, problem.n_pos + 1);
        return;
    }
    sort_scores(scores, index, n, items_, sort_);
    evaluated_ += problem.bisect ? rank_by_walking(problem, sink, items_.data(), n)
                                 : rank_by_quicksort(problem, sink, 1, items_.data(), items_.data() + n, 1,
                                                     problem.n_pos + 1, true);
}

void Bucket::rank_all(const Problem &problem, const Sink &sink, const double *scores, const std::int32_t *index,
                      std::size_t n, double *spare) {
    const Spread spread = sample_spread(sample_);
    const auto n_pos = static_cast<std::size_t>(problem.n_pos);
    // Where bins would be crowded, or nearly each of them hold a change of rank, sorting all is the faster way.
    if (sort_is_faster(problem, n) || (!spread.even && n <= kSortable))
        rank_whole(problem, sink, scores, index, n);
    else if (n_pos > kManyPositives || n < kPerPositive * n_pos)
        rank_binned(problem, sink, scores, index, n, make_coarse_bins(spread, sample_, n), spare);
    else
        rank_binned(problem, sink, scores, index, n, make_bins(spread, sample_, n, n_pos), spare);
}

// The kernels of binned_ranks.hpp, the scores cut into parts for the threads.
void Bucket::rank_binned(const Problem &problem, const Sink &sink, const double *scores, const std::int32_t *index,
                         std::size_t n, const Bins &bins, double *spare) {
    if (names_.size() < n) names_ = std::vector<std::uint16_t>(n);
    const std::size_t n_bins = count_of(bins), parts = std::clamp<std::size_t>(n / kPerThread, 1, threads_);
    counts_.assign(parts * n_bins, 0);
    in_threads(parts, threads_, [&](std::size_t part) {
        const std::size_t begin = n * part / parts, end = n * (part + 1) / parts;
        count_scores(bins, scores + begin, end - begin, names_.data() + begin, counts_.data() + part * n_bins);
    });
    bound_ranks(problem, bins, counts_.data(), parts, sink.counts, threads_, bounds_);
    place_open(bounds_, counts_.data(), parts);
    const auto part_of = [&](std::size_t part) {
        const std::size_t begin = n * part / parts, end = n * (part + 1) / parts;
        return Part{names_.data() + begin, index ? index + begin : nullptr, end - begin,
                    counts_.data() + part * n_bins};
    };
    in_threads(parts, threads_, [&](std::size_t part) {
        gather_open(bounds_, part_of(part), scores + n * part / parts, spare);
    });
    const OpenRanks open = rank_open(problem, bounds_, spare, sink.counts, parts, threads_);
    evaluated_ += bounds_.evaluated + open.evaluated;
    in_threads(parts, threads_, [&](std::size_t part) {
        assign_ranks(bounds_, part_of(part), open.ranks, index ? sink.ranks : sink.ranks + n * part / parts);
    });
}

}  // namespace apsvm
