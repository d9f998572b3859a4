// Where a quasi-Newton step goes; apsvm/solvers/quasi_newton.py says what it is for.
#pragma once

#include <span>
#include <vector>

namespace apsvm {

// A step, the change of the gradient over it, and their product, > 0; vectors of one length.
struct GradientChange {
    const double *step, *change;
    double product;
};

// −Hg by the two loops (Nocedal 1980), `history` from the oldest on; without history H is diagonal.
std::vector<double> newton_direction(std::span<const double> gradient, std::span<const double> diagonal,
                                     std::span<const GradientChange> history);

}  // namespace apsvm
