#include "sums/kernel_sum.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sums/cells.hpp"
#include "support/threads.hpp"

namespace apsvm {

namespace {

template <class Basis>
void sum_by_cells(const Basis &basis, const KernelSum &sum, std::span<const double> sources,
                  std::span<const double> weights, std::span<const double> targets, double *out, std::size_t threads) {
    Grid grid;
    grid.lay(basis, sources, targets);
    std::vector<std::uint16_t> where(std::max(sources.size(), targets.size()));
    const auto take_all = [&](std::span<const double> scores, const double *q, std::vector<Block> &blocks) {
        std::size_t n = 0;
        add_blocks(blocks, n, 0, scores.size());
        in_threads(n, threads, [&](std::size_t b) { basis.take(grid, scores.data(), q, blocks[b], where.data()); });
    };
    std::vector<Block> blocks, target_blocks;
    std::vector<std::int32_t> slots(grid.ids.size(), -1);
    CellsInUse use;
    Field field;
    take_all(sources, weights.data(), blocks);
    add_up_blocks(blocks, basis.stride(), slots, use);
    field.clear(grid.ids.size(), basis.stride());
    field.add(use);
    take_all(targets, nullptr, target_blocks);
    add_up_blocks(target_blocks, basis.stride(), slots, use);
    std::vector<double> coefs(use.cells.size() * basis.variants() * basis.stride(), 0.0);
    basis.spread(sum.part, field, grid.ids, use.cells, sum.factor, coefs.data());
    in_threads(target_blocks.size(), threads, [&](std::size_t b) {
        basis.evaluate(targets.data(), target_blocks[b], where.data(), use, coefs, out);
    });
}

}  // namespace

KernelSum kernel_sum_named(std::string_view name) {
    if (name == "erfc") return {kPlainErfc, Part::preferred, 2.0};
    if (name == "ierfc") return {kPlainErfc, Part::loss, 2.0};
    if (name == "sigmoid") return {kLogistic, Part::preferred, 1.0};
    if (name == "softplus") return {kLogistic, Part::loss, 1.0};
    throw std::invalid_argument("unknown kernel " + std::string(name));
}

void evaluate_kernel_sum(const KernelSum &sum, bool directly, const std::optional<FourierSetting> &fourier,
                         std::span<const double> sources, std::span<const double> weights,
                         std::span<const double> targets, double *out, std::size_t threads) {
    const auto &[kernel, part, factor] = sum;
    if (sources.empty() || targets.empty() || directly) {
        for (std::size_t j = 0; j < targets.size(); ++j) {
            double total = 0.0;
            for (std::size_t i = 0; i < sources.size(); ++i) {
                const double t = targets[j] - sources[i];
                total += weights[i] * (part == Part::loss ? kernel.loss_at(t) : kernel.slope_at(t));
            }
            out[j] = factor * total;
        }
        return;
    }
    if (fourier)
        sum_by_cells(Fourier(kernel.c, *fourier), sum, sources, weights, targets, out, threads);
    else
        sum_by_cells(Chebyshev(kernel), sum, sources, weights, targets, out, threads);
}

}  // namespace apsvm
