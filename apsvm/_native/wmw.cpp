// The pair loss of RankNCG over the scores f, and its gradient with respect to them:
//
//   L(f) = Σ over edges i → j of the preference graph  Σ_{k ∈ A^i, l ∈ A^j} ℓ(f_l − f_k),   A^j preferred to A^i,
//   ∂L/∂f_y = Σ_{l above y} −ℓ'(f_l − f_y) − Σ_{k below y} −ℓ'(f_y − f_k),
//
// pair by pair, or by the fast sums: the moments of all classes below a class are added up before they are evaluated,
// so each row is read twice whatever the number of edges. The loss then is the inner product of what all cells do to
// a cell and the cell's own moments, and costs no pass over the rows.
//
// Determinism: blocks of rows depend on the data alone and are added in order, so one thread and many give the same
// bits.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "arrays.hpp"
#include "fast_sums.hpp"
#include "module.hpp"
#include "threads.hpp"

namespace {

using namespace apsvm;

// Rows that are sorted by cell together: in the second-level cache.
constexpr std::size_t kBlock = 8192;
// More cells than these in a row are numbered by looking for those in use.
constexpr double kMostCells = 8192;
// Queries are batched up to this many rows; one with more is worked on by all threads.
constexpr std::size_t kBatch = 1u << 16;

// Rows of one segment, sorted by cell: runs of rows with the same key, and each run's moments.
struct Block {
    struct Run {
        std::int32_t key;
        std::uint32_t begin;
    };
    std::size_t begin, end;
    std::vector<Run> runs;
    std::vector<double> moments;
};

// The cells that some scores need, ascending.
class Grid {
public:
    template <class Basis>
    void lay(const Basis &basis, std::initializer_list<std::pair<const double *, std::size_t>> scores) {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (const auto &[f, n] : scores)
            for (std::size_t i = 0; i < n; ++i) {
                low = std::min(low, f[i]);
                high = std::max(high, f[i]);
            }
        ids.clear();
        const double first = basis.id(low), last = basis.id(high);
        in_a_row = last - first < kMostCells;
        if (in_a_row) {
            for (double id = first; ids.size() <= static_cast<std::size_t>(last - first); ++id)
                ids.push_back(first + static_cast<double>(ids.size()));
            return;
        }
        for (const auto &[f, n] : scores)
            for (std::size_t i = 0; i < n; ++i) ids.push_back(basis.id(f[i]));
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }

    std::int32_t at(double id) const {
        return static_cast<std::int32_t>(std::lower_bound(ids.begin(), ids.end(), id) - ids.begin());
    }

