#include "oracles/papers.hpp"

#include <functional>

namespace apsvm {

namespace {

using RankOf = std::function<std::int32_t(std::int64_t j, double score)>;

// The largest maximiser over 1..P+1 where g_j is non-decreasing on 1..min(P, j).
std::int32_t searched_rank(const Problem &problem, std::int64_t j, double score) {
    const std::int32_t n_pos = problem.n_pos;
    const auto edge = static_cast<std::int32_t>(std::min<std::int64_t>(n_pos, j));
    const std::int32_t first = problem.first_gain(j, score, 1, edge + 1);
    if (edge == n_pos) return first;
    double value = 0.0, best = 0.0;
    std::int32_t rank = n_pos + 1;
    for (std::int32_t k = n_pos; k > edge; --k) {
        value += problem.gain(j, k, score);
        if (value > best) {
            best = value;
            rank = k;
        }
    }
    for (std::int32_t k = edge; k >= first; --k) value += problem.gain(j, k, score);
    return first <= edge && value > best ? first : rank;
}

RankOf rank_of(const Problem &problem, RankSearch search) {
    if (search == RankSearch::binary)
        return [&](std::int64_t j, double score) { return searched_rank(problem, j, score); };
    return [&](std::int64_t j, double score) { return problem.best_rank(j, score, 1, problem.n_pos + 1); };
}

}  // namespace

std::int64_t rank_in_order(const Problem &problem, const Sink &sink, Scored *begin, Scored *end, RankSearch search) {
    const RankOf best = rank_of(problem, search);
    std::sort(begin, end);
    for (Scored *item = begin; item != end; ++item) sink.take(*item, best(item - begin + 1, item->score));
    return end - begin;
}

std::int64_t rank_selected(const Problem &problem, const Sink &sink, Scored *begin, Scored *end, RankSearch search) {
    const RankOf best = rank_of(problem, search);
    std::int64_t evaluated = 0;
    Scored *low = begin, *high = end;  // the boundary lies in [low, high]
    while (low < high) {
        Scored *middle = low + (high - low) / 2;
        std::nth_element(low, middle, high);
        ++evaluated;
        if (best(middle - begin + 1, middle->score) == problem.n_pos + 1)
            high = middle;
        else
            low = middle + 1;
    }
    sink.take(low, end, problem.n_pos + 1);
    return evaluated + rank_in_order(problem, sink, begin, low, search);
}

}  // namespace apsvm
