#include "oracles/quicksort.hpp"

namespace apsvm {

namespace {

// So few are sorted faster than they are halved.
constexpr std::ptrdiff_t kSortedWhole = 32;

// More ranks than this for each item are halved rather than walked through.
constexpr std::ptrdiff_t kStepsPerItem = 8;

// Ranks of sorted items from position j ≥ high − 1 on, where each g_j is non-decreasing up to the rank j: as ranks grow
// with j, one walk from `low` to `high` finds them all.
std::int64_t walk(const Problem &problem, const Sink &sink, std::int64_t j, Scored *begin, Scored *end,
                  std::int32_t low, std::int32_t high) {
    for (Scored *item = begin; item != end;) {
        while (low < high && !(problem.gain(j, low, item->score) > 0.0)) ++low;
        if (low == high) {
            sink.take(item, end, high);
            return item - begin;
        }
        Scored *const first = item++;
        for (++j; item != end && problem.gain(j, low, item->score) > 0.0; ++item) ++j;
        sink.take(first, item, low);
    }
    return end - begin;
}

}  // namespace

std::int64_t rank_by_quicksort(const Problem &problem, const Sink &sink, std::int64_t j, Scored *begin, Scored *end,
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
        if (sorted && problem.bisect && high <= j + 1 && high - low <= kStepsPerItem * (end - begin))
            return evaluated + walk(problem, sink, j, begin, end, low, high);
        Scored *middle = begin + (end - begin) / 2;
        if (!sorted) std::nth_element(begin, middle, end);
        const std::int32_t rank = problem.best_rank(j + (middle - begin), middle->score, low, high);
        sink.take(*middle, rank);
        evaluated += 1 + rank_by_quicksort(problem, sink, j, begin, middle, low, rank, sorted);
        j += middle + 1 - begin;
        begin = middle + 1;
        low = rank;
    }
    return evaluated;
}

std::int64_t rank_by_walking(const Problem &problem, const Sink &sink, Scored *items, std::size_t n) {
    const std::size_t head = std::min(n, static_cast<std::size_t>(problem.n_pos) - 1);  // positions below P
    const std::int32_t bound =
        head < n ? problem.best_rank(problem.n_pos, items[head].score, 1, problem.n_pos + 1) : problem.n_pos + 1;
    return rank_by_quicksort(problem, sink, 1, items, items + head, 1, bound, true) +
           rank_by_quicksort(problem, sink, problem.n_pos, items + head, items + n, bound, problem.n_pos + 1, true);
}

}  // namespace apsvm