    Ids ids;
    bool in_a_row = true;
};

// Sorts a block's rows by cell: to_x (and to_q, if there are weights q) take their places in their cells, `where` their
// positions in the block. f, q: of all rows.
template <class Basis>
void sort_block(const Basis &basis, const Grid &grid, const double *f, const double *q, Block &block, double *to_x,
                double *to_q, std::uint16_t *where) {
    const std::size_t n = block.end - block.begin;
    f += block.begin;
    thread_local std::vector<double> x;
    thread_local std::vector<std::int32_t> key;
    thread_local std::vector<std::uint32_t> next;
    x.resize(kBlock);
    key.resize(kBlock);
    if (grid.in_a_row) {
        basis.place(f, n, grid.ids[0], x.data(), key.data());
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            const double id = basis.id(f[i]);
            basis.place(f + i, 1, id, x.data() + i, key.data() + i);
            key[i] += grid.at(id) * static_cast<std::int32_t>(basis.variants());
        }
    }
    block.runs.clear();
    const std::size_t keys = grid.ids.size() * basis.variants();
    if (keys <= 8 * n) {
        next.assign(keys, 0);
        for (std::size_t i = 0; i < n; ++i) ++next[static_cast<std::size_t>(key[i])];
        std::uint32_t at = 0;
        for (std::size_t k = 0; k < keys; ++k) {
            if (next[k] != 0) block.runs.push_back({static_cast<std::int32_t>(k), at});
            at += std::exchange(next[k], at);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint32_t place = next[static_cast<std::size_t>(key[i])]++;
            to_x[place] = x[i];
            where[place] = static_cast<std::uint16_t>(i);
        }
    } else {
        std::iota(where, where + n, std::uint16_t{0});
        std::sort(where, where + n,
                  [&](std::uint16_t a, std::uint16_t b) { return key[a] != key[b] ? key[a] < key[b] : a < b; });
        for (std::uint32_t i = 0; i < n; ++i) {
            to_x[i] = x[where[i]];
            if (i == 0 || key[where[i]] != key[where[i - 1]]) block.runs.push_back({key[where[i]], i});
        }
    }
    if (q != nullptr)
        for (std::size_t i = 0; i < n; ++i) to_q[i] = q[block.begin + where[i]];
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

template <class Basis>
void take_moments(const Basis &basis, const double *x, const double *q, Block &block) {
    block.moments.resize(block.runs.size() * basis.stride());
    for_runs(block, [&](std::size_t r, std::size_t begin, std::size_t n) {
        basis.moments(x + begin, q == nullptr ? nullptr : q + begin, n, block.moments.data() + r * basis.stride());
    });
}

// The cells in use by one segment, ascending, with the moments and the number of rows of each.
struct CellsInUse {
    std::vector<std::int32_t> cells;
    std::vector<double> moments;
    std::vector<std::int64_t> rows;
};

// Adds up the blocks from … to − 1, in order. slots: one a cell of the grid, all −1 before and after.
template <class Basis>
void add_up(const Basis &basis, const Block *from, const Block *to, std::vector<std::int32_t> &slots, CellsInUse &use) {
    const auto cell_of = [&](const Block::Run &run) {
        return static_cast<std::size_t>(run.key) / basis.variants();
    };
    use.cells.clear();
    for (const Block *block = from; block < to; ++block)
        for (const Block::Run &run : block->runs)
            if (std::int32_t &slot = slots[cell_of(run)]; slot < 0) {
                slot = 0;
                use.cells.push_back(static_cast<std::int32_t>(cell_of(run)));
            }
    std::sort(use.cells.begin(), use.cells.end());
    for (std::size_t c = 0; c < use.cells.size(); ++c)
        slots[static_cast<std::size_t>(use.cells[c])] = static_cast<std::int32_t>(c);
    const std::size_t stride = basis.stride();
    use.moments.assign(use.cells.size() * stride, 0.0);
    use.rows.assign(use.cells.size(), 0);
    for (const Block *block = from; block < to; ++block)
        for_runs(*block, [&](std::size_t r, std::size_t, std::size_t n) {
            const auto slot = static_cast<std::size_t>(slots[cell_of(block->runs[r])]);
            for (std::size_t k = 0; k < stride; ++k)
                use.moments[slot * stride + k] += block->moments[r * stride + k];
            use.rows[slot] += static_cast<std::int64_t>(n);
        });
    for (const std::int32_t cell : use.cells) slots[static_cast<std::size_t>(cell)] = -1;
}

// out of the block's rows, from the coefficients of each cell in use; `out` held their sorted places.
template <class Basis>
void evaluate_block(const Basis &basis, const Block &block, const std::uint16_t *where, const CellsInUse &use,
                    const std::vector<double> &coefs, double *out) {
    thread_local std::vector<double> x;
    x.assign(out, out + (block.end - block.begin));
    std::size_t slot = 0;
    for_runs(block, [&](std::size_t r, std::size_t begin, std::size_t n) {
        const auto key = static_cast<std::size_t>(block.runs[r].key);
        while (static_cast<std::size_t>(use.cells[slot]) != key / basis.variants()) ++slot;
        basis.evaluate(coefs.data() + (slot * basis.variants() + key % basis.variants()) * basis.stride(),
                       x.data() + begin, n, where + begin, out);
    });
}

void add_blocks(std::vector<Block> &blocks, std::size_t &used, std::size_t begin, std::size_t end) {
    for (; begin < end; begin = std::min(end, begin + kBlock)) {
        if (used == blocks.size()) blocks.emplace_back();
        blocks[used].begin = begin;
        blocks[used].end = std::min(end, begin + kBlock);
        ++used;
    }
}

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

using FourierSetting = std::optional<std::tuple<double, std::size_t, double, double>>;  // h, p, influence, half width

class PairSums {
public:
    PairSums(const std::string &objective, std::string summation, const FourierSetting &fourier, In<std::int64_t> starts,
             In<std::int64_t> classes, In<std::int64_t> queries, In<std::int64_t> below_starts,
             In<std::int64_t> below_first, In<std::int64_t> below_last, In<std::int64_t> above_starts,
             In<std::int64_t> above_first, In<std::int64_t> above_last, std::size_t threads)
        : kernel_(objective == "erfc" ? kErfc : kLogistic), summation_(std::move(summation)), chebyshev_(kernel_),
          threads_(threads) {
        if (fourier) {
            const auto &[h, p, influence, half_width] = *fourier;
            fourier_.emplace(kernel_.c, h, p, influence, half_width);
        }
        const std::int64_t *starts_of = starts.data(), *class_of = classes.data();
        for (std::size_t q = 0; q + 1 < queries.size(); ++q) {
            const auto first = static_cast<std::size_t>(queries.data()[q]);
            const auto last = static_cast<std::size_t>(queries.data()[q + 1]);
            Query query{{first, last}, static_cast<std::size_t>(starts_of[first]),
                        static_cast<std::size_t>(starts_of[last]), 0};
            // A graph's ranges of classes, as ranges of this query's segments.
            const auto translate = [&](std::size_t s, In<std::int64_t> &of, In<std::int64_t> &from,
                                       In<std::int64_t> &to) {
                const std::size_t begin = ranges_.size();
                for (std::int64_t r = of.data()[class_of[s]]; r < of.data()[class_of[s] + 1]; ++r) {
                    const auto place = [&](std::int64_t c) {
                        return static_cast<std::size_t>(std::lower_bound(class_of + first, class_of + last, c) -
                                                        class_of);
                    };
                    const Range range{place(from.data()[r]), place(to.data()[r])};
                    if (range.first < range.last) ranges_.push_back(range);
                }
                return Range{begin, ranges_.size()};
            };
            for (std::size_t s = first; s < last; ++s) {
                const Segment segment{static_cast<std::size_t>(starts_of[s]), static_cast<std::size_t>(starts_of[s + 1]),
                                      translate(s, below_starts, below_first, below_last),
                                      translate(s, above_starts, above_first, above_last)};
                for (std::size_t r = segment.below.first; r < segment.below.last; ++r)
                    query.pairs += static_cast<std::int64_t>(segment.end - segment.begin) *
                                   (starts_of[ranges_[r].last] - starts_of[ranges_[r].first]);
                segments_.push_back(segment);
            }
            pairs_ += query.pairs;
            if (query.pairs == 0) ++queries_without_pairs_;
            queries_.push_back(query);
        }
        std::size_t rows = 0;
        for (std::size_t q = 0; q < queries_.size(); ++q) {
            rows += queries_[q].end - queries_[q].begin;
            if (batches_.empty() || rows > kBatch) {
                batches_.push_back({q, q});
                rows = queries_[q].end - queries_[q].begin;
            }
            batches_.back().last = q + 1;
        }
        workspaces_.resize(batches_.size());
    }

