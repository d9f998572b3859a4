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
        table.long_columns = 0;
        for (std::size_t k = 0; k < terms; ++k)
            for (std::size_t i = 0; i < terms; ++i) {
                double sum = 0.0;
                for (std::size_t a = 0; a < nodes; ++a) sum += partial[a][k] * polynomial[a][i];
                // Far less than the rounding of what is near.
                if (std::fabs(sum) < 1e-18) continue;
                table.column[k][i] = sum;
                table.columns = std::max(table.columns, k + 1);
                if (i >= kLanes) table.long_columns = k + 1;
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
    static const Tables tables = make_tables(kErfc);
    return tables;
}

// What a part of a cell has to do with the whole: its place x, −1 … 1, is (2 · part + 1 + x)/kParts − 1 of the cell,
// where T_k is Σ_j to_terms[j][k] x^j to rounding; to_powers[k][j] is the same number.
struct PartOfCell {
    alignas(64) double to_terms[Chebyshev::kPowers][Chebyshev::kStride];
    alignas(64) double to_powers[Chebyshev::kTerms][Chebyshev::kPowers];
};

using Parts = std::array<PartOfCell, Chebyshev::kParts>;

Parts make_parts() {
    constexpr std::size_t powers = Chebyshev::kPowers, terms = Chebyshev::kTerms, nodes = 2 * terms;
    // Of T_m its powers: T_{m+1} = 2x T_m − T_{m−1}.
    double power[powers][powers] = {{1.0}, {0.0, 1.0}};
    for (std::size_t m = 2; m < powers; ++m)
        for (std::size_t j = 0; j < powers; ++j)
            power[m][j] = (j > 0 ? 2.0 * power[m - 1][j - 1] : 0.0) - power[m - 2][j];
    Parts parts{};
    for (std::size_t p = 0; p < parts.size(); ++p)
        for (std::size_t k = 0; k < terms; ++k)
            for (std::size_t m = 0; m < powers; ++m) {
                double sum = 0.0;  // the coefficient of T_m(x) in T_k
                for (std::size_t a = 0; a < nodes; ++a) {
                    const double angle = std::numbers::pi * (static_cast<double>(a) + 0.5) / nodes;
                    const double at = (2.0 * static_cast<double>(p) + 1.0 + std::cos(angle)) / parts.size() - 1.0;
                    sum += std::cos(static_cast<double>(k) * std::acos(at)) * std::cos(static_cast<double>(m) * angle);
                }
                sum *= (m == 0 ? 1.0 : 2.0) / nodes;
                for (std::size_t j = 0; j < powers; ++j) parts[p].to_terms[j][k] += sum * power[m][j];
            }
    for (PartOfCell &part : parts)
        for (std::size_t k = 0; k < terms; ++k)
            for (std::size_t j = 0; j < powers; ++j) part.to_powers[k][j] = part.to_terms[j][k];
    return parts;
}

const Parts &parts_of_a_cell() {
    static const Parts parts = make_parts();
    return parts;
}

// x: places in the parts of cells, −1 … 1; key, unless null: parts counted from the cell `first`.
APSVM_CLONES void place_parts(const double *f, std::size_t n, double per_width, double first, double *__restrict x,
                              std::int32_t *__restrict key) {
    constexpr auto parts = static_cast<double>(Chebyshev::kParts);
    for (std::size_t i = 0; i < n; ++i) {
        const double u = f[i] * per_width, cell = std::floor(u);
        // Just below a whole number u - cell rounds to 1.
        const double at = parts * (u - cell), part = std::min(std::floor(at), parts - 1.0);
        x[i] = 2.0 * (at - part) - 1.0;
        if (key != nullptr) key[i] = static_cast<std::int32_t>(parts * (cell - first) + part);
    }
}

typedef double Four __attribute__((vector_size(4 * sizeof(double))));

// Rows become columns.
inline __attribute__((always_inline)) void transpose(Four *rows) {
    const Four a{rows[0][0], rows[1][0], rows[0][2], rows[1][2]}, b{rows[0][1], rows[1][1], rows[0][3], rows[1][3]};
    const Four c{rows[2][0], rows[3][0], rows[2][2], rows[3][2]}, d{rows[2][1], rows[3][1], rows[2][3], rows[3][3]};
    rows[0] = Four{a[0], a[1], c[0], c[1]};
    rows[1] = Four{b[0], b[1], d[0], d[1]};
    rows[2] = Four{a[2], a[3], c[2], c[3]};
    rows[3] = Four{b[2], b[3], d[2], d[3]};
}

