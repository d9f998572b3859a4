// The bucket oracle: exact, O(N) expected, without a comparison sort of the negatives.
//
// Scores are counted into bins. With the counts added up from the top, a bin holds the negatives of known positions
// c+1..c+m and of scores between known edges. Ranks are monotone, in the position and in the score, so
//
//     argmax f at (c+1, upper edge)  ≤  every rank in the bin  ≤  argmax f at (c+m, lower edge)
//
// and where the two agree the bin is solved without looking inside. Bins are solved by divide and conquer, from bounds
// that the solved neighbours give; at most P bins can hold a change of rank, plus the few that the bounds leave open:
// those are gathered and handed to the quicksort-flavoured oracle.
//
// Bins adapt to the scores by a sample: of equal width where the sample is spread evenly enough, otherwise splitters
// drawn from it cut the scores into strips of about equal numbers, and each strip is cut into bins of equal width.
// A second call starts from what the first found: where few negatives violated, only those above a threshold, guessed
// from the sample, are binned at all, and one evaluation at (their number + 1, threshold) proves the guess or refutes it.
//
// Determinism: the ranks do not depend on the number of threads, only the order of the work does.
#include "inference.hpp"
#include "threads.hpp"

#include <cmath>
#include <limits>
#include <numeric>

namespace apsvm {

namespace {

constexpr std::size_t kFew = 5000;             // below, binning does not pay
constexpr std::size_t kSortable = 100'000;
constexpr std::size_t kPerPositive = 50;       // at least so many negatives, for binning to pay
constexpr double kFewViolate = 0.2;            // of the negatives
constexpr std::size_t kSample = 4096;
constexpr std::size_t kPerThread = 1u << 17;   // below this many scores a thread costs more than it saves
constexpr std::size_t kBinsPerPositive = 24;  // a few are open for each change of rank
constexpr std::size_t kMostPerBin = 32, kLeastPerBin = 4;
constexpr std::size_t kMostBins = 1u << 16;     // what 16 bits name
constexpr std::size_t kStrips = 64;            // 2^k
constexpr std::size_t kBinsInAStrip = 128;
constexpr double kMostInACell = 0.125;         // of the sample, for bins of equal width
constexpr std::size_t kCells = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Ascending bins of equal width over [low, high); the first and the last are open-ended.
struct EvenBins {
    double low, width, per_width, slack;  // slack: what rounding can move a score over an edge
    std::size_t count;

    EvenBins(double low, double high, std::size_t count)
        : low(low), width((high - low) / static_cast<double>(count)), per_width(1.0 / width),
          slack(1e-9 * width + 8.0 * kEpsilon * std::max(std::abs(low), std::abs(high))), count(count) {}

    APSVM_CLONES static void find(const double *scores, std::size_t n, double low, double per_width, double last,
                                  std::uint16_t *bins) {
        for (std::size_t i = 0; i < n; ++i) {
            double place = (scores[i] - low) * per_width;
            place = place > 0.0 ? place : 0.0;
            place = place < last ? place : last;
            bins[i] = static_cast<std::uint16_t>(static_cast<std::int32_t>(place));
        }
    }
    void operator()(const double *scores, std::size_t n, std::uint16_t *bins) const {
        find(scores, n, low, per_width, static_cast<double>(count - 1), bins);
    }
    double lower_edge(std::size_t bin) const {
        return bin == 0 ? -kInfinity : low + static_cast<double>(bin) * width - slack;
    }
    double upper_edge(std::size_t bin) const {
        return bin + 1 == count ? kInfinity : low + static_cast<double>(bin + 1) * width + slack;
    }
};

// Strips [t_p, t_{p+1}) between ascending splitters, t_0 = −∞ and t_kStrips = +∞, each of kBinsInAStrip bins of equal
// width between `from` and the next strip's; an empty strip has equal splitters.
struct StripBins {
    double splitters[kStrips + 1];
    double from[kStrips];
    double width[kStrips];
    double per_width[kStrips];
    std::size_t count = kStrips * kBinsInAStrip;

