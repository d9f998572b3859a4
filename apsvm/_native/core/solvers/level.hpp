// A step to a level of the model, by working-set QPs; apsvm/solvers/levels.py says what it is.
#pragma once

#include <span>
#include <vector>

#include "solvers/qp.hpp"

namespace apsvm {

// m(w) = ½‖w − c‖² + C·max(0, max_t (a_t·w + b_t)), as `plain` has it (its offsets are a_t·c + b_t), and a point.
struct Level {
    WorkingSetProblem plain;
    std::span<const double> offsets_from_point;  // a_t·point + b_t (n,)
    double distance_squared;                     // ‖point − c‖²
    double lowest, highest;                      // m is to come out between these
};

struct LevelStep {
    std::vector<double> alpha;  // (n,); w = (1 − θ)·point + θ·c − Σ α_t a_t
    double theta;
    double next_ratio;          // where to begin next time
    bool finite;
};

// What one step leaves for the next: α besides, in the order of the support's names.
struct LastStep {
    Support support;
    std::vector<double> alpha;
};

// θ is looked for from θ/(1 − θ) = `ratio` on.
LevelStep step_to_level(const Level &level, double ratio, double tolerance, LastStep &last);

}  // namespace apsvm
