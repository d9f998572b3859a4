#include "rows.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "threads.hpp"

namespace apsvm {

namespace {

// Below this many multiply-adds starting a thread costs more than it saves.
constexpr std::size_t kWorkPerThread = 1u << 18;
constexpr std::size_t kMaxBlocks = 16;

// Whether all of values[0, n) are below the limit, negative ones taken for very large.
APSVM_CLONES bool all_below(const std::uint32_t *values, std::size_t n, std::uint32_t limit) {
    std::uint32_t above = 0;
    for (std::size_t i = 0; i < n; ++i) above |= static_cast<std::uint32_t>(values[i] >= limit);
    return above == 0;
}

APSVM_CLONES bool all_below(const std::uint64_t *values, std::size_t n, std::uint64_t limit) {
    std::uint64_t above = 0;
    for (std::size_t i = 0; i < n; ++i) above |= static_cast<std::uint64_t>(values[i] >= limit);
    return above == 0;
}

template <class Integer>
bool all_below(std::span<const Integer> values, std::size_t limit) {
    using Unsigned = std::make_unsigned_t<Integer>;
    constexpr std::size_t most = std::size_t{std::numeric_limits<Integer>::max()} + 1;
    using Word = std::conditional_t<sizeof(Integer) == 4, std::uint32_t, std::uint64_t>;
    static_assert(sizeof(Word) == sizeof(Unsigned));
    return all_below(reinterpret_cast<const Word *>(values.data()), values.size(),
                     static_cast<Word>(std::min(limit, most)));
}

}  // namespace

bool rows_exist(std::span<const std::int64_t> rows, std::size_t n_rows) { return all_below(rows, n_rows); }

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
void scores_of_rows(const Matrix &X, std::span<const std::int64_t> rows, const double *W, std::size_t k, double *out,
                    std::size_t threads) {
    const std::size_t n = rows.size();
    std::size_t work = 0;
    for (std::size_t i = 0; i < n && work < threads * kWorkPerThread; ++i) work += k * (X.work(rows[i]) + 1);
    threads = std::clamp<std::size_t>(work / kWorkPerThread, 1, threads);
    in_threads(threads, threads, [&](std::size_t t) {
        for (std::size_t i = n * t / threads; i < n * (t + 1) / threads; ++i)
            for (std::size_t h = 0; h < k; ++h)
                out[i * k + h] = X.dot(static_cast<std::size_t>(rows[i]), W + h * X.n_columns);
    });
}

template <class Matrix>
void combine_rows(const Matrix &X, std::span<const std::int64_t> rows, const double *C, std::size_t k, double *out,
                  std::size_t threads) {
    const std::size_t n = rows.size(), size = k * X.n_columns;
    std::vector<std::size_t> active;  // rows of C that are not all 0
    std::size_t work = 0;
    for (std::size_t i = 0; i < n; ++i) {
        std::size_t entries = 0;
        for (std::size_t h = 0; h < k; ++h) entries += C[i * k + h] != 0.0;
        if (entries > 0) {
            active.push_back(i);
            work += entries * X.work(rows[i]);
        }
    }
    // A block must be worth a thread and worth adding up its accumulator.
    const std::size_t blocks = std::clamp<std::size_t>(work / std::max(kWorkPerThread, 4 * size), 1, kMaxBlocks);
    std::vector<double> partial((blocks - 1) * size, 0.0);
    std::fill(out, out + size, 0.0);
    in_threads(blocks, threads, [&](std::size_t b) {
        double *total = b == 0 ? out : partial.data() + (b - 1) * size;
        for (std::size_t j = active.size() * b / blocks; j < active.size() * (b + 1) / blocks; ++j) {
            const std::size_t i = active[j];
            for (std::size_t h = 0; h < k; ++h)
                if (C[i * k + h] != 0.0)
                    X.add(static_cast<std::size_t>(rows[i]), C[i * k + h], total + h * X.n_columns);
        }
    });
    for (std::size_t b = 1; b < blocks; ++b)
        for (std::size_t at = 0; at < size; ++at) out[at] += partial[(b - 1) * size + at];
}

template std::optional<std::string> find_csr_fault(std::span<const std::int32_t>, std::span<const std::int32_t>,
                                                   std::size_t, std::size_t);
template std::optional<std::string> find_csr_fault(std::span<const std::int64_t>, std::span<const std::int64_t>,
                                                   std::size_t, std::size_t);

#define APSVM_FOR_MATRIX(...)                                                                                  \
    template void scores_of_rows(const __VA_ARGS__ &, std::span<const std::int64_t>, const double *,           \
                                 std::size_t, double *, std::size_t);                                          \
    template void combine_rows(const __VA_ARGS__ &, std::span<const std::int64_t>, const double *,             \
                               std::size_t, double *, std::size_t);
APSVM_FOR_MATRIX(Csr<double, std::int32_t>)
APSVM_FOR_MATRIX(Csr<double, std::int64_t>)
APSVM_FOR_MATRIX(Csr<float, std::int32_t>)
APSVM_FOR_MATRIX(Csr<float, std::int64_t>)
APSVM_FOR_MATRIX(Dense<double>)
APSVM_FOR_MATRIX(Dense<float>)

}  // namespace apsvm
