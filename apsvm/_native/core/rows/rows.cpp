#include "rows/rows.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "support/checks.hpp"
#include "rows/dense_rows.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

// Below this many multiply-adds starting a thread costs more than it saves.
constexpr std::size_t kWorkPerThread = 1u << 18;
constexpr std::size_t kMaxBlocks = 16;
// On a busy machine a thread may lose its core for a while: the others take what it leaves.
constexpr std::size_t kTasksPerThread = 8;

constexpr std::size_t kWorkOfPiece = 1u << 16;     // multiply-adds
constexpr std::size_t kValuesInCaches = 1u << 21;  // about
constexpr std::size_t kChunk = 512;                // rows whose numbers are read at once
constexpr std::size_t kBytesOfChunk = 16u << 10;   // of rows that meet several weights, to stay in the cache

template <class Value>
double work_a_row(const Dense<Value> &X, std::size_t) {
    return static_cast<double>(X.n_columns);
}

template <class Value, class Index>
double work_a_row(const Csr<Value, Index> &X, std::size_t n_rows) {
    const auto stored = static_cast<double>(X.indptr[n_rows] - X.indptr[0]);
    return n_rows == 0 ? 0.0 : stored / static_cast<double>(n_rows);
}

APSVM_CLONES std::size_t count_nonzero(const double *values, std::size_t n) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) count += values[i] != 0.0;
    return count;
}

// Whether a pass over the rows leaves nothing of the first ones in the caches for the next pass.
bool exceeds_caches(const SelectedRows &rows, double work_of_row) {
    return static_cast<double>(rows.size()) * work_of_row > static_cast<double>(kValuesInCaches);
}

// Whether rows of factor 0 are worth a list of the others. Dense rows that come from the memory come faster one after
// another than with gaps, and a list costs half as much as adding rows from the cache: the shares are where both took as
// long, at 8 to 100 columns.
template <class Matrix>
bool skipping_pays(std::size_t nonzero, std::size_t n, bool from_memory) {
    if constexpr (!Matrix::dense) return nonzero < n;
    return 4 * nonzero < (from_memory ? 2 : 3) * n;
}

// Whether factors are worth being dealt out to a range in the matrix's order, to add its rows without gaps: where all of
// them are selected, enough are not of its longest run, and a third is not of factor 0. The shares are near those where
// both ways took as long: outside the longest run .1 at 20 columns of float64, .04 at 30, .01 at 60 and .005 at 100.
bool dealing_pays(const Range &range, std::size_t nonzero, double bytes_of_row) {
    std::size_t places = 0, longest = 0;
    for (const auto &[begin, end] : range.parts) {
        places += end - begin;
        longest = std::max(longest, end - begin);
    }
    const auto others = static_cast<double>(places - longest);
    return places == range.high - range.low && 3 * nonzero >= places &&
           others * bytes_of_row * bytes_of_row > 2560.0 * static_cast<double>(places);
}

Pieces pieces_of(const Selection &rows, double work_of_row) {
    const double size = static_cast<double>(kWorkOfPiece) / std::max(work_of_row, 1.0);
    return {rows.list, rows.runs, rows.n_rows, static_cast<std::size_t>(std::clamp(size, 16.0, 8192.0))};
}

// Rows taken at a time, of this many multiply-adds each, for k weights.
std::size_t chunk_of(double work_of_row, std::size_t k) {
    if (k == 1) return kChunk;
    const double rows = static_cast<double>(kBytesOfChunk) / (sizeof(double) * std::max(work_of_row, 1.0));
    return static_cast<std::size_t>(std::clamp(rows, 8.0, static_cast<double>(kChunk)));
}

// A combination computed block by block. C (rows, k); `threads` count its entries that are not 0.
template <class Matrix>
class Combination {
public:
    Combination(const Matrix &X, const Selection &rows, const double *C, std::size_t k, std::size_t threads)
        : X_(X), list_(rows.list), C_(C), k_(k), work_of_row_(work_a_row(X, rows.n_rows)),
          from_memory_(exceeds_caches(rows.list, work_of_row_)),
          pieces_(pieces_of(rows, work_of_row_ * static_cast<double>(k))),
          by_ranges_(Matrix::dense && k == 1 && from_memory_ && pieces_.leave_few_out()),
          entries_(pieces_.count() + 1, 0) {
        const std::size_t counting = std::clamp<std::size_t>(list_.size() * k / kWorkPerThread, 1, threads);
        in_threads(counting, threads, [&](std::size_t t) {
            pieces_.each(pieces_.count() * t / counting, pieces_.count() * (t + 1) / counting,
                         [&](std::size_t piece, std::size_t begin, std::size_t end) {
                             entries_[piece + 1] += count_nonzero(C + begin * k, (end - begin) * k);
                         });
        });
        for (std::size_t piece = 0; piece < pieces_.count(); ++piece) entries_[piece + 1] += entries_[piece];
        // A block must be worth a thread and worth adding up its accumulator.
        const std::size_t size = k * X.n_columns;
        const auto work = static_cast<std::size_t>(work_of_row_ * static_cast<double>(entries_.back()));
        blocks_ = std::clamp<std::size_t>(work / std::max(kWorkPerThread, 4 * size), 1, kMaxBlocks);
        totals_.assign(blocks_ * size, 0.0);
    }

