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
// Bins adapt to the scores by a sample: of equal width where the sample is spread evenly enough, otherwise between
// splitters drawn from it, each splitter with a bin of its own, so that a value that many rows share is a bin of equals.
// A second call starts from what the first found: where few negatives violated, only those above a threshold, guessed
// from the sample, are binned at all, and one evaluation at (their number + 1, threshold) proves the guess or refutes it.
//
// Determinism: the ranks do not depend on the number of threads, only the order of the work does.
#include "inference.hpp"
#include "threads.hpp"

#include <cmath>
#include <limits>

namespace apsvm {

namespace {

constexpr std::size_t kFew = 5000;             // below, binning does not pay
constexpr std::size_t kSample = 4096;
constexpr std::size_t kPerThread = 1u << 16;   // below this many scores a thread costs more than it saves
constexpr std::size_t kMostBins = 16384;
constexpr std::size_t kSplitters = 511;        // 2^k − 1
constexpr double kMostInACell = 0.125;         // of the sample, for bins of equal width
constexpr std::size_t kCells = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Ascending bins of equal width; the first and the last are open-ended.
struct EvenBins {
    double low, per_width, last;
    std::size_t count;
    double slack;  // what rounding can move a score over an edge

    static constexpr std::size_t block = 1024;

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
        find(scores, n, low, per_width, last, bins);
    }
    double lower_edge(std::size_t bin) const {
        return bin == 0 ? -kInfinity : low + static_cast<double>(bin) / per_width - slack;
    }
    double upper_edge(std::size_t bin) const {
        return bin + 1 == count ? kInfinity : low + static_cast<double>(bin + 1) / per_width + slack;
    }
};

// Ascending bins between splitters t_0 < t_1 < …: 2p holds (t_{p−1}, t_p), 2p + 1 holds t_p alone.
struct SplitterBins {
    double splitters[kSplitters];  // padded with +infinity
    std::size_t count = 2 * kSplitters + 1;

    APSVM_CLONES static void find(const double *scores, std::size_t n, const double *splitters, std::uint16_t *bins) {
        for (std::size_t i = 0; i < n; ++i) {
            std::uint32_t below = 0;
            for (std::uint32_t step = (kSplitters + 1) / 2; step > 0; step /= 2)
                below += splitters[below + step - 1] < scores[i] ? step : 0;
            const bool equal = below < kSplitters && splitters[below] == scores[i];
            bins[i] = static_cast<std::uint16_t>(2 * below + equal);
        }
    }
    void operator()(const double *scores, std::size_t n, std::uint16_t *bins) const {
        find(scores, n, splitters, bins);
    }
    double lower_edge(std::size_t bin) const { return bin == 0 ? -kInfinity : splitters[(bin - 1) / 2]; }
    double upper_edge(std::size_t bin) const { return bin + 1 == count ? kInfinity : splitters[bin / 2]; }
};

struct Bin {
    std::int64_t first;  // position of its first negative
    std::int64_t count;
    std::uint32_t name;
    std::int32_t low, high;  // bounds on its ranks; equal: solved
};

// Divide and conquer over the non-empty bins [begin, end), in descending order of score, ranks within [low, high].
template <class Bins>
std::int64_t bound_ranks(const Task &task, const Bins &edges, Bin *begin, Bin *end, std::int32_t low,
                         std::int32_t high) {
    std::int64_t evaluated = 0;
    while (begin < end) {
        if (low == high) {
            for (Bin *bin = begin; bin != end; ++bin) bin->low = bin->high = low;
            return evaluated;
        }
        Bin *middle = begin + (end - begin) / 2;
        const double upper = edges.upper_edge(middle->name), lower = edges.lower_edge(middle->name);
        middle->low = std::isinf(upper) ? low : task.best_rank(middle->first, upper, low, high);
        middle->high =
            std::isinf(lower) ? high
                              : task.best_rank(middle->first + middle->count - 1, lower, middle->low, high);
        evaluated += 2;
        evaluated += bound_ranks(task, edges, begin, middle, low, middle->low);
        low = middle->high;
        begin = middle + 1;
    }
    return evaluated;
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
    std::vector<std::uint16_t> &bins;
    std::vector<Scored> &items;

    std::int32_t index_of(std::size_t i) const { return index ? index[i] : static_cast<std::int32_t>(i); }

    template <class Bins>
    std::int64_t run(const Bins &edges) {
        if (bins.size() < n) bins.resize(n);
        const std::size_t chunks = std::clamp<std::size_t>(n / kPerThread, 1, threads);
        std::vector<std::int64_t> counts(chunks * edges.count, 0);
        in_threads(chunks, threads, [&](std::size_t chunk) {
            std::int64_t *count = counts.data() + chunk * edges.count;
            constexpr std::size_t block = 2048;  // its bins are counted while they are in the cache
            for (std::size_t at = n * chunk / chunks; at < n * (chunk + 1) / chunks; at += block) {
                const std::size_t stop = std::min(at + block, n * (chunk + 1) / chunks);
                edges(scores + at, stop - at, bins.data() + at);
                for (std::size_t i = at; i < stop; ++i) ++count[bins[i]];
            }
        });

        std::vector<Bin> filled;  // in descending order of score
        std::int64_t position = 1;
        for (std::size_t name = edges.count; name-- > 0;) {
            std::int64_t count = 0;
            for (std::size_t chunk = 0; chunk < chunks; ++chunk) count += counts[chunk * edges.count + name];
            if (count == 0) continue;
            filled.push_back({position, count, static_cast<std::uint32_t>(name), 0, 0});
            position += count;
        }
        std::int64_t evaluated =
            bound_ranks(task, edges, filled.data(), filled.data() + filled.size(), 1, task.n_pos + 1);

        // Where each chunk puts its items of an open bin; counts become those places.
        std::vector<double> weight_of_bin(edges.count, -1.0);
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
            for (std::size_t i = n * chunk / chunks; i < n * (chunk + 1) / chunks; ++i) {
                const double weight = weight_of_bin[bins[i]];
                if (weight >= 0.0)
                    sink.weights[index_of(i)] = weight;
                else
                    items[static_cast<std::size_t>(next[bins[i]]++)] = {scores[i], index_of(i)};
            }
        });