    std::int64_t pairs() const { return pairs_; }
    std::size_t queries_without_pairs() const { return queries_without_pairs_; }

    // scale · L if `with_loss`, else NaN; slopes, if not None, becomes scale · ∂L/∂f.
    double call(In<double> scores, std::optional<Out<double>> slopes, double scale, bool with_loss) {
        nb::gil_scoped_release unlocked;
        double *const out = slopes ? slopes->data() : nullptr;
        std::vector<double> losses(batches_.size(), 0.0);
        const auto run = [&](std::size_t b, std::size_t threads) {
            for (std::size_t q = batches_[b].first; q < batches_[b].last; ++q)
                losses[b] += evaluate(queries_[q], scores.data(), out, scale, with_loss, threads, workspaces_[b]);
        };
        const auto large = [&](std::size_t b) {
            const Range &batch = batches_[b];
            return queries_[batch.last - 1].end - queries_[batch.first].begin > kBatch;
        };
        in_threads(batches_.size(), threads_, [&](std::size_t b) {
            if (!large(b)) run(b, 1);
        });
        for (std::size_t b = 0; b < batches_.size(); ++b)
            if (large(b)) run(b, threads_);
        return with_loss ? scale * std::accumulate(losses.begin(), losses.end(), 0.0)
                         : std::numeric_limits<double>::quiet_NaN();
    }

private:
    double evaluate(const Query &query, const double *f, double *out, double scale, bool with_loss,
                    std::size_t threads, Workspace &work) {
        if (query.pairs == 0) {
            if (out != nullptr) std::fill(out + query.begin, out + query.end, 0.0);
            return 0.0;
        }
        if (summation_ == "direct") return directly(query, f, out, scale, with_loss);
        if (summation_ == "auto") {
            if (query.pairs <= kSurelyDirect) return directly(query, f, out, scale, with_loss);
            work.grid.lay(chebyshev_, {{f + query.begin, query.end - query.begin}});
            // Whether the loss is wanted too makes no difference: the slopes must be the same.
            if (static_cast<double>(query.pairs) * kPairCost <= cost_by_cells(query, work.grid))
                return directly(query, f, out, scale, with_loss);
            return by_cells(chebyshev_, query, f, out, scale, with_loss, threads, work);
        }
        if (fourier_ && out != nullptr) {
            work.grid.lay(*fourier_, {{f + query.begin, query.end - query.begin}});
            by_cells(*fourier_, query, f, out, scale, false, threads, work);
            if (!with_loss) return 0.0;
            out = nullptr;
        }
        work.grid.lay(chebyshev_, {{f + query.begin, query.end - query.begin}});
        return by_cells(chebyshev_, query, f, out, scale, with_loss, threads, work);
    }