    explicit StripBins(const std::vector<double> &sample) {
        for (std::size_t p = 0; p < kStrips; ++p) {
            const double next = p + 1 < kStrips ? sample[(p + 1) * sample.size() / kStrips] : sample.back();
            from[p] = splitters[p] = sample[p * sample.size() / kStrips];
            width[p] = (next - from[p]) / static_cast<double>(kBinsInAStrip);
            per_width[p] = 1.0 / width[p];
            // Too narrow or too wide for arithmetic: one bin.
            if (!std::isnormal(width[p]) || !std::isnormal(per_width[p])) per_width[p] = 0.0;
        }
        splitters[0] = -kInfinity;
        splitters[kStrips] = kInfinity;
    }

    APSVM_CLONES static void find(const double *scores, std::size_t n, const double *splitters, const double *from,
                                  const double *per_width, std::uint16_t *bins) {
        for (std::size_t i = 0; i < n; ++i) {
            std::uint32_t strip = 0;
            for (std::uint32_t step = kStrips / 2; step > 0; step /= 2)
                strip += splitters[strip + step] <= scores[i] ? step : 0;
            double place = (scores[i] - from[strip]) * per_width[strip];
            place = place > 0.0 ? place : 0.0;
            place = place < kBinsInAStrip - 1.0 ? place : kBinsInAStrip - 1.0;
            bins[i] = static_cast<std::uint16_t>(strip * kBinsInAStrip +
                                                 static_cast<std::uint32_t>(static_cast<std::int32_t>(place)));
        }
    }
    void operator()(const double *scores, std::size_t n, std::uint16_t *bins) const {
        find(scores, n, splitters, from, per_width, bins);
    }
    double slack(std::size_t strip) const {
        return 1e-9 * width[strip] +
               8.0 * kEpsilon * (std::abs(from[strip]) + static_cast<double>(kBinsInAStrip) * width[strip]);
    }
    double lower_edge(std::size_t bin) const {
        const std::size_t strip = bin / kBinsInAStrip, part = bin % kBinsInAStrip;
        if (part == 0 || per_width[strip] == 0.0) return splitters[strip];
        return std::max(splitters[strip], from[strip] + static_cast<double>(part) * width[strip] - slack(strip));
    }
    double upper_edge(std::size_t bin) const {
        const std::size_t strip = bin / kBinsInAStrip, part = bin % kBinsInAStrip;
        if (part + 1 == kBinsInAStrip || per_width[strip] == 0.0) return splitters[strip + 1];
        return std::min(splitters[strip + 1],
                        from[strip] + static_cast<double>(part + 1) * width[strip] + slack(strip));
    }
};

// Bounds on one bin's ranks, which are known to lie in [low, high].
template <class Bins>
void bound_bin(const Task &task, const Bins &edges, Bin &bin, std::int32_t low, std::int32_t high) {
    const double upper = edges.upper_edge(bin.name), lower = edges.lower_edge(bin.name);
    bin.low = std::isinf(upper) ? low : task.best_rank(bin.first, upper, low, high);
    bin.high = std::isinf(lower) ? high : task.best_rank(bin.first + bin.count - 1, lower, bin.low, high);
}

// Divide and conquer over the non-empty bins [begin, end), in descending order of score, ranks within [low, high].
template <class Bins>
std::int64_t bound_ranks(const Task &task, const Bins &edges, Bin *begin, Bin *end, std::int32_t low,
                         std::int32_t high, std::size_t threads) {
    constexpr std::ptrdiff_t worth_a_thread = 4096;
    std::int64_t evaluated = 0;
    while (begin < end) {
        if (low == high) {
            for (Bin *bin = begin; bin != end; ++bin) bin->low = bin->high = low;
            return evaluated;
        }
        Bin *middle = begin + (end - begin) / 2;
        bound_bin(task, edges, *middle, low, high);
        evaluated += 2;
        if (threads > 1 && end - begin > worth_a_thread) {
            std::int64_t halves[2];
            in_threads(2, 2, [&](std::size_t half) {
                halves[half] = half == 0
                                   ? bound_ranks(task, edges, begin, middle, low, middle->low, threads / 2)
                                   : bound_ranks(task, edges, middle + 1, end, middle->high, high, threads / 2);
            });
            return evaluated + halves[0] + halves[1];
        }
        evaluated += bound_ranks(task, edges, begin, middle, low, middle->low, 1);
        low = middle->high;
        begin = middle + 1;
    }
    return evaluated;
}

bool all_equal(const double *scores, std::size_t n) {
    return std::all_of(scores, scores + n, [&](double score) { return score == scores[0]; });
}

// Negatives [begin, end) that all have this score (at w = 0, say) stand in the order of their indices.
std::int64_t rank_equals(const Task &task, const Sink &sink, double score, std::size_t begin, std::size_t end,
                         std::int32_t low, std::int32_t high) {
    std::int64_t evaluated = 0;
    while (begin < end) {
        if (low == high) {
            std::fill(sink.weights + begin, sink.weights + end, sink.weight_of_rank[low]);
            sink.counts[low] += static_cast<std::int64_t>(end - begin);
            return evaluated;
        }
        const std::size_t middle = begin + (end - begin) / 2;
        const std::int32_t rank = task.best_rank(static_cast<std::int64_t>(middle) + 1, score, low, high);
        evaluated += 1 + rank_equals(task, sink, score, begin, middle, low, rank);
        sink.weights[middle] = sink.weight_of_rank[rank];
        ++sink.counts[rank];
        begin = middle + 1;
        low = rank;
    }
    return evaluated;
}

bool sort_is_faster(const Task &task, std::size_t n) {
    return n <= kSortable && n < kPerPositive * static_cast<std::size_t>(task.n_pos);
}

bool even_enough(const std::vector<double> &sample, double low, double high) {
    if (!(high > low) || !std::isfinite(kCells / (high - low))) return false;
    std::size_t cells[kCells] = {};
    for (double score : sample) {
        const double place = (score - low) / (high - low) * kCells;
        ++cells[static_cast<std::size_t>(std::clamp(place, 0.0, kCells - 1.0))];
    }
    return static_cast<double>(*std::max_element(cells, cells + kCells)) <=
           kMostInACell * static_cast<double>(sample.size());
}

// What the passes over the scores need besides the bins.
struct Pass {
    const Task &task;
    const Sink &sink;
    const double *scores;
    const std::int32_t *index;  // of scores[i] among the negatives; null: i
    std::size_t n;
    std::size_t threads;
    BinsWorkspace &workspace;
    std::vector<Scored> &items;

