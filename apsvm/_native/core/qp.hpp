// The active-set method for the working-set QP; apsvm/solvers/qp/active_set.py says what it does and why.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace apsvm {

// max_α  b·α − ½ αᵀGα,   α ≥ 0,  Σ_soft α_t ≤ C, for n planes.
struct WorkingSetProblem {
    const double *gram;               // G, row by row
    std::size_t stride;               // from one row of G to the next
    std::span<const double> offsets;  // b (n,)
    std::span<const bool> soft;       // (n,)
    double C;
};

// α (n,), from a feasible start (n,); a unit of α outside the optimum may gain a tenth of the tolerance.
std::vector<double> solve_active_set(const WorkingSetProblem &problem, std::span<const double> start, double tolerance);

}  // namespace apsvm
