#include "solvers/qp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr double kNoCurvature = 1e-13;  // relative to the planes' squared norms: below, curvature is rounding
constexpr double kNoPivot = 1e-15;      // the same for a plane that has an α already
constexpr int kRefinements = 4;         // Newton steps on one S before what is left of r is taken for rounding
constexpr double kProgress = 1e-2;      // what a Newton step leaves of r, if the factor is accurate
constexpr double kOtherScale = 16.0;    // σ may be this many times off the planes' squared norms
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Vector = std::vector<double>;

double dot(const Vector &a, const Vector &b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

// total −= Σ factors_t · rows_t, four rows at a time.
APSVM_CLONES void subtract(const double *const *rows, const double *factors, std::size_t n_rows,
                           double *__restrict total, std::size_t n) {
    std::size_t t = 0;
    for (; t + 4 <= n_rows; t += 4) {
        const double *const a = rows[t], *const b = rows[t + 1], *const c = rows[t + 2], *const d = rows[t + 3];
        const double x = factors[t], y = factors[t + 1], z = factors[t + 2], v = factors[t + 3];
        for (std::size_t i = 0; i < n; ++i) total[i] -= (x * a[i] + y * b[i]) + (z * c[i] + v * d[i]);
    }
    for (; t < n_rows; ++t) {
        const double *const a = rows[t];
        const double x = factors[t];
        for (std::size_t i = 0; i < n; ++i) total[i] -= x * a[i];
    }
}

// One solve. The null plane is the last variable, and in force if there is any soft plane.
class Run {
public:
    Run(const WorkingSetProblem &problem, std::span<const double> start, double tolerance, Support &kept)
        : problem_(problem),
          n_(problem.offsets.size()),
          kept_(kept),
          factor_(kept.factor),
          offsets_(problem.offsets.begin(), problem.offsets.end()),
          alpha_(start.begin(), start.end()),
          soft_(n_ + 1),
          supported_(n_ + 1),
          gradient_(n_ + 1) {
        const double C = problem.C;
        double used = 0.0, size = 0.0;
        for (std::size_t t = 0; t < n_; ++t) {
            soft_[t] = problem.soft[t];
            capped_ |= problem.soft[t];
            if (problem.soft[t]) used += alpha_[t];
        }
        offsets_.push_back(0.0);
        soft_[n_] = capped_;
        alpha_.push_back(capped_ ? std::max(C - used, 0.0) : 0.0);
        for (const double value : alpha_) size += value;
        // What a unit of α outside the optimum may gain before the gap shows it.
        entry_ = 0.1 * tolerance / std::max(C, size);
    }

    Vector alpha() {
        adopt();
        for (std::size_t round = 0; round < 50 * alpha_.size() + 100; ++round) {
            maximise_on_support();
            std::size_t entering = 0;
            double most = -kInfinity;
            const double level = level_of(find_pivot());
            for (std::size_t t = 0; t < n_ + capped_; ++t) {
                const double reduced = gradient_[t] - (soft_[t] ? level : 0.0);
                if (!supported_[t] && reduced > most) {
                    most = reduced;
                    entering = t;
                }
            }
            if (!(most > entry_) || !enter(entering, 1.0)) break;
        }
        leave_support();
        alpha_.pop_back();
        return std::move(alpha_);
    }

private:
    double gram(std::size_t i, std::size_t j) const {
        return i < n_ && j < n_ ? problem_.gram[i * problem_.stride + j] : 0.0;
    }
    double shifted(std::size_t i, std::size_t j) const {
        return gram(i, j) + (soft_[i] && soft_[j] ? kept_.sigma : 0.0);
    }

    // What σ should be like: the median of the squared norms of the planes that have an α, or of all of them.
    double typical_square() const {
        Vector squares;
        for (const bool all : {false, true}) {
            for (std::size_t t = 0; t < n_; ++t)
                if (soft_[t] && gram(t, t) > 0.0 && (all || alpha_[t] > 0.0)) squares.push_back(gram(t, t));
            if (!squares.empty()) break;
        }
        if (squares.empty()) return 1.0;
        const auto middle = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / 2);
        std::nth_element(squares.begin(), middle, squares.end());
        return *middle;
    }

    // Of the planes of S and t.
    double largest_square(std::size_t t) const {
        double largest = gram(t, t);
        for (const std::size_t other : support_) largest = std::max(largest, gram(other, other));
        return largest;
    }

    // Takes over what was kept of the planes that have an α now, and factors the others in.
    void adopt() {
        find_kept();
        const double scale = typical_square();
        if (!(kept_.sigma * kOtherScale > scale && kept_.sigma < kOtherScale * scale)) {
            support_.clear();
            factor_.clear();
            kept_.sigma = scale;
        }
        unit_.resize(support_.size());
        for (std::size_t i = 0; i < support_.size(); ++i) unit_[i] = soft_[support_[i]];
        factor_.solve_forward(unit_.data());
        for (std::size_t i = support_.size(); i-- > 0;)
            if (!(alpha_[support_[i]] > 0.0)) remove(i, {});
        for (const std::size_t t : support_) supported_[t] = true;
        for (std::size_t t = 0; t < n_ + capped_; ++t)
            if (alpha_[t] > 0.0 && !supported_[t]) enter(t, -1.0);
    }

    // The kept support in this problem's numbers; nothing, unless all of it is there.
    void find_kept() {
        const std::span<const std::int64_t> names = problem_.names;
        const std::vector<std::int64_t> members = std::exchange(kept_.names, {});
        if (members.size() != factor_.size()) factor_.clear();  // a solve was broken off
        if (factor_.size() == 0) return;
        for (const std::int64_t name : members) {
            const auto place = std::lower_bound(names.begin(), names.end(), name);
            if (name == Support::kNullPlane && capped_)
                support_.push_back(n_);
            else if (place != names.end() && *place == name)
                support_.push_back(static_cast<std::size_t>(place - names.begin()));
            else {
                support_.clear();
                factor_.clear();
                return;
            }
        }
    }

    void leave_support() {
        if (problem_.names.empty()) return factor_.clear();
        for (const std::size_t t : support_) kept_.names.push_back(t < n_ ? problem_.names[t] : Support::kNullPlane);
    }

    // The same support, factored from scratch.
    void refactor() {
        const std::vector<std::size_t> members = std::move(support_);
        support_.clear();
        unit_.clear();
        factor_.clear();
        kept_.sigma = typical_square();
        for (const std::size_t t : members) supported_[t] = false;
        for (const std::size_t t : members)
            if (alpha_[t] > 0.0) enter(t, -1.0);
    }

    // g = b − Gα
    void find_gradient() {
        gradient_ = offsets_;
        subtract_product(problem_, std::span(alpha_.data(), n_), std::span(gradient_.data(), n_));
    }

    // The place in S of the soft variable with the largest α, or −1.
    std::ptrdiff_t find_pivot() const {
        std::ptrdiff_t pivot = -1;
        double most = 0.0;
        for (std::size_t i = 0; i < support_.size(); ++i)
            if (soft_[support_[i]] && alpha_[support_[i]] > most) {
                most = alpha_[support_[i]];
                pivot = static_cast<std::ptrdiff_t>(i);
            }
        return pivot;
    }

    double level_of(std::ptrdiff_t pivot) const { return pivot >= 0 ? gradient_[support_[pivot]] : 0.0; }

    // Newton steps on S, each cut short where a variable reaches zero, until the reduced gradient vanishes.
    void maximise_on_support() {
        double before = kInfinity;
        bool fresh = false;
        for (int refinements = 0; refinements < kRefinements;) {
            find_gradient();
            const double level = level_of(find_pivot());
            Vector reduced(support_.size());
            double most = 0.0;
            for (std::size_t i = 0; i < support_.size(); ++i) {
                reduced[i] = gradient_[support_[i]] - (soft_[support_[i]] ? level : 0.0);
                most = std::max(most, std::abs(reduced[i]));
            }
            if (!(most > entry_)) return;
            if (most > kProgress * before && !fresh) {
                fresh = true;
                before = kInfinity;
                refactor();
                continue;
            }
            before = most;
            factor_.solve_forward(reduced.data());
            if (walk_down(reduced)) {
                before = kInfinity;
                refinements = 0;
            } else {
                ++refinements;
            }
        }
    }

    // Steps to the maximum on S, `right` being U⁻ᵀr. What is left of r after a step cut short is a share of it, except for
    // a multiple of e, which makes no difference. True if a variable has left.
    bool walk_down(Vector &right) {
        bool left = false;
        while (!support_.empty()) {
            const double squares = dot(unit_, unit_);
            const double multiplier = squares > 0.0 ? dot(unit_, right) / squares : 0.0;
            Vector step(right);
            for (std::size_t i = 0; i < step.size(); ++i) step[i] -= multiplier * unit_[i];
            factor_.solve_backward(step.data());
            const auto [length, leaving] = walk(step, nullptr, 1.0);
            if (leaving < 0) break;
            remove(static_cast<std::size_t>(leaving), &right);
            for (double &value : right) value *= 1.0 - length;
            left = true;
        }
        return left;
    }

    // Takes `t` into S. Where its plane depends on those in S, α_t first moves along the direction of no curvature, up
    // (sign 1) or down (−1), until one of them leaves, or t itself is at zero. False if it could go on for ever, at the
    // limits of rounding; t then stays outside.
    bool enter(std::size_t t, double sign) {
        const double least = sign > 0.0 ? kNoCurvature * largest_square(t) : kNoPivot * shifted(t, t);
        while (true) {
            Vector above(support_.size());
            for (std::size_t i = 0; i < support_.size(); ++i) above[i] = shifted(support_[i], t);
            factor_.solve_forward(above.data());
            const double rest = shifted(t, t) - dot(above, above);
            const double lacking = (soft_[t] ? 1.0 : 0.0) - dot(unit_, above), squares = dot(unit_, unit_);
            if (rest > 0.0 && rest + (squares > 0.0 ? lacking * lacking / squares : 0.0) > least) {
                factor_.append(above, rest);
                unit_.push_back(lacking / std::sqrt(rest));
                support_.push_back(t);
                supported_[t] = true;
                return true;
            }
            const double multiplier = squares > 0.0 ? lacking / squares : 0.0;
            for (std::size_t i = 0; i < above.size(); ++i) above[i] = -sign * (above[i] + multiplier * unit_[i]);
            factor_.solve_backward(above.data());
            const Outside outside{t, sign};
            const std::ptrdiff_t leaving = walk(above, &outside, kInfinity).leaving;
            if (leaving == kEndless) {
                if (alpha_[t] > 0.0 && sign > 0.0) enter(t, -1.0);
                return false;
            }
            if (leaving == kOutside) return true;
            remove(static_cast<std::size_t>(leaving), {});
        }
    }

    // A variable that moves with those in S, and how.
    struct Outside {
        std::size_t variable;
        double step;
    };
    struct Walk {
        double length;
        std::ptrdiff_t leaving;  // a place in S, or one of these
    };
    static constexpr std::ptrdiff_t kNobody = -1, kOutside = -2, kEndless = -3;

    // Moves along `step` (on S; the pivot keeps the sum), at most `longest` times its length, until a variable reaches
    // zero. A walk without end moves nothing.
    Walk walk(Vector &step, const Outside *outside, double longest) {
        if (const std::ptrdiff_t pivot = find_pivot(); pivot >= 0) {
            double sum = outside && soft_[outside->variable] ? outside->step : 0.0;
            step[pivot] = 0.0;
            for (std::size_t i = 0; i < step.size(); ++i)
                if (soft_[support_[i]]) sum += step[i];
            step[pivot] = -sum;
        }
        Walk result{longest, kNobody};
        const auto shorten = [&](double alpha, double change, std::ptrdiff_t place) {
            if (change < 0.0 && alpha < -change * result.length) result = {alpha / -change, place};
        };
        for (std::size_t i = 0; i < step.size(); ++i)
            shorten(alpha_[support_[i]], step[i], static_cast<std::ptrdiff_t>(i));
        if (outside) shorten(alpha_[outside->variable], outside->step, kOutside);
        if (!std::isfinite(result.length)) return {0.0, kEndless};
        const auto move = [&](std::size_t t, double change) {
            alpha_[t] = std::max(alpha_[t] + result.length * change, 0.0);
        };
        for (std::size_t i = 0; i < step.size(); ++i) move(support_[i], step[i]);
        if (outside) move(outside->variable, outside->step);
        if (result.leaving >= 0) alpha_[support_[result.leaving]] = 0.0;
        if (result.leaving == kOutside) alpha_[outside->variable] = 0.0;
        return result;
    }

    // S without its member at `place`; `rider` is a U⁻ᵀx that comes along.
    void remove(std::size_t place, Vector *rider) {
        Vector *const riders[] = {&unit_, rider};
        factor_.remove(place, std::span(riders, rider ? 2 : 1));
        supported_[support_[place]] = false;
        support_.erase(support_.begin() + static_cast<std::ptrdiff_t>(place));
    }

    const WorkingSetProblem &problem_;
    std::size_t n_;
    Support &kept_;
    SupportFactor &factor_;
    Vector offsets_, alpha_;
    std::vector<char> soft_, supported_;
    std::vector<std::size_t> support_;  // S, in the order of the factor's rows
    Vector unit_;                       // U⁻ᵀe
    Vector gradient_;
    bool capped_ = false;
    double entry_ = 0.0;
};

}  // namespace

