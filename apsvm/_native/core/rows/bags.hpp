// Bags of instances: the best instance of each, and the few best. Bag b is the rows offsets[b] … offsets[b + 1] − 1.
// Of equal scores the first instance is the better one; no result depends on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace apsvm {

// Whether the boundaries begin at 0, end at n and enclose one row or more each.
bool bags_exist(std::span<const std::int64_t> offsets, std::size_t n);

// Of each bag the row of the largest score.
void best_of_bags(std::span<const double> scores, std::span<const std::int64_t> offsets, std::int64_t *rows,
                  std::size_t threads);

// Of each bag the counts[b] best rows, 1 ≤ counts[b] ≤ its size, in ascending order, one bag after the other.
void top_of_bags(std::span<const double> scores, std::span<const std::int64_t> offsets,
                 std::span<const std::int64_t> counts, std::int64_t *rows, std::size_t threads);

}  // namespace apsvm
