// The pair loss of RankNCG over the scores f, and its gradient with respect to them:
//
//   L(f) = Σ over edges i → j of the preference graph  Σ_{k ∈ A^i, l ∈ A^j} q_k q_l ℓ(f_l − f_k),   A^j preferred to A^i,
//   ∂L/∂f_y = q_y {Σ_{l above y} −q_l ℓ'(f_l − f_y) − Σ_{k below y} −q_k ℓ'(f_y − f_k)},
//
// with the weights q of the rows, 1 where there are none,
// pair by pair, or by the fast sums: the moments of all classes below a class are added up before they are evaluated,
// so each row is read twice whatever the number of edges. The loss then is the inner product of what all cells do to
// a cell and the cell's own moments, and costs no pass over the rows.
//
// Determinism: blocks of rows depend on the data alone and are added in order, so one thread and many give the same
// bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sums/cells.hpp"
#include "sums/fast_sums.hpp"

namespace apsvm {

// Pair by pair; by the fast sums; or whichever is the faster for a query.
enum class Summation { direct, fast, automatic };
// "direct", "auto", or a way of the fast sums: "chebyshev" or "fourier".
Summation summation_named(std::string_view name);

// Of class c: the ranges of classes first[r] … last[r] − 1 for r from starts[c] to starts[c + 1] − 1.
struct ClassRanges {
    std::span<const std::int64_t> starts, first, last;
};

// Rows in order: query after query, and in a query class after class. Segment s, the rows starts[s] … starts[s + 1] −
// 1, is of the class classes[s]; query q holds the segments queries[q] … queries[q + 1] − 1, their classes ascending.
struct Arrangement {
    std::span<const std::int64_t> starts, classes, queries;
};

class PairSums {
public:
    // below, above: of each class, those it is preferred to and those preferred to it; weights: (rows,) or none. Throws
    // std::invalid_argument where the arrays do not fit together.
    PairSums(const PairKernel &kernel, Summation summation, const std::optional<FourierSetting> &fourier,
             const Arrangement &arrangement, const ClassRanges &below, const ClassRanges &above,
             std::span<const double> weights, std::size_t threads);

    std::int64_t pairs() const { return pairs_; }
    // Σ q_k q_l over the pairs.
    double weight() const { return weight_; }
    std::size_t queries_without_pairs() const { return queries_without_pairs_; }
    std::size_t rows() const { return rows_; }

    // scale · L of the scores (rows,) if `with_loss`, else NaN; slopes (rows,) becomes scale · ∂L/∂f.
    double evaluate(const double *scores, double *slopes, double scale, bool with_loss);

private:
    // Segments [first, last) of a query.
    struct Range {
        std::size_t first, last;
        bool operator==(const Range &) const = default;
    };

    // Rows begin … end − 1, of one class of one query; `below`, `above`: where its ranges of segments stand.
    struct Segment {
        std::size_t begin, end;
        Range below, above;
    };

    struct Query {
        Range segments;
        std::size_t begin, end;  // rows
        std::int64_t pairs;
    };

    // What an evaluation of one query needs, kept from call to call.
    struct Workspace {
        Grid grid;
        std::vector<std::uint16_t> where;
        std::vector<Block> blocks;
        std::vector<std::size_t> first_block;  // of each segment
        std::vector<CellsInUse> use;
        std::vector<std::vector<double>> coefs;
        std::vector<std::int32_t> slots;
        Field field;
        std::vector<Range> held;
    };

    static void check(const Arrangement &arrangement, const ClassRanges &below, const ClassRanges &above);
    void add_query(const Arrangement &arrangement, std::size_t q, const ClassRanges &below, const ClassRanges &above);
    void make_batches();
    double evaluate_query(const Query &query, const double *f, double *out, double scale, bool with_loss,
                          std::size_t threads, Workspace &work);
    double cost_by_cells(const Query &query, const Grid &grid) const;
    double directly(const Query &query, const double *f, double *out, double scale, bool with_loss) const;
    template <class Basis>
    double by_cells(const Basis &basis, const Query &query, const double *f, double *out, double scale, bool with_loss,
                    std::size_t threads, Workspace &work);
    template <class Basis>
    static void empty(const Basis &basis, Workspace &work);
    template <class Basis>
    void hold(const Basis &basis, Range which, std::size_t first, Workspace &work) const;

    const PairKernel &kernel_;
    Summation summation_;
    Chebyshev chebyshev_;
    std::optional<Fourier> fourier_;
    std::size_t threads_, rows_ = 0, queries_without_pairs_ = 0;
    std::int64_t pairs_ = 0;
    double weight_ = 0.0;
    std::vector<double> weights_;  // of the rows, or empty
    std::vector<Segment> segments_;
    std::vector<Range> ranges_;
    std::vector<Query> queries_;
    std::vector<Range> batches_;  // of queries
    std::vector<Workspace> workspaces_;
};

}  // namespace apsvm
