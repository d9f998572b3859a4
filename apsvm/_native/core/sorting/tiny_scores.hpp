// Scores so small that products of theirs are no normal numbers, over which a processor takes a hundred times as long.
// Multiplied by a power of two, exactly, they are scores like others.
#pragma once

#include <cstddef>
#include <vector>

namespace apsvm {

inline constexpr double kTiny = 0x1p-500, kLift = 0x1p500;

// Whether all are below kTiny, except for their sign.
bool all_tiny(const double *scores, std::size_t n);
bool all_zero(const double *scores, std::size_t n);

// The scores, tiny ones, times kLift, in `room`.
const double *lifted(const double *scores, std::size_t n, std::vector<double> &room);

}  // namespace apsvm