    std::size_t blocks() const { return blocks_; }

    void add(std::size_t block) {
        double *const total = totals_.data() + block * k_ * X_.n_columns;
        std::vector<double> of_range;
        pieces_.each_range(first_piece(block), first_piece(block + 1), [&](std::size_t piece, const Range &range) {
            const std::size_t nonzero = entries_[piece + 1] - entries_[piece];
            if (nonzero == 0) return;
            if (!by_ranges_ || !dealing_pays(range, nonzero, work_of_row_ * sizeof(*X_.values))) {
                for (const auto &[begin, end] : range.parts) add_places(begin, end, total);
                return;
            }
            of_range.assign(range.high - range.low, 0.0);
            for (const auto &[begin, end] : range.parts)
                list_.each(begin, end, [&](std::size_t i, std::size_t row) { of_range[row - range.low] += C_[i]; });
            std::size_t numbers[kChunk];
            for (std::size_t row = range.low; row < range.high; row += kChunk) {
                const std::size_t n = std::min(kChunk, range.high - row);
                std::iota(numbers, numbers + n, row);
                add_rows(X_, numbers, of_range.data() + (row - range.low), n, total, from_memory_);
            }
        });
    }

    // The sum of all blocks, out (k, X.n_columns).
    void write(double *out) const {
        const std::size_t size = k_ * X_.n_columns;
        std::copy_n(totals_.begin(), size, out);
        for (std::size_t b = 1; b < blocks_; ++b)
            for (std::size_t at = 0; at < size; ++at) out[at] += totals_[b * size + at];
    }

private:
    std::size_t first_piece(std::size_t block) const {
        if (block == blocks_) return pieces_.count();
        const auto at = std::lower_bound(entries_.begin(), entries_.end(), entries_.back() * block / blocks_);
        return static_cast<std::size_t>(at - entries_.begin());
    }

    void add_places(std::size_t begin, std::size_t end, double *total) const {
        const std::size_t step = chunk_of(work_of_row_, k_);
        std::size_t numbers[kChunk], weighted[kChunk];
        double factors[kChunk];
        for (std::size_t i = begin; i < end; i += step) {
            const std::size_t n = std::min(step, end - i);
            list_.read(i, i + n, numbers);
            if (k_ == 1 && !skipping_pays<Matrix>(count_nonzero(C_ + i, n), n, from_memory_)) {
                add_rows(X_, numbers, C_ + i, n, total, from_memory_);
                continue;
            }
            for (std::size_t h = 0; h < k_; ++h) {
                std::size_t kept = 0;
                for (std::size_t j = 0; j < n; ++j) {
                    const double factor = C_[(i + j) * k_ + h];
                    weighted[kept] = numbers[j];
                    factors[kept] = factor;
                    kept += factor != 0.0;
                }
                add_rows(X_, weighted, factors, kept, total + h * X_.n_columns, h == 0 && from_memory_);
            }
        }
    }

    const Matrix &X_;
    const SelectedRows &list_;
    const double *C_;
    std::size_t k_;
    double work_of_row_;
    bool from_memory_;  // and not from the caches
    Pieces pieces_;
    bool by_ranges_;                    // in the matrix's order where that pays
    std::vector<std::size_t> entries_;  // of C up to each piece, those that are not 0: the work to do
    std::size_t blocks_;
    std::vector<double> totals_;  // (blocks, k, X.n_columns)
};

}  // namespace

template <class Index>
CsrLook look_at_csr(std::span<const Index> indptr, std::span<const Index> indices, std::size_t n_rows,
                    std::size_t n_columns) {
    const auto text = [](auto number) { return std::to_string(number); };
    const auto faulty = [](std::string fault) { return CsrLook{std::move(fault), false}; };
    if (indptr.size() == 0 || indptr.size() - 1 != n_rows)
        return faulty("expected " + text(n_rows + 1) + " row boundaries, found " + text(indptr.size()));
    // What stands in front of the first row would be left out in silence.
    if (indptr[0] != 0) return faulty("expected indptr[0] to be 0, found " + text(indptr[0]));
    Index before = 0;
    for (std::size_t row = 0; row <= n_rows; ++row) {
        if (indptr[row] < before || static_cast<std::size_t>(indptr[row]) > indices.size())
            return faulty("expected indptr[" + text(row) + "] from " + text(before) + " to " + text(indices.size()) +
                          ", found " + text(indptr[row]));
        before = indptr[row];
    }
    const auto last = static_cast<std::size_t>(indptr[n_rows]);
    const Indices look = look_at_indices(indices.first(last), n_columns);
    if (look.below) {
        // A row begins where columns may fall.
        std::size_t at_rows = 0, begin = 0;
        for (std::size_t row = 1; row < n_rows; ++row) {
            const auto at = static_cast<std::size_t>(indptr[row]);
            if (at == begin || at == last) continue;
            begin = at;
            at_rows += indices[at] <= indices[at - 1];
        }
        return {std::nullopt, look.falls == at_rows};
    }
    for (std::size_t row = 0;; ++row)
        for (auto at = static_cast<std::size_t>(indptr[row]); at < static_cast<std::size_t>(indptr[row + 1]); ++at)
            if (indices[at] < 0 || static_cast<std::size_t>(indices[at]) >= n_columns)
                return faulty("row " + text(row) + " has an entry in column " + text(indices[at]) +
                              ", expected columns 0 to " + text(static_cast<std::ptrdiff_t>(n_columns) - 1));
}