    static constexpr std::size_t block = 2048;  // the scores of a block stay in the cache between its steps

    std::int32_t index_of(std::size_t i) const { return index ? index[i] : static_cast<std::int32_t>(i); }

    template <class Bins>
    std::int64_t run(const Bins &edges) {
        auto &[bins, counts, weight_of_bin, filled] = workspace;
        if (bins.size() < n) bins.resize(n);
        const std::size_t chunks = std::clamp<std::size_t>(n / kPerThread, 1, threads);
        counts.assign(chunks * edges.count, 0);
        in_threads(chunks, threads, [&](std::size_t chunk) {
            std::int64_t *count = counts.data() + chunk * edges.count;
            for (std::size_t at = n * chunk / chunks; at < n * (chunk + 1) / chunks; at += block) {
                const std::size_t stop = std::min(at + block, n * (chunk + 1) / chunks);
                edges(scores + at, stop - at, bins.data() + at);
                for (std::size_t i = at; i < stop; ++i) ++count[bins[i]];
            }
        });

        filled.clear();
        std::int64_t position = 1;
        for (std::size_t name = edges.count; name-- > 0;) {
            std::int64_t count = 0;
            for (std::size_t chunk = 0; chunk < chunks; ++chunk) count += counts[chunk * edges.count + name];
            if (count == 0) continue;
            filled.push_back({position, count, static_cast<std::uint32_t>(name), 0, 0});
            position += count;
        }
        std::int64_t evaluated =
            bound_ranks(task, edges, filled.data(), filled.data() + filled.size(), 1, task.n_pos + 1, threads);

        // Where each chunk puts its items of an open bin; counts become those places.
        weight_of_bin.assign(edges.count, -1.0);
        std::int64_t place = 0;
        for (const Bin &bin : filled) {
            if (bin.low == bin.high) {
                weight_of_bin[bin.name] = sink.weight_of_rank[bin.low];
                sink.counts[bin.low] += bin.count;
                continue;
            }
            for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
                std::int64_t &count = counts[chunk * edges.count + bin.name];
                const std::int64_t here = place;
                place += count;
                count = here;
            }
        }
        if (items.size() < static_cast<std::size_t>(place)) items.resize(static_cast<std::size_t>(place));
        in_threads(chunks, threads, [&](std::size_t chunk) {
            std::int64_t *next = counts.data() + chunk * edges.count;
            std::int32_t open[block];  // collected without a branch: whether a bin is open is hard to foretell
            for (std::size_t at = n * chunk / chunks; at < n * (chunk + 1) / chunks; at += block) {
                const std::size_t stop = std::min(at + block, n * (chunk + 1) / chunks);
                std::size_t n_open = 0;
                for (std::size_t i = at; i < stop; ++i) {
                    const double weight = weight_of_bin[bins[i]];
                    sink.weights[index_of(i)] = weight;
                    open[n_open] = static_cast<std::int32_t>(i);
                    n_open += weight < 0.0;
                }
                for (std::size_t k = 0; k < n_open; ++k) {
                    const auto i = static_cast<std::size_t>(open[k]);
                    items[static_cast<std::size_t>(next[bins[i]]++)] = {scores[i], index_of(i)};
                }
            }
        });