    // Nanoseconds, roughly, of slopes: a pair; a row, and a pair of near cells, by the fast sums.
    static constexpr std::int64_t kSurelyDirect = 60;
    static constexpr double kPairCost = 10.0, kRowCost = 12.0, kCellsCost = 8.0;

    double cost_by_cells(const Query &query, const Grid &grid) const {
        const double cells = static_cast<double>(grid.ids.size());
        const double rows = static_cast<double>(query.end - query.begin);
        const double near = std::min({cells, rows, 2.0 * kernel_.reach / kernel_.width});
        double cost = kRowCost * rows;
        for (std::size_t s = query.segments.first; s < query.segments.last; ++s) {
            const Segment &segment = segments_[s];
            const int spreads =
                (segment.below.first < segment.below.last ? 1 : 0) + (segment.above.first < segment.above.last ? 1 : 0);
            cost += kCellsCost * near * spreads * std::min(cells, static_cast<double>(segment.end - segment.begin));
        }
        return cost;
    }

    double directly(const Query &query, const double *f, double *out, double scale, bool with_loss) const {
        double loss = 0.0;
        if (out != nullptr) std::fill(out + query.begin, out + query.end, 0.0);
        for (std::size_t s = query.segments.first; s < query.segments.last; ++s) {
            const Segment &preferred = segments_[s];
            for (std::size_t r = preferred.below.first; r < preferred.below.last; ++r) {
                const std::size_t begin = segments_[ranges_[r].first].begin, end = segments_[ranges_[r].last - 1].end;
                for (std::size_t l = preferred.begin; l < preferred.end; ++l) {
                    double sum = 0.0, own = 0.0;
                    if (out != nullptr)
                        for (std::size_t k = begin; k < end; ++k) {
                            const double slope = kernel_.slope_at(f[l] - f[k]);
                            out[k] += slope;
                            sum += slope;
                        }
                    if (with_loss)
                        for (std::size_t k = begin; k < end; ++k) own += kernel_.loss_at(f[l] - f[k]);
                    if (out != nullptr) out[l] -= sum;
                    loss += own;
                }
            }
        }
        if (out != nullptr)
            for (std::size_t i = query.begin; i < query.end; ++i) out[i] *= scale;
        return loss;
    }

