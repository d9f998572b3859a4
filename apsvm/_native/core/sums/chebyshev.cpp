// Fast sums by Chebyshev polynomials: tables for pairs of near cells, moments of sources, series at targets.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "sums/fast_sums.hpp"
#include "support/lanes.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

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

}  // namespace

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

}  // namespace apsvm