void subtract_product(const WorkingSetProblem &problem, std::span<const double> alpha, std::span<double> total) {
    std::vector<const double *> rows;
    Vector factors;
    for (std::size_t t = 0; t < alpha.size(); ++t)
        if (alpha[t] != 0.0) {
            rows.push_back(problem.gram + t * problem.stride);
            factors.push_back(alpha[t]);
        }
    subtract(rows.data(), factors.data(), rows.size(), total.data(), total.size());
}

std::vector<double> solve_active_set(const WorkingSetProblem &problem, std::span<const double> start, double tolerance,
                                     Support &kept) {
    return Run(problem, start, tolerance, kept).alpha();
}

void make_feasible(std::span<const bool> soft, double C, std::span<double> alpha) {
    double total = 0.0;
    for (std::size_t t = 0; t < alpha.size(); ++t) {
        if (!(alpha[t] > 0.0)) alpha[t] = 0.0;
        if (soft[t]) total += alpha[t];
    }
    if (!(total > C)) return;
    for (std::size_t t = 0; t < alpha.size(); ++t)
        if (soft[t]) alpha[t] *= C / total;
}

namespace {

double gap_of(const WorkingSetProblem &problem, const Vector &alpha) {
    Vector gradient(problem.offsets.begin(), problem.offsets.end());
    subtract_product(problem, alpha, gradient);
    double slack = 0.0, lacking = 0.0, sum = 0.0;
    for (std::size_t t = 0; t < alpha.size(); ++t) {
        double &most = problem.soft[t] ? slack : lacking;
        most = std::max(most, gradient[t]);
        sum += alpha[t];
    }
    const double gap = problem.C * slack - dot(alpha, gradient);  // NaN where any entry is
    const double result = (gap < 0.0 ? 0.0 : gap) + lacking * std::max(problem.C, sum);
    return std::isnan(result) ? kInfinity : result;
}

}  // namespace

WorkingSetSolution solve_to_gap(const WorkingSetProblem &problem, std::span<const double> start, double tolerance,
                                Support &kept) {
    Vector begin(start.begin(), start.end());
    make_feasible(problem.soft, problem.C, begin);
    WorkingSetSolution solution{solve_active_set(problem, begin, tolerance, kept), 0.0};
    make_feasible(problem.soft, problem.C, solution.alpha);
    solution.gap = gap_of(problem, solution.alpha);
    if (solution.gap > tolerance) {  // at the limits of rounding
        const double before = gap_of(problem, begin);
        if (before < solution.gap) return {std::move(begin), before};
    }
    return solution;
}

}  // namespace apsvm
