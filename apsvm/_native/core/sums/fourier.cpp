// Fast sums by the Fourier series of erfc (Raykar et al. 2008).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "sums/fast_sums.hpp"
#include "support/lanes.hpp"
#include "support/require.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

APSVM_CLONES void place_waves(const double *f, std::size_t n, double per_width, double width, double edge, double first,
                              double *x, std::int32_t *key) {
    for (std::size_t i = 0; i < n; ++i) {
        const double u = f[i] * per_width;
        const double cell = std::floor(u);
        const double at = (u - cell - 0.5) * width;
        x[i] = at;
        key[i] = 4 * static_cast<std::int32_t>(cell - first) + (at >= edge ? 1 : 0) + (at <= -edge ? 2 : 0);
    }
}

// sin and cos of small angles: |a| < 0.6, where the first term left out is below 1e-19.
inline __attribute__((always_inline)) void sine_cosine(const Vec &a, Vec &sine, Vec &cosine) {
    const Vec square = a * a;
    sine = a - a;
    cosine = sine;
    for (int k = 16; k > 0; k -= 2) {
        sine = (1.0 - sine) * square * (1.0 / (k * (k + 1)));
        cosine = (1.0 - cosine) * square * (1.0 / (k * (k - 1)));
    }
    sine = a * (1.0 - sine);
    cosine = 1.0 - cosine;
}

// out: Σq, Σ q cos 2nhx for odd n, Σ q sin 2nhx.
APSVM_CLONES void wave_moments(const double *x, const double *q, std::size_t n, double h, std::size_t p, double *out) {
    Vec total = {}, cosines[Fourier::kMostTerms] = {}, sines[Fourier::kMostTerms] = {};
    for (std::size_t i = 0; i < n; i += kLanes) {
        const std::size_t count = std::min(kLanes, n - i);
        Vec angle = {}, weight = {}, s, c;
        std::memcpy(&angle, x + i, count * sizeof(double));
        for (std::size_t lane = 0; lane < count; ++lane) weight[lane] = q == nullptr ? 1.0 : q[i + lane];
        angle *= 2.0 * h;
        sine_cosine(angle, s, c);
        const Vec s2 = 2.0 * s * c, c2 = c * c - s * s;
        s *= weight;
        c *= weight;
        total += weight;
        for (std::size_t k = 0; k < p; ++k) {
            cosines[k] += c;
            sines[k] += s;
            const Vec next = s * c2 + c * s2;
            c = c * c2 - s * s2;
            s = next;
        }
    }
    out[0] = sum_of(total);
    for (std::size_t k = 0; k < p; ++k) {
        out[1 + k] = sum_of(cosines[k]);
        out[1 + p + k] = sum_of(sines[k]);
    }
}

APSVM_CLONES void wave_values(const double *coefs, const double *x, std::size_t n, double h, std::size_t p,
                              const std::uint16_t *where, double *out) {
    for (std::size_t i = 0; i < n; i += kLanes) {
        const std::size_t count = std::min(kLanes, n - i);
        Vec angle = {}, s, c;
        std::memcpy(&angle, x + i, count * sizeof(double));
        angle *= 2.0 * h;
        sine_cosine(angle, s, c);
        const Vec s2 = 2.0 * s * c, c2 = c * c - s * s;
        Vec value = s - s + coefs[0];
        for (std::size_t k = 0; k < p; ++k) {
            value -= coefs[1 + k] * s + coefs[1 + p + k] * c;
            const Vec next = s * c2 + c * s2;
            c = c * c2 - s * s2;
            s = next;
        }
        for (std::size_t lane = 0; lane < count; ++lane) out[where[i + lane]] = value[lane];
    }
}

}  // namespace

