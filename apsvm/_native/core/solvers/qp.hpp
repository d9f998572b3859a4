// The active-set method for the working-set QP; apsvm/solvers/qp/active_set.py says what it does and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "solvers/support_factor.hpp"

namespace apsvm {

// max_α  b·α − ½ αᵀGα,   α ≥ 0,  Σ_soft α_t ≤ C, for n planes.
struct WorkingSetProblem {
    const double *gram;                   // G, row by row
    std::size_t stride;                   // from one row of G to the next
    std::span<const double> offsets;      // b (n,)
    std::span<const bool> soft;           // (n,)
    double C;
    std::span<const std::int64_t> names;  // (n,), ascending, or nothing: planes of the same name are the same
};

// What one solve leaves for the next: its support by name, in the order of the factor's rows, and the factor of
// G_ij + σ e_i e_j there, e = 1 for soft planes. Of it nothing depends on b or C.
struct Support {
    static constexpr std::int64_t kNullPlane = -1;

    std::vector<std::int64_t> names;
    double sigma = 0.0;
    SupportFactor factor;
};

// α (n,), from a feasible start (n,); a unit of α outside the optimum may gain a tenth of the tolerance. `kept` is the
// support of the solve before, or empty, and becomes that of this one.
std::vector<double> solve_active_set(const WorkingSetProblem &problem, std::span<const double> start, double tolerance,
                                     Support &kept);

// Cuts off what is negative, or not a number, and scales the soft planes' α, both (n,), to a sum of at most C.
void make_feasible(std::span<const bool> soft, double C, std::span<double> alpha);

// A feasible α, and how far from optimal it can be: Problem.gap of apsvm/solvers/qp/base.py.
struct WorkingSetSolution {
    std::vector<double> alpha;
    double gap;
};

// The same with its gap, the start made feasible; the start itself, where that is the better one and the tolerance is
// not reached.
WorkingSetSolution solve_to_gap(const WorkingSetProblem &problem, std::span<const double> start, double tolerance,
                                Support &kept);

// total −= Gα, both (n,).
void subtract_product(const WorkingSetProblem &problem, std::span<const double> alpha, std::span<double> total);

}  // namespace apsvm