    template <class Basis>
    double by_cells(const Basis &basis, const Query &query, const double *f, double *out, double scale, bool with_loss,
                    std::size_t threads, Workspace &work) {
        const std::size_t first = query.segments.first, n_segments = query.segments.last - first;
        const std::size_t stride = basis.stride();
        // Rows are counted from the query's first here.
        f += query.begin;
        if (out != nullptr) out += query.begin;
        work.where.resize(query.end - query.begin);
        std::size_t n_blocks = 0;
        work.first_block.clear();
        for (std::size_t s = 0; s < n_segments; ++s) {
            work.first_block.push_back(n_blocks);
            add_blocks(work.blocks, n_blocks, segments_[first + s].begin - query.begin,
                       segments_[first + s].end - query.begin);
        }
        work.first_block.push_back(n_blocks);
        in_threads(n_blocks, threads, [&](std::size_t b) {
            Block &block = work.blocks[b];
            thread_local std::vector<double> unused;
            if (out == nullptr) unused.resize(kBlock);
            double *const x = out == nullptr ? unused.data() : out + block.begin;
            sort_block(basis, work.grid, f, nullptr, block, x, nullptr, work.where.data() + block.begin);
            take_moments(basis, x, nullptr, block);
        });

        work.slots.assign(work.grid.ids.size(), -1);
        if (work.use.size() < n_segments) {
            work.use.resize(n_segments);
            work.coefs.resize(n_segments);
        }
        for (std::size_t s = 0; s < n_segments; ++s) {
            add_up(basis, work.blocks.data() + work.first_block[s], work.blocks.data() + work.first_block[s + 1],
                   work.slots, work.use[s]);
            work.coefs[s].assign(work.use[s].cells.size() * basis.variants() * stride, 0.0);
        }

        double loss = 0.0;
        const auto spread = [&](Part part, std::size_t s, double factor, std::vector<double> &coefs) {
            basis.spread(part, work.field, work.grid.ids, work.use[s].cells.data(), work.use[s].cells.size(), factor,
                         coefs.data());
        };
        std::vector<double> felt;
        empty(basis, work);
        for (std::size_t s = 0; s < n_segments; ++s) {
            const Range below = segments_[first + s].below;
            if (below.first == below.last) continue;
            hold(basis, below, first, work);
            if (out != nullptr) spread(Part::preferred, s, -scale, work.coefs[s]);
            if (with_loss) {
                const std::vector<double> &moments = work.use[s].moments;
                felt.assign(moments.size(), 0.0);
                spread(Part::loss, s, 1.0, felt);
                loss += std::inner_product(felt.begin(), felt.end(), moments.begin(), 0.0);
            }
        }
        if (out == nullptr) return loss;
        empty(basis, work);
        for (std::size_t s = n_segments; s-- > 0;) {
            const Range above = segments_[first + s].above;
            if (above.first == above.last) continue;
            hold(basis, above, first, work);
            spread(Part::below, s, scale, work.coefs[s]);
        }

        std::vector<std::size_t> segment_of(n_blocks);
        for (std::size_t s = 0; s < n_segments; ++s)
            std::fill(segment_of.begin() + static_cast<std::ptrdiff_t>(work.first_block[s]),
                      segment_of.begin() + static_cast<std::ptrdiff_t>(work.first_block[s + 1]), s);
        in_threads(n_blocks, threads, [&](std::size_t b) {
            const Block &block = work.blocks[b];
            evaluate_block(basis, block, work.where.data() + block.begin, work.use[segment_of[b]],
                           work.coefs[segment_of[b]], out + block.begin);
        });
        return loss;
    }