Fourier::Fourier(double c, const FourierSetting &setting)
    : per_width_(c / (2.0 * setting.half_width)),
      width_(2.0 * setting.half_width),
      h_(setting.h),
      p_(setting.p),
      stride_(1 + 2 * setting.p) {
    const auto &[h, p, influence, half_width] = setting;
    require(0 < p && p <= kMostTerms, "expected a Fourier series of 1 to 64 terms");
    require(h > 0.0 && std::isnormal(half_width) && std::isfinite(width_) && std::isfinite(per_width_) &&
                half_width > 0.0 && influence >= half_width && influence < 1e6 * half_width,
            "expected a Fourier series of positive steps that reaches beyond its cells");
    always_ = static_cast<int>(std::floor((influence - half_width) / width_));
    // At this place and above in its cell, a target is within the influence of one cell more.
    edge_ = (always_ + 1) * width_ - influence;
    for (std::size_t k = 0; k < p; ++k) {
        const double n = 2.0 * static_cast<double>(k) + 1.0;
        weights_.push_back(2.0 / std::numbers::pi * std::exp(-n * n * h * h) / n);
    }
    for (int d = -always_ - 1; d <= always_ + 1; ++d)
        for (std::size_t k = 0; k < p; ++k) {
            const double angle = 2.0 * (2.0 * static_cast<double>(k) + 1.0) * h * width_ * d;
            cosine_.push_back(std::cos(angle));
            sine_.push_back(std::sin(angle));
        }
}

double Fourier::id(double f) const { return std::floor(f * per_width_); }

void Fourier::place(const double *f, std::size_t n, double first, double *x, std::int32_t *key) const {
    place_waves(f, n, per_width_, width_, edge_, first, x, key);
}

void Fourier::moments(const double *x, const double *q, std::size_t n, double *out) const {
    wave_moments(x, q, n, h_, p_, out);
}

void Fourier::spread(Part part, const Field &field, const Ids &ids, const std::int32_t *targets, std::size_t n_targets,
                     double factor, double *coefs) const {
    double total = 0.0;
    for (std::size_t s = 0; s < ids.size(); ++s) total += field.moments[s * stride_];
    // Σ erfc(z − y)/2 = Σ (1 − erfc(y − z)/2).
    const double sign = part == Part::below ? -factor : factor;
    const double constant = part == Part::below ? factor * total : 0.0;
    // sin(2nh(y − z*)) of a centre z* that is d cells above the target's own: the angle's shift is tabulated.
    const auto add_cell = [&](std::size_t s, int d, double *to) {
        const double *moments = field.moments.data() + s * stride_;
        const double *cosine = cosine_.data() + static_cast<std::size_t>(d + always_ + 1) * p_;
        const double *sine = sine_.data() + static_cast<std::size_t>(d + always_ + 1) * p_;
        to[0] += sign * 0.5 * moments[0];
        for (std::size_t k = 0; k < p_; ++k) {
            const double a = moments[1 + k], b = moments[1 + p_ + k], weight = sign * weights_[k];
            to[1 + k] += weight * (a * cosine[k] - b * sine[k]);
            to[1 + p_ + k] -= weight * (a * sine[k] + b * cosine[k]);
        }
    };
    double far = 0.0;  // Σq of the cells above every influence
    std::size_t from = ids.size(), to = ids.size();
    std::vector<double> common(stride_);
    for (std::size_t t = n_targets; t-- > 0;) {
        const double id = ids[static_cast<std::size_t>(targets[t])];
        for (; ids[to - 1] > id + (always_ + 1); --to) far += field.moments[(to - 1) * stride_];
        from = std::min(from, to);
        while (from > 0 && ids[from - 1] >= id - (always_ + 1)) --from;  // the target's own cell is one of them
        std::fill(common.begin(), common.end(), 0.0);
        common[0] = constant + sign * far;
        for (std::size_t s = from; s < to; ++s)
            if (const int d = static_cast<int>(ids[s] - id); field.rows[s] != 0 && std::abs(d) <= always_)
                add_cell(s, d, common.data());
        double *own = coefs + t * variants() * stride_;
        for (std::size_t variant = 0; variant < variants(); ++variant)
            for (std::size_t k = 0; k < stride_; ++k) own[variant * stride_ + k] += common[k];
        if (ids[from] == id - (always_ + 1))
            for (const std::size_t variant : {2, 3}) add_cell(from, -(always_ + 1), own + variant * stride_);
        if (ids[to - 1] == id + (always_ + 1)) {
            for (const std::size_t variant : {1, 3}) add_cell(to - 1, always_ + 1, own + variant * stride_);
            for (const std::size_t variant : {0, 2}) own[variant * stride_] += sign * field.moments[(to - 1) * stride_];
        }
    }
}

void Fourier::evaluate(const double *coefs, const double *x, std::size_t n, const std::uint16_t *where,
                       double *out) const {
    wave_values(coefs, x, n, h_, p_, where, out);
}

}  // namespace apsvm
