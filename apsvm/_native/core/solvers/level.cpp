#include "solvers/level.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace apsvm {

namespace {

constexpr int kMostProblems = 4;   // for one step
constexpr double kFactor = 4.0;    // of θ/(1 − θ), until the level lies between two
constexpr double kMostRatio = 1e12;  // beyond, and below its inverse, θ is 1 or 0 to rounding
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The last step's α, for the planes there are now.
std::vector<double> last_alpha(std::span<const std::int64_t> names, const LastStep &last) {
    std::vector<double> alpha(names.size());
    for (std::size_t i = 0; i < std::min(last.alpha.size(), last.support.names.size()); ++i) {
        const auto place = std::lower_bound(names.begin(), names.end(), last.support.names[i]);
        if (place != names.end() && *place == last.support.names[i]) alpha[place - names.begin()] = last.alpha[i];
    }
    return alpha;
}

void scale_to_cap(std::vector<double> &alpha, std::span<const bool> soft, double C) {
    double total = 0.0;
    for (std::size_t t = 0; t < alpha.size(); ++t) total += soft[t] ? alpha[t] : 0.0;
    if (!(total > C)) return;
    for (std::size_t t = 0; t < alpha.size(); ++t)
        if (soft[t]) alpha[t] *= C / total;
}

// m at the solution for θ; `offsets` are those it is of.
double model(const Level &level, double theta, const std::vector<double> &offsets, const std::vector<double> &alpha) {
    const WorkingSetProblem &plain = level.plain;
    const std::size_t n = alpha.size();
    const double rest = 1.0 - theta;
    std::vector<double> values(offsets);
    subtract_product(plain, alpha, values);
    double squares = rest * rest * level.distance_squared, slack = 0.0;
    for (std::size_t t = 0; t < n; ++t) {
        squares += alpha[t] * (offsets[t] - values[t] - 2.0 * rest * (level.offsets_from_point[t] - plain.offsets[t]));
        if (plain.soft[t]) slack = std::max(slack, values[t]);
    }
    return 0.5 * squares + plain.C * slack;
}

double between(double lowest, double highest) {
    if (lowest == 0.0) return std::max(highest / kFactor, 1.0 / kMostRatio);
    return highest == kInfinity ? std::min(kFactor * lowest, kMostRatio) : std::sqrt(lowest * highest);
}

}  // namespace

LevelStep step_to_level(const Level &level, double ratio, double tolerance, LastStep &last) {
    const WorkingSetProblem &plain = level.plain;
    const std::size_t n = plain.offsets.size();
    LevelStep step{last_alpha(plain.names, last), 0.0, ratio, true};
    std::vector<double> offsets(n);
    double lowest = 0.0, highest = kInfinity;
    for (int problems = 0; problems < kMostProblems; ++problems) {
        step.theta = step.next_ratio / (1.0 + step.next_ratio);
        for (std::size_t t = 0; t < n; ++t)
            offsets[t] = (1.0 - step.theta) * level.offsets_from_point[t] + step.theta * plain.offsets[t];
        const WorkingSetProblem moved{plain.gram, plain.stride, offsets, plain.soft, step.theta * plain.C, plain.names};
        scale_to_cap(step.alpha, plain.soft, moved.C);
        step.alpha = solve_active_set(moved, step.alpha, tolerance, last.support);
        const double value = model(level, step.theta, offsets, step.alpha);
        step.finite = std::isfinite(value);
        if (!step.finite || (value >= level.lowest && value <= level.highest)) break;
        (value < level.lowest ? highest : lowest) = step.next_ratio;
        step.next_ratio = between(lowest, highest);
    }
    last.alpha.clear();
    for (const std::int64_t name : last.support.names) {
        const auto place = std::lower_bound(plain.names.begin(), plain.names.end(), name);
        last.alpha.push_back(name == Support::kNullPlane ? 0.0 : step.alpha[place - plain.names.begin()]);
    }
    return step;
}

}  // namespace apsvm
