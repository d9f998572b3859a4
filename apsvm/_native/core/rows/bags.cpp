#include "rows/bags.hpp"

#include <algorithm>
#include <vector>

#include "support/threads.hpp"

namespace apsvm {

namespace {

// Below this many rows starting a thread costs more than it saves.
constexpr std::size_t kRowsPerThread = 1u << 17;

// Runs body(first bag, last bag) on runs of bags that hold about as many rows each.
template <class Body>
void in_runs_of_bags(std::span<const std::int64_t> offsets, std::size_t threads, Body body) {
    const std::size_t bags = offsets.size() - 1;
    const auto n = static_cast<std::size_t>(offsets[bags]);
    threads = std::clamp<std::size_t>(n / kRowsPerThread, 1, threads);
    in_threads(threads, threads, [&](std::size_t t) {
        const auto bag_at = [&](std::size_t part) {
            const auto row = static_cast<std::int64_t>(n * part / threads);
            return static_cast<std::size_t>(std::lower_bound(offsets.begin(), offsets.end(), row) - offsets.begin());
        };
        body(bag_at(t), std::min(bags, bag_at(t + 1)));
    });
}

}  // namespace

bool bags_exist(std::span<const std::int64_t> offsets, std::size_t n) {
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != static_cast<std::int64_t>(n)) return false;
    for (std::size_t b = 1; b < offsets.size(); ++b)
        if (offsets[b] <= offsets[b - 1]) return false;
    return true;
}

void best_of_bags(std::span<const double> scores, std::span<const std::int64_t> offsets, std::int64_t *rows,
                  std::size_t threads) {
    in_runs_of_bags(offsets, threads, [&](std::size_t first, std::size_t last) {
        for (std::size_t b = first; b < last; ++b) {
            const auto begin = static_cast<std::size_t>(offsets[b]), end = static_cast<std::size_t>(offsets[b + 1]);
            std::size_t row = begin;
            double largest = scores[begin];
            for (std::size_t i = begin + 1; i < end; ++i)
                if (scores[i] > largest) {
                    largest = scores[i];
                    row = i;
                }
            rows[b] = static_cast<std::int64_t>(row);
        }
    });
}

void top_of_bags(std::span<const double> scores, std::span<const std::int64_t> offsets,
                 std::span<const std::int64_t> counts, std::int64_t *rows, std::size_t threads) {
    std::vector<std::size_t> places(counts.size() + 1, 0);
    for (std::size_t b = 0; b < counts.size(); ++b) places[b + 1] = places[b] + static_cast<std::size_t>(counts[b]);
    in_runs_of_bags(offsets, threads, [&](std::size_t first, std::size_t last) {
        std::vector<std::int64_t> order;
        for (std::size_t b = first; b < last; ++b) {
            order.clear();
            for (std::int64_t i = offsets[b]; i < offsets[b + 1]; ++i) order.push_back(i);
            const auto end = order.begin() + counts[b];
            if (end != order.end())
                std::nth_element(order.begin(), end - 1, order.end(), [&](std::int64_t i, std::int64_t j) {
                    const double a = scores[static_cast<std::size_t>(i)], other = scores[static_cast<std::size_t>(j)];
                    return a > other || (a == other && i < j);
                });
            std::sort(order.begin(), end);
            std::copy(order.begin(), end, rows + places[b]);
        }
    });
}

}  // namespace apsvm
