#include "checks.hpp"

#include "threads.hpp"

namespace apsvm {

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

}  // namespace apsvm
