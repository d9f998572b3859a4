// Fast sums by the Fourier series of erfc (Raykar et al. 2008).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <utility>

#include "sums/fast_sums.hpp"
#include "support/lanes.hpp"
#include "support/require.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

// x: places in the cells, 0 in their middle; key, unless null: (cell − first) · variants + variant.
APSVM_CLONES void place_waves(const double *f, std::size_t n, double per_width, double width, double edge, double first,
                              double *__restrict x, std::int32_t *__restrict key) {
    for (std::size_t i = 0; i < n; ++i) {
        const double u = f[i] * per_width;
        const double cell = std::floor(u);
        const double at = (u - cell - 0.5) * width;
        x[i] = at;
        if (key != nullptr)
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

// Calls each(run, rows before it in the block, how many rows it has).
template <class Each>
void for_runs(const Block &block, Each each) {
    const auto n = static_cast<std::uint32_t>(block.end - block.begin);
    for (std::size_t r = 0; r < block.runs.size(); ++r) {
        const std::uint32_t begin = block.runs[r].begin;
        each(r, begin, (r + 1 < block.runs.size() ? block.runs[r + 1].begin : n) - begin);
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

// The rows take turns by their keys: where[j], of the block's, is the place of the row that is the jth.
void Fourier::take(const Grid &grid, const double *f, const double *q, Block &block, std::uint16_t *where) const {
    const std::size_t n = block.end - block.begin, keys = grid.ids.size() * variants();
    static thread_local std::vector<double> of_thread(3 * kBlock);
    static thread_local std::vector<std::int32_t> keys_of_thread(kBlock);
    static thread_local std::vector<std::uint32_t> next_of_thread;
    double *const x = of_thread.data(), *const sorted_x = x + kBlock, *const sorted_q = sorted_x + kBlock;
    std::int32_t *const key = keys_of_thread.data();
    std::vector<std::uint32_t> &next = next_of_thread;
    where += block.begin;
    if (grid.in_a_row) {
        place_waves(f + block.begin, n, per_width_, width_, edge_, grid.ids[0], x, key);
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            const double cell = id(f[block.begin + i]);
            place_waves(f + block.begin + i, 1, per_width_, width_, edge_, cell, x + i, key + i);
            key[i] += grid.at(cell) * static_cast<std::int32_t>(variants());
        }
    }
    block.runs.clear();
    if (keys <= 8 * n) {
        next.assign(keys, 0);
        for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::size_t>(key[i])];
        std::uint32_t at = 0;
        for (std::size_t k = 0; k < keys; ++k) {
            if (next[k] != 0) block.runs.push_back({static_cast<std::int32_t>(k), at});
            at += std::exchange(next[k], at);
        }
        for (std::size_t i = 0; i < n; ++i)
            where[next[static_cast<std::size_t>(key[i])]++] = static_cast<std::uint16_t>(i);
    } else {
        std::iota(where, where + n, std::uint16_t{0});
        std::sort(where, where + n,
                  [&](std::uint16_t a, std::uint16_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
        for (std::uint32_t i = 0; i < n; ++i)
            if (i == 0 || key[where[i]] != key[where[i - 1]]) block.runs.push_back({key[where[i]], i});
    }
    for (std::size_t i = 0; i < n; ++i) sorted_x[i] = x[where[i]];
    if (q != nullptr)
        for (std::size_t i = 0; i < n; ++i) sorted_q[i] = q[block.begin + where[i]];
    block.cells.clear();
    block.moments.resize(block.runs.size() * stride_);
    for_runs(block, [&](std::size_t r, std::size_t begin, std::size_t count) {
        block.cells.push_back(block.runs[r].key / static_cast<std::int32_t>(variants()));
        wave_moments(sorted_x + begin, q == nullptr ? nullptr : sorted_q + begin, count, h_, p_,
                     block.moments.data() + r * stride_);
    });
}

void Fourier::spread(Part part, const Field &field, const Ids &ids, std::span<const std::int32_t> targets,
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
    for (std::size_t t = targets.size(); t-- > 0;) {
        const double id = ids[static_cast<std::size_t>(targets[t])];
        for (; ids[to - 1] > id + (always_ + 1); --to) far += field.moments[(to - 1) * stride_];
        from = std::min(from, to);
        while (from > 0 && ids[from - 1] >= id - (always_ + 1)) --from;  // the target's own cell is one of them
        std::fill(common.begin(), common.end(), 0.0);
        common[0] = constant + sign * far;
        for (std::size_t s = from; s < to; ++s)
            if (const int d = static_cast<int>(ids[s] - id); field.holds[s] && std::abs(d) <= always_)
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

void Fourier::evaluate(const double *f, const Block &block, const std::uint16_t *where, const CellsInUse &use,
                       const std::vector<double> &coefs, double *out) const {
    const std::size_t n = block.end - block.begin;
    static thread_local std::vector<double> of_thread(2 * kBlock);
    double *const x = of_thread.data(), *const sorted_x = x + kBlock;
    where += block.begin;
    out += block.begin;
    place_waves(f + block.begin, n, per_width_, width_, edge_, 0.0, x, nullptr);
    for (std::size_t i = 0; i < n; ++i) sorted_x[i] = x[where[i]];
    std::size_t slot = 0;
    for_runs(block, [&](std::size_t r, std::size_t begin, std::size_t count) {
        const auto key = static_cast<std::size_t>(block.runs[r].key);
        while (use.cells[slot] != block.cells[r]) ++slot;
        wave_values(coefs.data() + (slot * variants() + key % variants()) * stride_, sorted_x + begin, count, h_, p_,
                    where + begin, out);
    });
}

}  // namespace apsvm