template <class Matrix>
void scores_of_rows(const Matrix &X, const Selection &rows, const double *W, std::size_t k, double *out,
                    std::size_t threads) {
    const SelectedRows &list = rows.list;
    const double work_of_row = work_a_row(X, rows.n_rows) + 1.0;
    const bool from_memory = exceeds_caches(list, work_of_row);  // and not from the caches
    const Pieces pieces = pieces_of(rows, work_of_row * static_cast<double>(k));
    // The scores of the pieces [first, last). A range comes faster one row after another, with those that are left out,
    // than each run's rows with the gaps that the others leave.
    const auto by_ranges = [&](std::size_t first, std::size_t last) {
        std::size_t numbers[kChunk];
        std::vector<double> of_range;
        pieces.each_range(first, last, [&](std::size_t, const Range &range) {
            of_range.resize(range.high - range.low);
            for (std::size_t row = range.low; row < range.high; row += kChunk) {
                const std::size_t n = std::min(kChunk, range.high - row);
                std::iota(numbers, numbers + n, row);
                dots(X, numbers, n, W, of_range.data() + (row - range.low), 1, true);
            }
            for (const auto &[begin, end] : range.parts)
                list.each(begin, end, [&](std::size_t i, std::size_t row) { out[i] = of_range[row - range.low]; });
        });
    };
    const auto by_places = [&](std::size_t first, std::size_t last) {
        std::size_t numbers[kChunk];
        const std::size_t step = chunk_of(work_of_row, k);
        pieces.each(first, last, [&](std::size_t, std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; i += step) {
                const std::size_t n = std::min(step, end - i);
                list.read(i, i + n, numbers);
                for (std::size_t h = 0; h < k; ++h)
                    dots(X, numbers, n, W + h * X.n_columns, out + i * k + h, k, h == 0 && from_memory);
            }
        });
    };
    const double work = work_of_row * static_cast<double>(k) * static_cast<double>(list.size());
    const std::size_t worthwhile = std::min(static_cast<std::size_t>(work / kWorkPerThread), pieces.count());
    threads = std::clamp<std::size_t>(worthwhile, 1, threads);
    const std::size_t tasks = threads == 1 ? 1 : kTasksPerThread * threads;
    in_threads(tasks, threads, [&](std::size_t t) {
        const std::size_t first = pieces.count() * t / tasks, last = pieces.count() * (t + 1) / tasks;
        if (Matrix::dense && k == 1 && from_memory && pieces.leave_few_out())
            by_ranges(first, last);
        else
            by_places(first, last);
    });
}

template <class Matrix>
void combine_rows(const Matrix &X, const Selection &rows, const double *C, std::size_t k, double *out,
                  std::size_t threads) {
    Combination<Matrix> combination(X, rows, C, k, threads);
    in_threads(combination.blocks(), threads, [&](std::size_t b) { combination.add(b); });
    combination.write(out);
}

template CsrLook look_at_csr(std::span<const std::int32_t>, std::span<const std::int32_t>, std::size_t, std::size_t);
template CsrLook look_at_csr(std::span<const std::int64_t>, std::span<const std::int64_t>, std::size_t, std::size_t);

#define APSVM_FOR_MATRIX(...)                                                                                  \
    template void scores_of_rows(const __VA_ARGS__ &, const Selection &, const double *, std::size_t, double *, \
                                 std::size_t);                                                                 \
    template void combine_rows(const __VA_ARGS__ &, const Selection &, const double *, std::size_t, double *,  \
                               std::size_t);
APSVM_FOR_MATRIX(Csr<double, std::int32_t>)
APSVM_FOR_MATRIX(Csr<double, std::int64_t>)
APSVM_FOR_MATRIX(Csr<float, std::int32_t>)
APSVM_FOR_MATRIX(Csr<float, std::int64_t>)
APSVM_FOR_MATRIX(Dense<double>)
APSVM_FOR_MATRIX(Dense<float>)

}  // namespace apsvm