    template <class Basis>
    static void empty(const Basis &basis, Workspace &work) {
        work.field.clear(work.grid.ids.size(), basis.stride());
        work.held.clear();
    }

    // Makes the field hold the segments of these ranges. One range that only grows is added to: nothing is ever
    // subtracted.
    template <class Basis>
    void hold(const Basis &basis, Range which, std::size_t first, Workspace &work) const {
        const auto add = [&](std::size_t from, std::size_t to) {
            for (std::size_t s = from; s < to; ++s) {
                const CellsInUse &use = work.use[s - first];
                for (std::size_t c = 0; c < use.cells.size(); ++c)
                    work.field.add(static_cast<std::size_t>(use.cells[c]), use.moments.data() + c * basis.stride(),
                                   use.rows[c]);
            }
        };
        const Range *wanted = ranges_.data() + which.first;
        const std::size_t n = which.last - which.first;
        if (n == 1 && work.held.size() == 1 && wanted->first <= work.held[0].first &&
            work.held[0].last <= wanted->last) {
            add(wanted->first, work.held[0].first);
            add(work.held[0].last, wanted->last);
        } else if (!std::equal(work.held.begin(), work.held.end(), wanted, wanted + n)) {
            empty(basis, work);
            for (std::size_t r = 0; r < n; ++r) add(wanted[r].first, wanted[r].last);
        }
        work.held.assign(wanted, wanted + n);
    }

