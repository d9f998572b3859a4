#include "qp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace apsvm {

namespace {

constexpr double kNoCurvature = 1e-13;  // relative to the planes' squared norms: below, curvature is rounding
constexpr int kRefinements = 4;         // Newton steps on one S before what is left of r is taken for rounding

using Indices = std::vector<std::size_t>;
using Vector = std::vector<double>;

double dot(const double *a, const double *b, std::size_t n) {
    double sum[4] = {0, 0, 0, 0};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
    for (; i < n; ++i) sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Lower Cholesky factor in place, row by row; false where the matrix is not positive definite.
bool factorise(Vector &matrix, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        double *const row = matrix.data() + i * n;
        for (std::size_t j = 0; j < i; ++j) row[j] = (row[j] - dot(row, matrix.data() + j * n, j)) / matrix[j * n + j];
        const double square = row[i] - dot(row, row, i);
        if (!(square > 0.0)) return false;
        row[i] = std::sqrt(square);
    }
    return true;
}

void solve_factorised(const Vector &factor, Vector &x) {
    const std::size_t n = x.size();
    for (std::size_t i = 0; i < n; ++i) x[i] = (x[i] - dot(factor.data() + i * n, x.data(), i)) / factor[i * n + i];
    for (std::size_t i = n; i-- > 0;) {
        x[i] /= factor[i * n + i];
        for (std::size_t j = 0; j < i; ++j) x[j] -= factor[i * n + j] * x[i];
    }
}

// One solve; the null plane is the last variable, and in force if there is any soft plane.
class Run {
public:
    Run(const WorkingSetProblem &problem, std::span<const double> start, double tolerance)
        : gram_(problem.gram),
          stride_(problem.stride),
          n_(problem.offsets.size()),
          offsets_(problem.offsets.begin(), problem.offsets.end()),
          alpha_(start.begin(), start.end()),
          soft_(n_ + 1),
          free_(n_ + 1),
          gradient_(n_ + 1) {
        const double C = problem.C;
        double used = 0.0, size = 0.0;
        for (std::size_t t = 0; t < n_; ++t) {
            soft_[t] = problem.soft[t];
            capped_ |= problem.soft[t];
            if (problem.soft[t]) used += alpha_[t];
            largest_ = std::max(largest_, at(t, t));
        }
        offsets_.push_back(0.0);
        soft_[n_] = capped_;
        alpha_.push_back(capped_ ? std::max(C - used, 0.0) : 0.0);
        for (std::size_t t = 0; t <= n_; ++t) {
            free_[t] = alpha_[t] > 0.0;
            size += alpha_[t];
        }
        noise_ = kNoCurvature * largest_;
        // What a unit of α outside the optimum may gain before the gap shows it.
        entry_ = 0.1 * tolerance / std::max(C, size);
    }

    Vector alpha() {
        for (std::size_t round = 0; round < 50 * alpha_.size() + 100; ++round) {
            maximise_on_free();
            find_gradient();
            const std::ptrdiff_t pivot = find_pivot();
            const double level = pivot >= 0 ? gradient_[pivot] : 0.0;
            std::size_t entering = 0;
            double most = -std::numeric_limits<double>::infinity();
            for (std::size_t t = 0; t < n_ + capped_; ++t) {
                const double reduced = gradient_[t] - (soft_[t] ? level : 0.0);
                if (!free_[t] && reduced > most) {
                    most = reduced;
                    entering = t;
                }
            }
            if (!(most > entry_) || !enter(entering, pivot)) break;
        }
        alpha_.pop_back();
        return std::move(alpha_);
    }

private:
    double at(std::size_t i, std::size_t j) const { return i < n_ && j < n_ ? gram_[i * stride_ + j] : 0.0; }

    // g = b − Gα
    void find_gradient() {
        gradient_ = offsets_;
        for (std::size_t t = 0; t < n_; ++t) {
            if (alpha_[t] == 0.0) continue;
            const double *const row = gram_ + t * stride_;
            for (std::size_t i = 0; i < n_; ++i) gradient_[i] -= alpha_[t] * row[i];
        }
    }

    // The free soft variable with the largest α, or −1.
    std::ptrdiff_t find_pivot() const {
        std::ptrdiff_t pivot = -1;
        double most = 0.0;
        for (std::size_t t = 0; t <= n_; ++t)
            if (free_[t] && soft_[t] && alpha_[t] > most) {
                most = alpha_[t];
                pivot = static_cast<std::ptrdiff_t>(t);
            }
        return pivot;
    }

    Indices others(std::ptrdiff_t pivot) const {
        Indices at;
        for (std::size_t t = 0; t <= n_; ++t)
            if (free_[t] && static_cast<std::ptrdiff_t>(t) != pivot) at.push_back(t);
        return at;
    }