        return evaluated + look_into_open(filled, chunks);
    }

    // Solves the open bins, whose items stand one bin after another, in `tasks` runs of about equally many items.
    std::int64_t look_into_open(const std::vector<Bin> &filled, std::size_t tasks) {
        struct Open {
            const Bin *bin;
            Scored *begin;
        };
        std::vector<Open> open;
        Scored *next = items.data();
        for (const Bin &bin : filled) {
            if (bin.low == bin.high) continue;
            open.push_back({&bin, next});
            next += bin.count;
        }
        const std::size_t n_ranks = static_cast<std::size_t>(task.n_pos) + 2, n_items = next - items.data();
        std::vector<std::int64_t> counts(tasks * n_ranks, 0), evaluated(tasks, 0);
        in_threads(tasks, threads, [&](std::size_t t) {
            Sink own = sink;
            own.counts = counts.data() + t * n_ranks;
            for (const Open &part : open) {
                const auto at = static_cast<std::size_t>(part.begin - items.data());
                if (at < n_items * t / tasks || at >= n_items * (t + 1) / tasks) continue;
                // Equal scores stand in the order of their indices already.
                Scored *end = part.begin + part.bin->count;
                const bool equal =
                    std::all_of(part.begin, end, [&](const Scored &item) { return item.score == part.begin->score; });
                evaluated[t] += rank_by_quicksort(task, own, part.bin->first, part.begin, end, part.bin->low,
                                                  part.bin->high, equal);
            }
        });
        for (std::size_t i = 0; i < counts.size(); ++i) sink.counts[i % n_ranks] += counts[i];
        return std::accumulate(evaluated.begin(), evaluated.end(), std::int64_t{0});
    }
};

}  // namespace

std::int64_t Bucket::rank(const Task &task, const Sink &sink, const double *scores, std::size_t n_neg,
                          std::int64_t &violating, std::size_t threads) {
    n_neg_ = n_neg;
    threads_ = threads;
    violating_ = violating;
    evaluated_ = 0;
    if (n_neg_ < kFew || (!few_violated() && sort_is_faster(task, n_neg_)))
        rank_whole(task, sink, scores, nullptr, n_neg_);
    else {
        sample(scores, n_neg_);
        if (all_equal(sample_.data(), sample_.size()) && all_equal(scores, n_neg_))
            evaluated_ += rank_equals(task, sink, scores[0], 0, n_neg_, 1, task.n_pos + 1);
        else if (!few_violated() || !rank_survivors(task, sink, scores))
            rank_all(task, sink, scores, nullptr, n_neg_);
    }
    violating = static_cast<std::int64_t>(n_neg_) - sink.counts[task.n_pos + 1];
    return evaluated_;
}

bool Bucket::few_violated() const {
    return violating_ >= 0 && static_cast<double>(violating_) <= kFewViolate * static_cast<double>(n_neg_);
}