        Scored *begin = items.data();
        for (const Bin &bin : filled) {
            if (bin.low == bin.high) continue;
            // Equal scores stand in the order of their indices already.
            Scored *end = begin + bin.count;
            const bool equal = std::all_of(begin, end, [&](const Scored &item) { return item.score == begin->score; });
            evaluated += rank_by_quicksort(task, sink, bin.first, begin, end, bin.low, bin.high, equal);
            begin = end;
        }
        return evaluated;
    }
};

}  // namespace

std::int64_t Bucket::rank(const Task &task, const Sink &sink, const double *scores) {
    evaluated_ = 0;
    if (n_neg_ < kFew)
        rank_few(task, sink, scores, nullptr, n_neg_);
    else {
        sample(scores, n_neg_);
        if (!rank_survivors(task, sink, scores)) rank_all(task, sink, scores, nullptr, n_neg_);
    }
    violating_ = static_cast<std::int64_t>(n_neg_) - sink.counts[task.n_pos + 1];
    return evaluated_;
}

void Bucket::sample(const double *scores, std::size_t n) {
    const std::size_t size = std::min(kSample, n);
    sample_.resize(size);
    for (std::size_t i = 0; i < size; ++i) sample_[i] = scores[n / size * i];
    std::sort(sample_.begin(), sample_.end());
}

bool Bucket::rank_survivors(const Task &task, const Sink &sink, const double *scores) {
    const auto n = static_cast<double>(n_neg_);
    const double share = static_cast<double>(violating_) / n;
    if (violating_ < 0 || share > 0.2) return false;
    // Three standard deviations of the sample's count, and a tenth for what the scores have moved.
    const auto size = static_cast<double>(sample_.size());
    const double guess = 1.1 * share * size + 3.0 * std::sqrt(1.1 * share * size) + 3.0;
    const double threshold = sample_[sample_.size() - static_cast<std::size_t>(guess)];
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
        rank_few(task, sink, survivor_scores_.data(), survivors_.data(), kept);
    else {
        sample(survivor_scores_.data(), kept);
        rank_all(task, sink, survivor_scores_.data(), survivors_.data(), kept);
    }
    return true;
}

void Bucket::rank_few(const Task &task, const Sink &sink, const double *scores, const std::int32_t *index,
                      std::size_t n) {
    if (items_.size() < n) items_.resize(n);
    for (std::size_t i = 0; i < n; ++i) items_[i] = {scores[i], index ? index[i] : static_cast<std::int32_t>(i)};
    evaluated_ += rank_by_quicksort(task, sink, 1, items_.data(), items_.data() + n, 1, task.n_pos + 1);
}

void Bucket::rank_all(const Task &task, const Sink &sink, const double *scores, const std::int32_t *index,
                      std::size_t n) {
    Pass pass{task, sink, scores, index, n, threads_, bins_, items_};
    const std::size_t tail = sample_.size() / 512;
    const double inner_low = sample_[tail], inner_high = sample_[sample_.size() - 1 - tail];
    // Half as wide again: the tails are where ranks change fastest.
    const double margin = 0.25 * (inner_high - inner_low);
    const double low = inner_low - margin, high = inner_high + margin;
    if (even_enough(sample_, low, high)) {
        const std::size_t count = std::clamp<std::size_t>(n / 32, 256, kMostBins);
        const double width = (high - low) / static_cast<double>(count);
        const double size = std::max(std::abs(low), std::abs(high));
        const double slack = 1e-9 * width + 8.0 * std::numeric_limits<double>::epsilon() * size;
        evaluated_ += pass.run(EvenBins{low, 1.0 / width, static_cast<double>(count - 1), count, slack});
        return;
    }
    SplitterBins bins;
    std::size_t filled = 0;
    for (std::size_t p = 1; p <= kSplitters; ++p) {
        const double splitter = sample_[p * sample_.size() / (kSplitters + 1)];
        if (filled == 0 || splitter > bins.splitters[filled - 1]) bins.splitters[filled++] = splitter;
    }
    std::fill(bins.splitters + filled, bins.splitters + kSplitters, kInfinity);
    evaluated_ += pass.run(bins);
}

}  // namespace apsvm