// sums[where[i]] += q[i] (x[i]^0 … x[i]^7), four rows at once.
APSVM_CLONES void add_powers(const double *x, const double *q, std::size_t n, const std::uint16_t *where,
                             double *sums) {
    constexpr std::size_t abreast = 4, powers = Chebyshev::kPowers;
    std::size_t i = 0;
    for (; i + abreast <= n; i += abreast) {
        Four place, power[powers];
        std::memcpy(&place, x + i, sizeof place);
        power[0] = Four{1.0, 1.0, 1.0, 1.0};
        if (q != nullptr) std::memcpy(&power[0], q + i, sizeof power[0]);
        for (std::size_t k = 1; k < powers; ++k) power[k] = power[k - 1] * place;
        transpose(power);
        transpose(power + abreast);
        for (std::size_t r = 0; r < abreast; ++r) {
            double *const to = sums + where[i + r] * powers;
            Four low, high;
            std::memcpy(&low, to, sizeof low);
            std::memcpy(&high, to + abreast, sizeof high);
            low += power[r];
            high += power[abreast + r];
            std::memcpy(to, &low, sizeof low);
            std::memcpy(to + abreast, &high, sizeof high);
        }
    }
    for (; i < n; ++i) {
        double power = q == nullptr ? 1.0 : q[i];
        for (std::size_t k = 0; k < powers; ++k, power *= x[i]) sums[where[i] * powers + k] += power;
    }
}

// out[i] = Σ_k series[where[i]][k] x[i]^k, in few steps that wait for each other.
APSVM_CLONES void power_values(const double *series, const double *x, std::size_t n, const std::uint16_t *where,
                               double *out) {
    for (std::size_t i = 0; i < n; ++i) {
        const double *const c = series + where[i] * Chebyshev::kPowers;
        const double x1 = x[i], x2 = x1 * x1;
        out[i] = ((c[0] + c[1] * x1) + (c[2] + c[3] * x1) * x2) +
                 ((c[4] + c[5] * x1) + (c[6] + c[7] * x1) * x2) * (x2 * x2);
    }
}

APSVM_CLONES void add_terms(const PartOfCell &part, const double *powers, double *terms) {
    Vec low, high, column;
    std::memcpy(&low, terms, sizeof low);
    std::memcpy(&high, terms + kLanes, sizeof high);
    for (std::size_t j = 0; j < Chebyshev::kPowers; ++j) {
        std::memcpy(&column, part.to_terms[j], sizeof column);
        low += column * powers[j];
        std::memcpy(&column, part.to_terms[j] + kLanes, sizeof column);
        high += column * powers[j];
    }
    std::memcpy(terms, &low, sizeof low);
    std::memcpy(terms + kLanes, &high, sizeof high);
}

APSVM_CLONES void find_powers(const PartOfCell &part, const double *terms, double *powers) {
    Vec sum = {}, column;
    for (std::size_t k = 0; k < Chebyshev::kTerms; ++k) {
        std::memcpy(&column, part.to_powers[k], sizeof column);
        sum += column * terms[k];
    }
    std::memcpy(powers, &sum, sizeof sum);
}

// values += what the cells from … to − 1 do to the cell `id`, in two sums: one would wait for itself.
APSVM_CLONES void add_near(const std::vector<Chebyshev::Offset> &tables, const Field &field, const double *ids,
                           std::size_t from, std::size_t to, double id, int reach, double *values) {
    Vec even, odd = {}, high, column;
    std::memcpy(&even, values, sizeof even);
    std::memcpy(&high, values + kLanes, sizeof high);
    for (std::size_t s = from; s < to; ++s) {
        if (!field.holds[s]) continue;
        const double *moments = field.moments.data() + s * Chebyshev::kStride;
        const Chebyshev::Offset &table = tables[static_cast<std::size_t>(static_cast<int>(id - ids[s]) + reach)];
        for (std::size_t k = 0; k < table.columns; k += 2) {
            std::memcpy(&column, table.column[k], sizeof column);
            even += column * moments[k];
            std::memcpy(&column, table.column[k + 1], sizeof column);
            odd += column * moments[k + 1];
        }
        for (std::size_t k = 0; k < table.long_columns; ++k) {
            std::memcpy(&column, table.column[k] + kLanes, sizeof column);
            high += column * moments[k];
        }
    }
    static_assert(Chebyshev::kTerms % 2 == 0);
    even += odd;
    std::memcpy(values, &even, sizeof even);
    std::memcpy(values + kLanes, &high, sizeof high);
}

