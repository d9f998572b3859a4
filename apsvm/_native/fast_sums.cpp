#include "fast_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "threads.hpp"

namespace apsvm {

namespace {

// Eight places at a time: GCC and Clang make of it what the machine has.
constexpr std::size_t kLanes = 8;
typedef double Vec __attribute__((vector_size(kLanes * sizeof(double))));

inline double sum_of(const Vec &v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

double sigmoid_slope(double t, double) {
    const double e = std::exp(-std::fabs(t));
    return t > 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

double sigmoid_loss(double t, double) { return std::max(-t, 0.0) + std::log1p(std::exp(-std::fabs(t))); }

double erfc_slope(double t, double c) { return 0.5 * std::erfc(c * t); }

double erfc_loss(double t, double c) {
    const double z = c * t;
    return (std::exp(-z * z) * std::numbers::inv_sqrtpi - z * std::erfc(z)) / (2.0 * c);
}

// g(width·(d + (x − x')/2)) in Chebyshev polynomials of the target's place x and the source's x', for |d| ≤ reach.
template <class Function>
std::vector<Chebyshev::Offset> tabulate(Function g, double width, int reach) {
    constexpr std::size_t terms = Chebyshev::kTerms, nodes = 2 * terms;
    double node[nodes], polynomial[nodes][terms];
    for (std::size_t a = 0; a < nodes; ++a) {
        const double angle = std::numbers::pi * (static_cast<double>(a) + 0.5) / nodes;
        node[a] = std::cos(angle);
        for (std::size_t k = 0; k < terms; ++k)
            polynomial[a][k] = std::cos(static_cast<double>(k) * angle) * (k == 0 ? 1.0 : 2.0) / nodes;
    }
    std::vector<Chebyshev::Offset> tables(2 * static_cast<std::size_t>(reach) + 1);
    for (int d = -reach; d <= reach; ++d) {
        Chebyshev::Offset &table = tables[static_cast<std::size_t>(d + reach)];
        std::memset(table.column, 0, sizeof table.column);
        double partial[nodes][terms] = {};  // target node, source degree
        for (std::size_t a = 0; a < nodes; ++a)
            for (std::size_t b = 0; b < nodes; ++b) {
                const double value = g(width * (d + 0.5 * (node[a] - node[b])));
                for (std::size_t k = 0; k < terms; ++k) partial[a][k] += value * polynomial[b][k];
            }
        table.columns = 1;
        table.long_columns = false;
        for (std::size_t k = 0; k < terms; ++k)
            for (std::size_t i = 0; i < terms; ++i) {
                double sum = 0.0;
                for (std::size_t a = 0; a < nodes; ++a) sum += partial[a][k] * polynomial[a][i];
                // Far less than the rounding of what is near.
                if (std::fabs(sum) < 1e-18) continue;
                table.column[k][i] = sum;
                table.columns = std::max(table.columns, k + 1);
                table.long_columns |= i >= kLanes;
            }
    }
    return tables;
}

int reach_in_cells(const PairKernel &kernel) { return static_cast<int>(std::ceil(kernel.reach / kernel.width)); }

using Tables = std::array<std::vector<Chebyshev::Offset>, 3>;

Tables make_tables(const PairKernel &kernel) {
    const int reach = reach_in_cells(kernel);
    return {tabulate([&](double t) { return kernel.slope_at(t); }, kernel.width, reach),
            tabulate([&](double t) { return kernel.slope_at(-t); }, kernel.width, reach),
            tabulate([&](double t) { return kernel.loss_at(t); }, kernel.width, reach)};
}

// Made when first needed, once a process.
const Tables &tables_of(const PairKernel &kernel) {
    if (&kernel == &kLogistic) {
        static const Tables tables = make_tables(kLogistic);
        return tables;
    }
    if (&kernel == &kErfc) {
        static const Tables tables = make_tables(kErfc);
        return tables;
    }
    static const Tables tables = make_tables(kPlainErfc);
    return tables;
}

APSVM_CLONES void place_cells(const double *f, std::size_t n, double per_width, double first, double *x,
                              std::int32_t *key) {
    for (std::size_t i = 0; i < n; ++i) {
        const double u = f[i] * per_width;
        const double cell = std::floor(u);
        x[i] = 2.0 * (u - cell) - 1.0;
        key[i] = static_cast<std::int32_t>(cell - first);
    }
}

APSVM_CLONES void chebyshev_moments(const double *x, const double *q, std::size_t n, double *out) {
    Vec sums[Chebyshev::kTerms] = {};
    for (std::size_t i = 0; i < n; i += kLanes) {
        const std::size_t bytes = std::min(kLanes, n - i) * sizeof(double);
        Vec v = {}, before = {};
        std::memcpy(&v, x + i, bytes);
        if (q != nullptr)
            std::memcpy(&before, q + i, bytes);
        else if (n - i >= kLanes)
            before += 1.0;
        else
            for (std::size_t lane = 0; lane < n - i; ++lane) before[lane] = 1.0;
        Vec now = before * v;
        v += v;
        sums[0] += before;
        sums[1] += now;
        for (std::size_t k = 2; k < Chebyshev::kTerms; ++k) {
            const Vec next = v * now - before;
            before = now;
            now = next;
            sums[k] += next;
        }
    }
    for (std::size_t k = 0; k < Chebyshev::kTerms; ++k) out[k] = sum_of(sums[k]);
    for (std::size_t k = Chebyshev::kTerms; k < Chebyshev::kStride; ++k) out[k] = 0.0;
}

// Clenshaw's recurrence.
APSVM_CLONES void chebyshev_values(const double *coefs, const double *x, std::size_t n, const std::uint16_t *where,
                                   double *out) {
    constexpr std::size_t abreast = 2;  // chains at once: one alone would wait for itself
    for (std::size_t i = 0; i < n; i += abreast * kLanes) {
        const std::size_t count = std::min(abreast * kLanes, n - i);
        Vec v[abreast] = {};
        std::memcpy(&v, x + i, count * sizeof(double));
        Vec above[abreast] = {}, now[abreast] = {};
        for (std::size_t a = 0; a < abreast; ++a) now[a] += coefs[Chebyshev::kTerms - 1];
        for (std::size_t k = Chebyshev::kTerms - 2; k > 0; --k)
            for (std::size_t a = 0; a < abreast; ++a) {
                const Vec next = (v[a] + v[a]) * now[a] - above[a] + coefs[k];
                above[a] = now[a];
                now[a] = next;
            }
        double values[abreast * kLanes];
        for (std::size_t a = 0; a < abreast; ++a) now[a] = v[a] * now[a] - above[a] + coefs[0];
        std::memcpy(values, &now, sizeof values);
        for (std::size_t lane = 0; lane < count; ++lane) out[where[i + lane]] = values[lane];
    }
}

// values += what the cells from … to − 1 do to the cell `id`.
APSVM_CLONES void add_near(const std::vector<Chebyshev::Offset> &tables, const Field &field, const double *ids,
                           std::size_t from, std::size_t to, double id, int reach, double *values) {
    Vec low, high;
    std::memcpy(&low, values, sizeof low);
    std::memcpy(&high, values + kLanes, sizeof high);
    for (std::size_t s = from; s < to; ++s) {
        if (field.rows[s] == 0) continue;
        const double *moments = field.moments.data() + s * Chebyshev::kStride;
        const Chebyshev::Offset &table = tables[static_cast<std::size_t>(static_cast<int>(id - ids[s]) + reach)];
        Vec column;
        for (std::size_t k = 0; k < table.columns; ++k) {
            std::memcpy(&column, table.column[k], sizeof column);
            low += column * moments[k];
        }
        if (!table.long_columns) continue;
        for (std::size_t k = 0; k < table.columns; ++k) {
            std::memcpy(&column, table.column[k] + kLanes, sizeof column);
            high += column * moments[k];
        }
    }
    std::memcpy(values, &low, sizeof low);
    std::memcpy(values + kLanes, &high, sizeof high);
}

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

// Reach: the logistic's slope e^{−37} and erfc(6)/2 are below 1e-16.
const PairKernel kLogistic{sigmoid_slope, sigmoid_loss, 1.0, 1.0, 37.0};
constexpr double kTie = 0.38984840061683195;  // √3/(√2 π)
const PairKernel kErfc{erfc_slope, erfc_loss, kTie, 1.0, 6.0 / kTie};
const PairKernel kPlainErfc{erfc_slope, erfc_loss, 1.0, 0.5, 6.0};

Chebyshev::Chebyshev(const PairKernel &kernel) : kernel_(kernel), reach_(reach_in_cells(kernel)) {
    const Tables &tables = tables_of(kernel);
    for (std::size_t part = 0; part < 3; ++part) tables_[part] = &tables[part];
}

double Chebyshev::id(double f) const { return std::floor(f / kernel_.width); }

void Chebyshev::place(const double *f, std::size_t n, double first, double *x, std::int32_t *key) const {
    place_cells(f, n, 1.0 / kernel_.width, first, x, key);
}

void Chebyshev::moments(const double *x, const double *q, std::size_t n, double *out) const {
    chebyshev_moments(x, q, n, out);
}

void Chebyshev::spread(Part part, const Field &field, const Ids &ids, const std::int32_t *targets,
                       std::size_t n_targets, double factor, double *coefs) const {
    const std::vector<Offset> &tables = *tables_[static_cast<std::size_t>(part)];
    const std::size_t n = ids.size();
    // Running sums over the far cells on the side where g is not 0: how many, Σ T_1, and Σ (their id − the target's).
    double count = 0.0, places = 0.0, distance = 0.0;
    const auto spread_to = [&](std::size_t t, std::size_t from, std::size_t to) {
        const double id = ids[static_cast<std::size_t>(targets[t])];
        double values[kStride] = {};
        if (part == Part::loss) {
            values[0] = kernel_.width * (distance + 0.5 * places);
            values[1] = -0.5 * kernel_.width * count;
        } else {
            values[0] = count;
        }
        add_near(tables, field, ids.data(), from, to, id, reach_, values);
        for (std::size_t k = 0; k < kTerms; ++k) coefs[t * kStride + k] += factor * values[k];
    };
    if (part == Part::below) {
        std::size_t from = 0, to = 0;
        for (std::size_t t = 0; t < n_targets; ++t) {
            const double id = ids[static_cast<std::size_t>(targets[t])];
            for (; ids[from] < id - reach_; ++from) count += field.moments[from * kStride];
            to = std::max(to, from);
            while (to < n && ids[to] <= id + reach_) ++to;
            spread_to(t, from, to);
        }
        return;
    }
    std::size_t from = n, to = n;
    double last = n_targets == 0 ? 0.0 : ids[static_cast<std::size_t>(targets[n_targets - 1])];
    for (std::size_t t = n_targets; t-- > 0;) {
        const double id = ids[static_cast<std::size_t>(targets[t])];
        if (count != 0.0) distance += (last - id) * count;
        last = id;
        for (; ids[to - 1] > id + reach_; --to) {
            if (field.rows[to - 1] == 0) continue;
            const double *moments = field.moments.data() + (to - 1) * kStride;
            count += moments[0];
            places += moments[1];
            distance += (ids[to - 1] - id) * moments[0];
        }
        from = std::min(from, to);
        while (from > 0 && ids[from - 1] >= id - reach_) --from;
        spread_to(t, from, to);
    }
}

void Chebyshev::evaluate(const double *coefs, const double *x, std::size_t n, const std::uint16_t *where,
                         double *out) const {
    chebyshev_values(coefs, x, n, where, out);
}

Fourier::Fourier(double c, double h, std::size_t p, double influence, double half_width)
    : per_width_(c / (2.0 * half_width)), width_(2.0 * half_width), h_(h), p_(p), stride_(1 + 2 * p) {
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
        while (from > 0 && ids[from - 1] >= id - (always_ + 1)) --from;
        std::fill(common.begin(), common.end(), 0.0);
        common[0] = constant + sign * far;
        for (std::size_t s = from; s < to; ++s)
            if (const int d = static_cast<int>(ids[s] - id); field.rows[s] != 0 && std::abs(d) <= always_)
                add_cell(s, d, common.data());
        double *own = coefs + t * variants() * stride_;
        for (std::size_t variant = 0; variant < variants(); ++variant)
            for (std::size_t k = 0; k < stride_; ++k) own[variant * stride_ + k] += common[k];
        if (from < to && ids[from] == id - (always_ + 1))
            for (const std::size_t variant : {2, 3}) add_cell(from, -(always_ + 1), own + variant * stride_);
        if (from < to && ids[to - 1] == id + (always_ + 1)) {
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
