#include "rows.hpp"

#include <algorithm>

#include "checks.hpp"
#include "dense_rows.hpp"
#include "threads.hpp"

namespace apsvm {

namespace {

// Below this many multiply-adds starting a thread costs more than it saves.
constexpr std::size_t kWorkPerThread = 1u << 18;
constexpr std::size_t kMaxBlocks = 16;

constexpr std::size_t kWorkOfPiece = 1u << 16;     // multiply-adds
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

// Pieces of about kWorkOfPiece multiply-adds.
Pieces pieces_of(const Selection &rows, double work_of_row) {
    const double size = static_cast<double>(kWorkOfPiece) / std::max(work_of_row, 1.0);
    return {rows.list, rows.runs, rows.n_rows, static_cast<std::size_t>(std::clamp(size, 16.0, 8192.0))};
}

// Rows taken at a time, of so many multiply-adds each, for k weights.
std::size_t chunk_of(double work_of_row, std::size_t k) {
    if (k == 1) return kChunk;
    const double rows = static_cast<double>(kBytesOfChunk) / (sizeof(double) * std::max(work_of_row, 1.0));
    return static_cast<std::size_t>(std::clamp(rows, 8.0, static_cast<double>(kChunk)));
}

}  // namespace

template <class Index>
std::optional<std::string> find_csr_fault(std::span<const Index> indptr, std::span<const Index> indices,
                                          std::size_t n_rows, std::size_t n_columns) {
    const auto text = [](auto number) { return std::to_string(number); };
    if (indptr.size() != n_rows + 1)
        return "expected " + text(n_rows + 1) + " row boundaries, found " + text(indptr.size());
    Index before = 0;
    for (std::size_t row = 0; row <= n_rows; ++row) {
        if (indptr[row] < before || static_cast<std::size_t>(indptr[row]) > indices.size())
            return "expected indptr[" + text(row) + "] from " + text(before) + " to " + text(indices.size()) +
                   ", found " + text(indptr[row]);
        before = indptr[row];
    }
    const auto first = static_cast<std::size_t>(indptr[0]), last = static_cast<std::size_t>(indptr[n_rows]);
    if (all_below(indices.subspan(first, last - first), n_columns)) return std::nullopt;
    for (std::size_t row = 0;; ++row)
        for (auto at = static_cast<std::size_t>(indptr[row]); at < static_cast<std::size_t>(indptr[row + 1]); ++at)
            if (indices[at] < 0 || static_cast<std::size_t>(indices[at]) >= n_columns)
                return "row " + text(row) + " has an entry in column " + text(indices[at]) +
                       ", expected columns 0 to " + text(static_cast<std::ptrdiff_t>(n_columns) - 1);
}

template <class Matrix>
void scores_of_rows(const Matrix &X, const Selection &rows, const double *W, std::size_t k, double *out,
                    std::size_t threads) {
    const double work_of_row = static_cast<double>(k) * (work_a_row(X, rows.n_rows) + 1.0);
    const double work = work_of_row * static_cast<double>(rows.list.size());
    const Pieces pieces = pieces_of(rows, work_of_row);
    const std::size_t step = chunk_of(work_of_row / static_cast<double>(k), k);
    const std::size_t worthwhile = std::min(static_cast<std::size_t>(work / kWorkPerThread), pieces.count());
    threads = std::clamp<std::size_t>(worthwhile, 1, threads);
    in_threads(threads, threads, [&](std::size_t t) {
        std::size_t numbers[kChunk];
        pieces.each(pieces.count() * t / threads, pieces.count() * (t + 1) / threads,
                    [&](std::size_t, std::size_t begin, std::size_t end) {
                        for (std::size_t i = begin; i < end; i += step) {
                            const std::size_t n = std::min(step, end - i);
                            rows.list.read(i, i + n, numbers);
                            for (std::size_t h = 0; h < k; ++h)
                                dots(X, numbers, n, W + h * X.n_columns, out + i * k + h, k);
                        }
                    });
    });
}

template <class Matrix>
void combine_rows(const Matrix &X, const Selection &rows, const double *C, std::size_t k, double *out,
                  std::size_t threads) {
    const std::size_t size = k * X.n_columns;
    const double work_of_row = work_a_row(X, rows.n_rows);
    const Pieces pieces = pieces_of(rows, work_of_row * static_cast<double>(k));
    // The entries of C up to each piece that are not 0: what there is to do.
    std::vector<std::size_t> entries(pieces.count() + 1, 0);
    const std::size_t counting = std::clamp<std::size_t>(rows.list.size() * k / kWorkPerThread, 1, threads);
    in_threads(counting, threads, [&](std::size_t t) {
        pieces.each(pieces.count() * t / counting, pieces.count() * (t + 1) / counting,
                    [&](std::size_t piece, std::size_t begin, std::size_t end) {
                        entries[piece + 1] += count_nonzero(C + begin * k, (end - begin) * k);
                    });
    });
    for (std::size_t piece = 0; piece < pieces.count(); ++piece) entries[piece + 1] += entries[piece];
    const std::size_t total_entries = entries.back();
    // A block must be worth a thread and worth adding up its accumulator.
    const auto work = static_cast<std::size_t>(work_of_row * static_cast<double>(total_entries));
    const std::size_t blocks = std::clamp<std::size_t>(work / std::max(kWorkPerThread, 4 * size), 1, kMaxBlocks);
    const auto first_piece = [&](std::size_t block) {
        const auto at = std::lower_bound(entries.begin(), entries.end(), total_entries * block / blocks);
        return block == blocks ? pieces.count() : static_cast<std::size_t>(at - entries.begin());
    };
    std::vector<double> partial((blocks - 1) * size, 0.0);
    std::fill(out, out + size, 0.0);
    const std::size_t step = chunk_of(work_of_row, k);
    in_threads(blocks, threads, [&](std::size_t b) {
        double *const total = b == 0 ? out : partial.data() + (b - 1) * size;
        std::size_t numbers[kChunk], weighted[kChunk];
        double factors[kChunk];
        pieces.each(first_piece(b), first_piece(b + 1), [&](std::size_t piece, std::size_t begin, std::size_t end) {
            if (entries[piece] == entries[piece + 1]) return;
            for (std::size_t i = begin; i < end; i += step) {
                const std::size_t n = std::min(step, end - i);
                rows.list.read(i, i + n, numbers);
                for (std::size_t h = 0; h < k; ++h) {
                    std::size_t kept = 0;
                    for (std::size_t j = 0; j < n; ++j) {
                        const double factor = C[(i + j) * k + h];
                        weighted[kept] = numbers[j];
                        factors[kept] = factor;
                        kept += factor != 0.0;
                    }
                    add_rows(X, weighted, factors, kept, total + h * X.n_columns);
                }
            }
        });
    });
    for (std::size_t b = 1; b < blocks; ++b)
        for (std::size_t at = 0; at < size; ++at) out[at] += partial[(b - 1) * size + at];
}

template std::optional<std::string> find_csr_fault(std::span<const std::int32_t>, std::span<const std::int32_t>,
                                                   std::size_t, std::size_t);
template std::optional<std::string> find_csr_fault(std::span<const std::int64_t>, std::span<const std::int64_t>,
                                                   std::size_t, std::size_t);

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