struct CellAndPart {
    std::int32_t cell;
    std::size_t part;
};

CellAndPart cell_and_part(std::int32_t key) {
    const auto number = static_cast<std::size_t>(key);
    return {static_cast<std::int32_t>(number / Chebyshev::kParts), number % Chebyshev::kParts};
}

// Of a block.
struct Scratch {
    std::vector<double> x = std::vector<double>(kBlock), series;
    std::vector<std::int32_t> key = std::vector<std::int32_t>(kBlock);
    std::vector<std::uint16_t> number;
};

Scratch &scratch_of_thread() {
    thread_local Scratch scratch;
    return scratch;
}

}  // namespace

Chebyshev::Chebyshev(const PairKernel &kernel) : kernel_(kernel), reach_(reach_in_cells(kernel)) {
    const Tables &tables = tables_of(kernel);
    for (std::size_t part = 0; part < 3; ++part) tables_[part] = &tables[part];
}

double Chebyshev::id(double f) const { return std::floor(f / kernel_.width); }

// A run is a part of a cell in which there are rows: where[i] is the number of row i's.
void Chebyshev::take(const Grid &grid, const double *f, const double *q, Block &block, std::uint16_t *where) const {
    const std::size_t n = block.end - block.begin;
    Scratch &scratch = scratch_of_thread();
    where += block.begin;
    double *const x = scratch.x.data();
    std::int32_t *const key = scratch.key.data();
    if (grid.in_a_row) {
        place_parts(f + block.begin, n, 1.0 / kernel_.width, grid.ids[0], x, key);
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            const double cell = id(f[block.begin + i]);
            place_parts(f + block.begin + i, 1, 1.0 / kernel_.width, cell, x + i, key + i);
            key[i] += grid.at(cell) * static_cast<std::int32_t>(kParts);
        }
    }
    std::int32_t first = key[0], last = key[0];
    for (std::size_t i = 0; i < n; ++i) {
        first = std::min(first, key[i]);
        last = std::max(last, key[i]);
    }
    scratch.number.assign(static_cast<std::size_t>(last - first) + 1, 0);
    std::uint16_t *const number = scratch.number.data();
    for (std::size_t i = 0; i < n; ++i) number[key[i] - first] = 1;
    block.runs.clear();
    for (std::size_t k = 0; k < scratch.number.size(); ++k)
        if (number[k] != 0) {
            number[k] = static_cast<std::uint16_t>(block.runs.size());
            block.runs.push_back({first + static_cast<std::int32_t>(k), 0});
        }
    for (std::size_t i = 0; i < n; ++i) where[i] = number[key[i] - first];
    scratch.series.assign(block.runs.size() * kPowers, 0.0);
    add_powers(x, q == nullptr ? nullptr : q + block.begin, n, where, scratch.series.data());
    const Parts &parts = parts_of_a_cell();
    block.cells.clear();
    block.moments.clear();
    for (std::size_t r = 0; r < block.runs.size(); ++r) {
        const auto [cell, part] = cell_and_part(block.runs[r].key);
        if (block.cells.empty() || block.cells.back() != cell) {
            block.cells.push_back(cell);
            block.moments.resize(block.moments.size() + kStride, 0.0);
        }
        add_terms(parts[part], scratch.series.data() + r * kPowers,
                  block.moments.data() + block.moments.size() - kStride);
    }
}

void Chebyshev::spread(Part part, const Field &field, const Ids &ids, std::span<const std::int32_t> targets,
                       double factor, double *coefs) const {
    const std::size_t n_targets = targets.size();
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
            if (!field.holds[to - 1]) continue;
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

void Chebyshev::evaluate(const double *f, const Block &block, const std::uint16_t *where, const CellsInUse &use,
                         const std::vector<double> &coefs, double *out) const {
    const std::size_t n = block.end - block.begin;
    Scratch &scratch = scratch_of_thread();
    place_parts(f + block.begin, n, 1.0 / kernel_.width, 0.0, scratch.x.data(), nullptr);
    scratch.series.resize(block.runs.size() * kPowers);
    const Parts &parts = parts_of_a_cell();
    std::size_t slot = 0;
    for (std::size_t r = 0; r < block.runs.size(); ++r) {
        const auto [cell, part] = cell_and_part(block.runs[r].key);
        while (use.cells[slot] != cell) ++slot;
        find_powers(parts[part], coefs.data() + slot * kStride,
                    scratch.series.data() + r * kPowers);
    }
    power_values(scratch.series.data(), scratch.x.data(), n, where + block.begin, out + block.begin);
}

}  // namespace apsvm
