#include "sums/pair_sums.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "support/require.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

// Queries are batched up to this many rows; one with more is worked on by all threads.
constexpr std::size_t kBatch = 1u << 16;
// Nanoseconds, roughly, of slopes: a pair; a row, and a pair of near cells, by the fast sums.
constexpr std::int64_t kSurelyDirect = 60;
constexpr double kPairCost = 10.0, kRowCost = 12.0, kCellsCost = 8.0;

// Whether the boundaries ascend from 0 to `end`.
bool are_boundaries(std::span<const std::int64_t> boundaries, std::int64_t end) {
    return boundaries.front() == 0 && boundaries.back() == end && std::is_sorted(boundaries.begin(), boundaries.end());
}

}  // namespace

Summation summation_named(std::string_view name) {
    if (name == "direct") return Summation::direct;
    if (name == "auto") return Summation::automatic;
    if (name == "chebyshev" || name == "fourier") return Summation::fast;
    throw std::invalid_argument("unknown summation " + std::string(name));
}

PairSums::PairSums(const PairKernel &kernel, Summation summation, const std::optional<FourierSetting> &fourier,
                   const Arrangement &arrangement, const ClassRanges &below, const ClassRanges &above,
                   std::span<const double> weights, std::size_t threads)
    : kernel_(kernel),
      summation_(summation),
      chebyshev_(kernel_),
      threads_(threads),
      weights_(weights.begin(), weights.end()) {
    if (fourier) fourier_.emplace(kernel_.c, *fourier);
    check(arrangement, below, above);
    rows_ = static_cast<std::size_t>(arrangement.starts.back());
    require(weights_.empty() || weights_.size() == rows_, "expected a weight for each row, or none");
    for (std::size_t q = 0; q + 1 < arrangement.queries.size(); ++q) add_query(arrangement, q, below, above);
    make_batches();
}

void PairSums::check(const Arrangement &arrangement, const ClassRanges &below, const ClassRanges &above) {
    const auto &[starts, classes, queries] = arrangement;
    require(starts.size() == classes.size() + 1 && are_boundaries(starts, starts.back()),
            "expected the boundaries of the segments' rows, ascending from 0");
    require(starts.back() <= std::numeric_limits<std::int32_t>::max(), "expected fewer than 2^31 rows");
    require(!queries.empty() && are_boundaries(queries, static_cast<std::int64_t>(classes.size())),
            "expected the boundaries of the queries' segments, ascending from 0 to their number");
    for (const ClassRanges &ranges : {below, above}) {
        require(ranges.first.size() == ranges.last.size() && !ranges.starts.empty() &&
                    are_boundaries(ranges.starts, static_cast<std::int64_t>(ranges.first.size())),
                "expected the boundaries of the classes' ranges, ascending from 0 to their number");
        const auto n_classes = static_cast<std::int64_t>(ranges.starts.size()) - 1;
        for (const std::int64_t c : classes)
            require(0 <= c && c < n_classes, "expected classes of which the graph says what is below and above");
    }
    for (std::size_t q = 0; q + 1 < queries.size(); ++q)
        require(std::is_sorted(classes.begin() + queries[q], classes.begin() + queries[q + 1]),
                "expected the classes of a query in ascending order");
}

