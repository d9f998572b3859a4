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

// Pieces of about this many multiply-adds.
Pieces pieces_of(const Selection &rows, double work_of_row, std::size_t work_of_piece = kWorkOfPiece) {
    const double size = static_cast<double>(work_of_piece) / std::max(work_of_row, 1.0);
    return {rows.list, rows.runs, rows.n_rows, static_cast<std::size_t>(std::clamp(size, 16.0, 8192.0))};
}

// Rows taken at a time, of this many multiply-adds each, for k weights.
std::size_t chunk_of(double work_of_row, std::size_t k) {
    if (k == 1) return kChunk;
    const double rows = static_cast<double>(kBytesOfChunk) / (sizeof(double) * std::max(work_of_row, 1.0));
    return static_cast<std::size_t>(std::clamp(rows, 8.0, static_cast<double>(kChunk)));
}

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
Scores<Matrix>::Scores(const Matrix &X, const Selection &rows, const double *W, std::size_t k, double *out,
                       std::size_t work_of_piece, bool follows)
    : X_(X), list_(rows.list), W_(W), k_(k), out_(out), work_of_row_(work_a_row(X, rows.n_rows) + 1.0),
      from_memory_(!follows && exceeds_caches(rows.list, work_of_row_)),
      pieces_(pieces_of(rows, work_of_row_ * static_cast<double>(k), work_of_piece)) {}

template <class Matrix>
std::size_t Scores<Matrix>::threads_worthwhile() const {
    const double work = work_of_row_ * static_cast<double>(k_) * static_cast<double>(list_.size());
    return std::min(static_cast<std::size_t>(work / kWorkPerThread), pieces_.count());
}

template <class Matrix>
void Scores<Matrix>::compute(Pieces::Cursor &cursor, std::size_t last) const {
    std::size_t numbers[kChunk];
    // A range comes faster one row after another, with those that are left out, than each run's rows with the gaps that
    // the others leave.
    if (Matrix::dense && k_ == 1 && from_memory_ && pieces_.leave_few_out()) {
        std::vector<double> of_range;
        pieces_.each_range(cursor, last, [&](std::size_t, const Range &range) {
            of_range.resize(range.high - range.low);
            for (std::size_t row = range.low; row < range.high; row += kChunk) {
                const std::size_t n = std::min(kChunk, range.high - row);
                std::iota(numbers, numbers + n, row);
                dots(X_, numbers, n, W_, of_range.data() + (row - range.low), 1, true);
            }
            for (const auto &[begin, end] : range.parts)
                list_.each(begin, end, [&](std::size_t i, std::size_t row) { out_[i] = of_range[row - range.low]; });
        });
        return;
    }
    const std::size_t step = chunk_of(work_of_row_, k_);
    pieces_.each(cursor, last, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; i += step) {
            const std::size_t n = std::min(step, end - i);
            list_.read(i, i + n, numbers);
            for (std::size_t h = 0; h < k_; ++h)
                dots(X_, numbers, n, W_ + h * X_.n_columns, out_ + i * k_ + h, k_, h == 0 && from_memory_);
        }
    });
}

template <class Matrix>
void scores_of_rows(const Matrix &X, const Selection &rows, const double *W, std::size_t k, double *out,
                    std::size_t threads) {
    const Scores<Matrix> scores(X, rows, W, k, out, kWorkOfPiece);
    threads = std::clamp<std::size_t>(scores.threads_worthwhile(), 1, threads);
    const std::size_t tasks = threads == 1 ? 1 : kTasksPerThread * threads;
    in_threads(tasks, threads, [&](std::size_t t) {
        Pieces::Cursor cursor = scores.before(scores.pieces() * t / tasks);
        scores.compute(cursor, scores.pieces() * (t + 1) / tasks);
    });
}

template <class Matrix>
Combination<Matrix>::Combination(const Matrix &X, const Selection &rows, const double *C, std::size_t k,
                                 std::size_t threads, bool follows)
    : X_(X), list_(rows.list), C_(C), k_(k), work_of_row_(work_a_row(X, rows.n_rows)),
      from_memory_(!follows && exceeds_caches(rows.list, work_of_row_)),
      pieces_(pieces_of(rows, work_of_row_ * static_cast<double>(k))),
      by_ranges_(Matrix::dense && k == 1 && exceeds_caches(rows.list, work_of_row_) && pieces_.leave_few_out()),
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

template <class Matrix>
std::size_t Combination<Matrix>::first_piece(std::size_t block) const {
    if (block == blocks_) return pieces_.count();
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), entries_.back() * block / blocks_);
    return static_cast<std::size_t>(at - entries_.begin());
}

template <class Matrix>
void Combination<Matrix>::add(std::size_t block, Pieces::Cursor &cursor, std::size_t last) {
    double *const total = totals_.data() + block * k_ * X_.n_columns;
    std::vector<double> of_range;
    pieces_.each_range(cursor, last, [&](std::size_t piece, const Range &range) {
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

template <class Matrix>
void Combination<Matrix>::add_places(std::size_t begin, std::size_t end, double *total) const {
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

template <class Matrix>
void Combination<Matrix>::write(double *out) const {
    const std::size_t size = k_ * X_.n_columns;
    std::copy_n(totals_.begin(), size, out);
    for (std::size_t b = 1; b < blocks_; ++b)
        for (std::size_t at = 0; at < size; ++at) out[at] += totals_[b * size + at];
}

template <class Matrix>
void combine_rows(const Matrix &X, const Selection &rows, const double *C, std::size_t k, double *out,
                  std::size_t threads) {
    Combination<Matrix> combination(X, rows, C, k, threads);
    in_threads(combination.blocks(), threads, [&](std::size_t b) {
        Pieces::Cursor cursor = combination.before(combination.first_piece(b));
        combination.add(b, cursor, combination.first_piece(b + 1));
    });
    combination.write(out);
}

template CsrLook look_at_csr(std::span<const std::int32_t>, std::span<const std::int32_t>, std::size_t, std::size_t);
template CsrLook look_at_csr(std::span<const std::int64_t>, std::span<const std::int64_t>, std::size_t, std::size_t);

#define APSVM_FOR_MATRIX(...)                                                                                  \
    template class Scores<__VA_ARGS__>;                                                                        \
    template class Combination<__VA_ARGS__>;                                                                   \
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
