#include "sums/cells.hpp"

namespace apsvm {

void add_up_blocks(std::span<const Block> blocks, std::size_t stride, std::vector<std::int32_t> &slots,
                   CellsInUse &use) {
    use.cells.clear();
    for (const Block &block : blocks)
        for (const std::int32_t cell : block.cells)
            if (std::int32_t &slot = slots[static_cast<std::size_t>(cell)]; slot < 0) {
                slot = 0;
                use.cells.push_back(cell);
            }
    std::sort(use.cells.begin(), use.cells.end());
    for (std::size_t c = 0; c < use.cells.size(); ++c)
        slots[static_cast<std::size_t>(use.cells[c])] = static_cast<std::int32_t>(c);
    use.moments.assign(use.cells.size() * stride, 0.0);
    for (const Block &block : blocks)
        for (std::size_t c = 0; c < block.cells.size(); ++c) {
            double *const to = use.moments.data() + static_cast<std::size_t>(slots[block.cells[c]]) * stride;
            for (std::size_t k = 0; k < stride; ++k) to[k] += block.moments[c * stride + k];
        }
    for (const std::int32_t cell : use.cells) slots[static_cast<std::size_t>(cell)] = -1;
}

}  // namespace apsvm