    // H_ij
    double curvature(std::size_t i, std::size_t j, std::ptrdiff_t pivot) const {
        double value = at(i, j);
        if (pivot < 0) return value;
        const auto p = static_cast<std::size_t>(pivot);
        if (soft_[i]) value -= at(p, j);
        if (soft_[j]) value -= at(i, p);
        if (soft_[i] && soft_[j]) value += at(p, p);
        return value;
    }

    // H⁻¹ `right` on the variables `at`; where rounding made H indefinite, a ridge is added.
    Vector solved(const Indices &at, std::ptrdiff_t pivot, Vector right) {
        const std::size_t m = at.size();
        Vector matrix(m * m);
        double ridge = 0.0;
        while (true) {
            for (std::size_t i = 0; i < m; ++i) {
                for (std::size_t j = 0; j <= i; ++j) matrix[i * m + j] = curvature(at[i], at[j], pivot);
                matrix[i * m + i] += ridge;
            }
            if (factorise(matrix, m)) break;
            ridge = ridge > 0.0 ? 10.0 * ridge : noise_ > 0.0 ? noise_ : 1.0;
        }
        solve_factorised(matrix, right);
        return right;
    }

    // Newton steps on the free variables until their reduced gradient vanishes.
    void maximise_on_free() {
        for (int refinements = 0; refinements < kRefinements;) {
            const std::ptrdiff_t pivot = find_pivot();
            const Indices at = others(pivot);
            if (at.empty()) return;
            find_gradient();
            Vector reduced(at.size());
            double most = 0.0;
            for (std::size_t i = 0; i < at.size(); ++i) {
                reduced[i] = gradient_[at[i]] - (soft_[at[i]] && pivot >= 0 ? gradient_[pivot] : 0.0);
                most = std::max(most, std::abs(reduced[i]));
            }
            if (!(most > entry_)) return;
            // A smaller S: start afresh.
            refinements = walk(at, pivot, solved(at, pivot, std::move(reduced)), 1.0) ? 0 : refinements + 1;
        }
    }

    // Frees `entering`; exchanges it for another where its plane depends on the free ones. False if neither can be
    // done, at the limits of rounding.
    bool enter(std::size_t entering, std::ptrdiff_t pivot) {
        Indices at = others(pivot);
        free_[entering] = true;
        Vector cross(at.size());
        for (std::size_t i = 0; i < at.size(); ++i) cross[i] = curvature(at[i], entering, pivot);
        Vector direction = solved(at, pivot, cross);
        if (curvature(entering, entering, pivot) - dot(cross.data(), direction.data(), at.size()) > noise_) return true;
        for (double &value : direction) value = -value;
        at.push_back(entering);
        direction.push_back(1.0);
        return walk(std::move(at), pivot, std::move(direction), std::numeric_limits<double>::infinity());
    }

    // Moves along `step` (on `at`; the pivot keeps the sum), at most `longest` times its length, until a variable
    // reaches zero: that one leaves, and the answer is true. A walk without end moves nothing.
    bool walk(Indices at, std::ptrdiff_t pivot, Vector step, double longest) {
        if (pivot >= 0) {
            double sum = 0.0;
            for (std::size_t i = 0; i < at.size(); ++i)
                if (soft_[at[i]]) sum += step[i];
            at.push_back(static_cast<std::size_t>(pivot));
            step.push_back(-sum);
        }
        double shortest = std::numeric_limits<double>::infinity();
        std::ptrdiff_t leaving = -1;
        for (std::size_t i = 0; i < at.size(); ++i)
            if (step[i] < 0.0 && alpha_[at[i]] / -step[i] < shortest) {
                shortest = alpha_[at[i]] / -step[i];
                leaving = static_cast<std::ptrdiff_t>(at[i]);
            }
        const bool leaves = leaving >= 0 && shortest < longest;
        if (!leaves && !std::isfinite(longest)) return false;
        const double length = leaves ? shortest : longest;
        for (std::size_t i = 0; i < at.size(); ++i) alpha_[at[i]] = std::max(alpha_[at[i]] + length * step[i], 0.0);
        if (leaves) {
            alpha_[leaving] = 0.0;
            free_[leaving] = false;
        }
        return leaves;
    }

    const double *gram_;
    std::size_t stride_, n_;
    Vector offsets_, alpha_;
    std::vector<char> soft_, free_;
    Vector gradient_;
    bool capped_ = false;
    double largest_ = 0.0, noise_ = 0.0, entry_ = 0.0;
};

}  // namespace

std::vector<double> solve_active_set(const WorkingSetProblem &problem, std::span<const double> start,
                                     double tolerance) {
    return Run(problem, start, tolerance).alpha();
}

}  // namespace apsvm