void Bucket::sample(const double *scores, std::size_t n) {
    const std::size_t size = std::min(kSample, n);
    sample_.resize(size);
    for (std::size_t i = 0; i < size; ++i) sample_[i] = scores[n / size * i];
}

// The sample's `place`-th score, counted from 0, ascending.
double Bucket::of_sample(std::size_t place) {
    const auto at = sample_.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(sample_.begin(), at, sample_.end());
    return *at;
}

bool Bucket::rank_survivors(const Task &task, const Sink &sink, const double *scores) {
    const auto n = static_cast<double>(n_neg_);
    const double share = static_cast<double>(violating_) / n;
    // Three standard deviations of the sample's count, and a tenth for what the scores have moved.
    const auto size = static_cast<double>(sample_.size());
    const double guess = 1.1 * share * size + 3.0 * std::sqrt(1.1 * share * size) + 3.0;
    const double threshold = of_sample(sample_.size() - static_cast<std::size_t>(guess));
    if (survivors_.size() < n_neg_) {
        survivors_.resize(n_neg_);
        survivor_scores_.resize(n_neg_);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n_neg_; ++i) {
        survivors_[kept] = static_cast<std::int32_t>(i);
        survivor_scores_[kept] = scores[i];
        kept += scores[i] >= threshold;
    }
    if (kept < n_neg_) {
        ++evaluated_;
        const auto next = static_cast<std::int64_t>(kept) + 1;
        if (task.best_rank(next, threshold, 1, task.n_pos + 1) != task.n_pos + 1) return false;
    }
    std::fill(sink.weights, sink.weights + n_neg_, 0.0);
    sink.counts[task.n_pos + 1] += static_cast<std::int64_t>(n_neg_ - kept);
    if (kept < kFew)
        rank_whole(task, sink, survivor_scores_.data(), survivors_.data(), kept);
    else {
        sample(survivor_scores_.data(), kept);
        rank_all(task, sink, survivor_scores_.data(), survivors_.data(), kept);
    }
    return true;
}

void Bucket::rank_whole(const Task &task, const Sink &sink, const double *scores, const std::int32_t *index,
                        std::size_t n) {
    if (few_violated() && n == n_neg_) {
        if (items_.size() < n) items_.resize(n);
        for (std::size_t i = 0; i < n; ++i) items_[i] = {scores[i], static_cast<std::int32_t>(i)};
        evaluated_ += rank_by_quicksort(task, sink, 1, items_.data(), items_.data() + n, 1, task.n_pos + 1);
        return;
    }
    sort_scores(scores, index, n, items_, sort_);
    evaluated_ += task.bisect ? rank_by_walking(task, sink, items_.data(), n)
                              : rank_by_quicksort(task, sink, 1, items_.data(), items_.data() + n, 1, task.n_pos + 1,
                                                  true);
}

void Bucket::rank_all(const Task &task, const Sink &sink, const double *scores, const std::int32_t *index,
                      std::size_t n) {
    Pass pass{task, sink, scores, index, n, threads_, bins_, items_};
    const std::size_t tail = sample_.size() / 512;
    const double inner_low = of_sample(tail), inner_high = of_sample(sample_.size() - 1 - tail);
    // Half as wide again: the tails are where ranks change fastest.
    const double margin = 0.25 * (inner_high - inner_low);
    const double low = inner_low - margin, high = inner_high + margin;
    const bool even = even_enough(sample_, low, high);
    // Where bins would be crowded, or nearly each of them hold a change of rank, a radix sort is the faster way.
    if (sort_is_faster(task, n) || (!even && n <= kSortable)) {
        rank_whole(task, sink, scores, index, n);
    } else if (even) {
        const std::size_t wanted = kBinsPerPositive * static_cast<std::size_t>(task.n_pos);
        const std::size_t count = std::min(std::clamp(wanted, n / kMostPerBin, n / kLeastPerBin), kMostBins);
        evaluated_ += pass.run(EvenBins(low, high, count));
    } else {
        std::sort(sample_.begin(), sample_.end());
        evaluated_ += pass.run(StripBins(sample_));
    }
}

}  // namespace apsvm
