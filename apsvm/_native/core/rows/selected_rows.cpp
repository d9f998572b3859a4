#include "rows/selected_rows.hpp"

#include "support/checks.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

constexpr std::size_t kMostRuns = 16;
constexpr std::size_t kBlock = 4096;  // places looked at while they are in the cache

// Whether the list ascends.
APSVM_CLONES bool ascends(const std::int32_t *list, std::size_t n) {
    std::uint32_t falls = 0;
    for (std::size_t i = 1; i < n; ++i) falls |= static_cast<std::uint32_t>(list[i] < list[i - 1]);
    return falls == 0;
}

APSVM_CLONES bool ascends(const std::int64_t *list, std::size_t n) {
    std::uint64_t falls = 0;
    for (std::size_t i = 1; i < n; ++i) falls |= static_cast<std::uint64_t>(list[i] < list[i - 1]);
    return falls == 0;
}

template <class Integer>
std::optional<std::vector<std::size_t>> runs_of(const Integer *list, std::size_t n, std::size_t n_rows) {
    std::vector<std::size_t> starts{0};
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t end = std::min(begin + kBlock, n);
        if (!all_below(std::span<const Integer>(list + begin, end - begin), n_rows)) return std::nullopt;
        const std::size_t before = begin > 0 ? begin - 1 : begin;
        if (starts.size() > kMostRuns || ascends(list + before, end - before)) continue;
        for (std::size_t i = before + 1; i < end && starts.size() <= kMostRuns; ++i)
            if (list[i] < list[i - 1]) starts.push_back(i);
    }
    if (starts.size() > kMostRuns) starts.resize(1);
    starts.push_back(n);
    return starts;
}

}  // namespace

std::optional<std::vector<std::size_t>> SelectedRows::runs(std::size_t n_rows) const {
    if (narrow_) return runs_of(narrow_, n_, n_rows);
    if (wide_) return runs_of(wide_, n_, n_rows);
    return std::vector<std::size_t>{0, n_};
}

}  // namespace apsvm