void PairSums::add_query(const Arrangement &arrangement, std::size_t q, const ClassRanges &below,
                         const ClassRanges &above) {
    const std::int64_t *const starts_of = arrangement.starts.data(), *const class_of = arrangement.classes.data();
    const auto first = static_cast<std::size_t>(arrangement.queries[q]);
    const auto last = static_cast<std::size_t>(arrangement.queries[q + 1]);
    Query query{
        {first, last}, static_cast<std::size_t>(starts_of[first]), static_cast<std::size_t>(starts_of[last]), 0};
    // A graph's ranges of classes, as ranges of this query's segments.
    const auto translate = [&](std::size_t s, const ClassRanges &of) {
        const std::size_t begin = ranges_.size();
        for (std::int64_t r = of.starts[class_of[s]]; r < of.starts[class_of[s] + 1]; ++r) {
            const auto place = [&](std::int64_t c) {
                return static_cast<std::size_t>(std::lower_bound(class_of + first, class_of + last, c) - class_of);
            };
            const Range range{place(of.first[r]), place(of.last[r])};
            if (range.first < range.last) ranges_.push_back(range);
        }
        return Range{begin, ranges_.size()};
    };
    for (std::size_t s = first; s < last; ++s) {
        const Segment segment{static_cast<std::size_t>(starts_of[s]), static_cast<std::size_t>(starts_of[s + 1]),
                              translate(s, below), translate(s, above)};
        const auto weight_of = [&](std::size_t begin, std::size_t end) {
            const double *const q = weights_.data();
            return weights_.empty() ? static_cast<double>(end - begin) : std::accumulate(q + begin, q + end, 0.0);
        };
        for (std::size_t r = segment.below.first; r < segment.below.last; ++r) {
            const std::int64_t from = starts_of[ranges_[r].first], to = starts_of[ranges_[r].last];
            query.pairs += static_cast<std::int64_t>(segment.end - segment.begin) * (to - from);
            weight_ += weight_of(segment.begin, segment.end) *
                       weight_of(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
        }
        segments_.push_back(segment);
    }
    pairs_ += query.pairs;
    if (query.pairs == 0) ++queries_without_pairs_;
    queries_.push_back(query);
}

void PairSums::make_batches() {
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

double PairSums::evaluate(const double *scores, double *slopes, double scale, bool with_loss) {
    std::vector<double> losses(batches_.size(), 0.0);
    const auto run = [&](std::size_t b, std::size_t threads) {
        for (std::size_t q = batches_[b].first; q < batches_[b].last; ++q)
            losses[b] += evaluate_query(queries_[q], scores, slopes, scale, with_loss, threads, workspaces_[b]);
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

double PairSums::evaluate_query(const Query &query, const double *f, double *out, double scale, bool with_loss,
                                std::size_t threads, Workspace &work) {
    if (query.pairs == 0) {
        std::fill(out + query.begin, out + query.end, 0.0);
        return 0.0;
    }
    if (summation_ == Summation::direct) return directly(query, f, out, scale, with_loss);
    const std::span<const double> scores(f + query.begin, query.end - query.begin);
    if (summation_ == Summation::automatic) {
        if (query.pairs <= kSurelyDirect) return directly(query, f, out, scale, with_loss);
        work.grid.lay(chebyshev_, scores);
        // Whether the loss is wanted too makes no difference: the slopes must be the same.
        if (static_cast<double>(query.pairs) * kPairCost <= cost_by_cells(query, work.grid))
            return directly(query, f, out, scale, with_loss);
        return by_cells(chebyshev_, query, f, out, scale, with_loss, threads, work);
    }
    if (fourier_) {
        work.grid.lay(*fourier_, scores);
        by_cells(*fourier_, query, f, out, scale, false, threads, work);
        if (!with_loss) return 0.0;
        out = nullptr;
    }
    work.grid.lay(chebyshev_, scores);
    return by_cells(chebyshev_, query, f, out, scale, with_loss, threads, work);
}

double PairSums::cost_by_cells(const Query &query, const Grid &grid) const {
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

double PairSums::directly(const Query &query, const double *f, double *out, double scale, bool with_loss) const {
    double loss = 0.0;
    const double *const q = weights_.empty() ? nullptr : weights_.data();
    const auto weight = [q](std::size_t row) { return q == nullptr ? 1.0 : q[row]; };
    std::fill(out + query.begin, out + query.end, 0.0);
    for (std::size_t s = query.segments.first; s < query.segments.last; ++s) {
        const Segment &preferred = segments_[s];
        for (std::size_t r = preferred.below.first; r < preferred.below.last; ++r) {
            const std::size_t begin = segments_[ranges_[r].first].begin, end = segments_[ranges_[r].last - 1].end;
            for (std::size_t l = preferred.begin; l < preferred.end; ++l) {
                double sum = 0.0, cost = 0.0;
                for (std::size_t k = begin; k < end; ++k) {
                    const double slope = weight(l) * weight(k) * kernel_.slope_at(f[l] - f[k]);
                    out[k] += slope;
                    sum += slope;
                }
                if (with_loss)
                    for (std::size_t k = begin; k < end; ++k) cost += weight(l) * weight(k) * kernel_.loss_at(f[l] - f[k]);
                out[l] -= sum;
                loss += cost;
            }
        }
    }
    for (std::size_t i = query.begin; i < query.end; ++i) out[i] *= scale;
    return loss;
}

template <class Basis>
void PairSums::empty(const Basis &basis, Workspace &work) {
    work.field.clear(work.grid.ids.size(), basis.stride());
    work.held.clear();
}

// Makes the field hold the segments of these ranges. One range that only grows is added to: nothing is ever
// subtracted.
template <class Basis>
void PairSums::hold(const Basis &basis, Range which, std::size_t first, Workspace &work) const {
    const auto add = [&](std::size_t from, std::size_t to) {
        for (std::size_t s = from; s < to; ++s) work.field.add(work.use[s - first]);
    };
    const Range *wanted = ranges_.data() + which.first;
    const std::size_t n = which.last - which.first;
    if (n == 1 && work.held.size() == 1 && wanted->first <= work.held[0].first && work.held[0].last <= wanted->last) {
        add(wanted->first, work.held[0].first);
        add(work.held[0].last, wanted->last);
    } else if (!std::equal(work.held.begin(), work.held.end(), wanted, wanted + n)) {
        empty(basis, work);
        for (std::size_t r = 0; r < n; ++r) add(wanted[r].first, wanted[r].last);
    }
    work.held.assign(wanted, wanted + n);
}

template <class Basis>
double PairSums::by_cells(const Basis &basis, const Query &query, const double *f, double *out, double scale,
                          bool with_loss, std::size_t threads, Workspace &work) {
    const std::size_t first = query.segments.first, n_segments = query.segments.last - first;
    const std::size_t stride = basis.stride();
    // Rows are counted from the query's first here.
    f += query.begin;
    if (out != nullptr) out += query.begin;
    const double *const q = weights_.empty() ? nullptr : weights_.data() + query.begin;
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
        basis.take(work.grid, f, q, work.blocks[b], work.where.data());
    });

    work.slots.assign(work.grid.ids.size(), -1);
    if (work.use.size() < n_segments) {
        work.use.resize(n_segments);
        work.coefs.resize(n_segments);
    }
    for (std::size_t s = 0; s < n_segments; ++s) {
        add_up_blocks({work.blocks.data() + work.first_block[s], work.blocks.data() + work.first_block[s + 1]}, stride,
                      work.slots, work.use[s]);
        work.coefs[s].assign(work.use[s].cells.size() * basis.variants() * stride, 0.0);
    }

    double loss = 0.0;
    const auto spread = [&](Part part, std::size_t s, double factor, std::vector<double> &coefs) {
        basis.spread(part, work.field, work.grid.ids, work.use[s].cells, factor, coefs.data());
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
        basis.evaluate(f, block, work.where.data(), work.use[segment_of[b]], work.coefs[segment_of[b]], out);
        if (q != nullptr)
            for (std::size_t i = block.begin; i < block.end; ++i) out[i] *= q[i];
    });
    return loss;
}

}  // namespace apsvm