    const PairKernel &kernel_;
    std::string summation_;
    Chebyshev chebyshev_;
    std::optional<Fourier> fourier_;
    std::size_t threads_, queries_without_pairs_ = 0;
    std::int64_t pairs_ = 0;
    std::vector<Segment> segments_;
    std::vector<Range> ranges_;
    std::vector<Query> queries_;
    std::vector<Range> batches_;  // of queries
    std::vector<Workspace> workspaces_;
};

template <class Basis>
void sum_by_cells(const Basis &basis, Part part, double factor, In<double> sources, In<double> weights,
                  In<double> targets, double *out, std::size_t threads) {
    Grid grid;
    grid.lay(basis, {{sources.data(), sources.size()}, {targets.data(), targets.size()}});
    // The places go to `to`, where they are kept, or are done with when their moments are taken.
    std::vector<std::uint16_t> where(std::max(sources.size(), targets.size()));
    const auto sort_all = [&](In<double> &scores, const double *q, std::vector<Block> &blocks, double *to) {
        std::size_t n = 0;
        add_blocks(blocks, n, 0, scores.size());
        in_threads(n, threads, [&](std::size_t b) {
            std::vector<double> x(to == nullptr ? kBlock : 0), weights_sorted(q == nullptr ? 0 : kBlock);
            double *const places = to == nullptr ? x.data() : to + blocks[b].begin;
            double *const weights_to = q == nullptr ? nullptr : weights_sorted.data();
            sort_block(basis, grid, scores.data(), q, blocks[b], places, weights_to, where.data() + blocks[b].begin);
            take_moments(basis, places, weights_to, blocks[b]);
        });
    };
    std::vector<Block> blocks, target_blocks;
    std::vector<std::int32_t> slots(grid.ids.size(), -1);
    CellsInUse use;
    Field field;
    sort_all(sources, weights.data(), blocks, nullptr);
    add_up(basis, blocks.data(), blocks.data() + blocks.size(), slots, use);
    field.clear(grid.ids.size(), basis.stride());
    for (std::size_t c = 0; c < use.cells.size(); ++c)
        field.add(static_cast<std::size_t>(use.cells[c]), use.moments.data() + c * basis.stride(), use.rows[c]);
    sort_all(targets, nullptr, target_blocks, out);
    add_up(basis, target_blocks.data(), target_blocks.data() + target_blocks.size(), slots, use);
    std::vector<double> coefs(use.cells.size() * basis.variants() * basis.stride(), 0.0);
    basis.spread(part, field, grid.ids, use.cells.data(), use.cells.size(), factor, coefs.data());
    in_threads(target_blocks.size(), threads, [&](std::size_t b) {
        const std::size_t begin = target_blocks[b].begin;
        evaluate_block(basis, target_blocks[b], where.data() + begin, use, coefs, out + begin);
    });
}

// out[j] = Σ_i q_i g(y_j − z_i), for g = erfc, ierfc, sigmoid: 1/(1 + e^t), or softplus: log(1 + e^{−t}).
void kernel_sum(const std::string &name, const std::string &summation, const FourierSetting &fourier,
                In<double> sources, In<double> weights, In<double> targets, Out<double> out, std::size_t threads) {
    const bool plain = name == "erfc" || name == "ierfc";
    const bool loss = name == "ierfc" || name == "softplus";
    const PairKernel &kernel = plain ? kPlainErfc : kLogistic;
    const double factor = plain ? 2.0 : 1.0;
    nb::gil_scoped_release unlocked;
    if (sources.size() == 0 || targets.size() == 0 || summation == "direct") {
        for (std::size_t j = 0; j < targets.size(); ++j) {
            double sum = 0.0;
            for (std::size_t i = 0; i < sources.size(); ++i) {
                const double t = targets.data()[j] - sources.data()[i];
                sum += weights.data()[i] * (loss ? kernel.loss_at(t) : kernel.slope_at(t));
            }
            out.data()[j] = factor * sum;
        }
        return;
    }
    const Part part = loss ? Part::loss : Part::preferred;
    if (fourier) {
        const auto &[h, p, influence, half_width] = *fourier;
        sum_by_cells(Fourier(kernel.c, h, p, influence, half_width), part, factor, sources, weights, targets,
                     out.data(), threads);
    } else {
        sum_by_cells(Chebyshev(kernel), part, factor, sources, weights, targets, out.data(), threads);
    }
}

}  // namespace

void bind_wmw(nb::module_ &m) {
    nb::class_<PairSums>(m, "PairSums")
        .def(nb::init<const std::string &, std::string, const FourierSetting &, In<std::int64_t>, In<std::int64_t>,
                      In<std::int64_t>, In<std::int64_t>, In<std::int64_t>, In<std::int64_t>, In<std::int64_t>,
                      In<std::int64_t>, In<std::int64_t>, std::size_t>(),
             nb::arg("objective"), nb::arg("summation"), nb::arg("fourier").none(), nb::arg("starts"),
             nb::arg("classes"), nb::arg("queries"), nb::arg("below_starts"), nb::arg("below_first"),
             nb::arg("below_last"), nb::arg("above_starts"), nb::arg("above_first"), nb::arg("above_last"),
             nb::arg("threads"))
        .def_prop_ro("pairs", &PairSums::pairs)
        .def_prop_ro("queries_without_pairs", &PairSums::queries_without_pairs)
        .def("__call__", &PairSums::call, nb::arg("scores"), nb::arg("slopes").none(), nb::arg("scale"),
             nb::arg("with_loss"));
    m.def("kernel_sum", &kernel_sum, nb::arg("kernel"), nb::arg("summation"), nb::arg("fourier").none(),
          nb::arg("sources"), nb::arg("weights"), nb::arg("targets"), nb::arg("out"), nb::arg("threads"));
}
