// Sums over many sources of a smooth function of the distance to a target, E(y) = Σ q_i g(y − z_i), in linear time.
//
// The line is cut into cells. The sources of a cell are replaced by a few moments, Σ q φ_k(z); what all cells do to the
// targets of one cell is a few coefficients, linear in the moments; each target then costs one short series. Far cells
// are at g's limits, 0 and 1 (or 0 and −t), and need only running sums. Two choices of φ:
//
//   Chebyshev   φ_k = T_k. g on a pair of cells is its interpolant in both places, tabulated once a process for each
//               distance between cells: exact to rounding. Rows do not see T_k: in an eighth of a cell eight powers of the
//               place are as exact, for moments and for series, and the cell's T_k are linear in them.
//   Fourier     erfc(s) ≈ 1 − (4/π) Σ_{odd n<2p} e^{−n²h²}/n sin 2nhs, valid to ε for |s| ≤ r (Raykar et al. 2008):
//               error at most ε Σ|q|. Cells of width 2 r_x; a cell whose centre is within r − r_x of a target counts by
//               the series, one above it as 2 Σq and one below it as nothing.
//
// Cost: O(powers) or O(terms) a source and a target, and terms² for each pair of near cells that hold something.
//
// A basis goes through the rows block by block: `take` finds their moments, `evaluate` their series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sums/cells.hpp"
#include "sums/pair_kernels.hpp"

namespace apsvm {

// Which sum a target needs of the sources: as the preferred row over them, as a row below them, or their losses.
enum class Part { preferred, below, loss };

class Chebyshev {
public:
    explicit Chebyshev(const PairKernel &kernel);

    static constexpr std::size_t kTerms = 14;
    static constexpr std::size_t kStride = 16;
    // Parts of a cell, and the powers that a part takes.
    static constexpr std::size_t kParts = 8, kPowers = 8;
    // g's coefficients for a pair of cells at one distance, column by column: how many of the columns matter, and in
    // how many of them rows beyond the first eight do.
    struct Offset {
        alignas(64) double column[kTerms][kStride];
        std::size_t columns, long_columns;
    };

    std::size_t stride() const { return kStride; }
    // In how many ways a target's place within its cell decides which coefficients it takes.
    static constexpr std::size_t variants() { return 1; }
    double id(double f) const;
    // Finds the block's runs and moments; f, q, where: of all rows, scores, weights (null: 1), and what `evaluate` is
    // to be given again.
    void take(const Grid &grid, const double *f, const double *q, Block &block, std::uint16_t *where) const;
    // coefs[target · stride · variants …] += factor · (the part's sum over the field), for each cell of `targets`.
    void spread(Part part, const Field &field, const Ids &ids, std::span<const std::int32_t> targets, double factor,
                double *coefs) const;
    // out, of the block's rows: the series of their cells, of those in use by their segment.
    void evaluate(const double *f, const Block &block, const std::uint16_t *where, const CellsInUse &use,
                  const std::vector<double> &coefs, double *out) const;

private:
    const PairKernel &kernel_;
    int reach_;  // cells
    const std::vector<Offset> *tables_[3];
};

// As the slides choose them from ε, in units of c·score: influence is r − r_x, half_width is r_x.
struct FourierSetting {
    double h;
    std::size_t p;
    double influence, half_width;
};

class Fourier {
public:
    static constexpr std::size_t kMostTerms = 64;

    // Throws std::invalid_argument where the setting has too many terms or is no series.
    Fourier(double c, const FourierSetting &setting);

    std::size_t stride() const { return stride_; }
    static constexpr std::size_t variants() { return 4; }
    double id(double f) const;
    void take(const Grid &grid, const double *f, const double *q, Block &block, std::uint16_t *where) const;
    void spread(Part part, const Field &field, const Ids &ids, std::span<const std::int32_t> targets, double factor,
                double *coefs) const;
    void evaluate(const double *f, const Block &block, const std::uint16_t *where, const CellsInUse &use,
                  const std::vector<double> &coefs, double *out) const;

private:
    double per_width_, width_, h_, edge_;
    std::size_t p_, stride_;
    int always_;                         // cells at most this far away are within the influence of a whole cell
    std::vector<double> weights_;        // (2/π) e^{−n²h²}/n for odd n: of erfc/2
    std::vector<double> cosine_, sine_;  // of 2nh·width·d, for d = −(always + 1) … always + 1
};

}  // namespace apsvm
