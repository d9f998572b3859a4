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
    grid.lay(basis, {{sources.data(), sources.size()}, {targets.data(), targets.size()}});
    // The places go to `to`, where they are kept, or are done with when their moments are taken.
    std::vector<std::uint16_t> where(std::max(sources.size(), targets.size()));
    const auto sort_all = [&](std::span<const double> scores, const double *q, std::vector<Block> &blocks, double *to) {
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
    add_up_blocks(basis, blocks.data(), blocks.data() + blocks.size(), slots, use);
    field.clear(grid.ids.size(), basis.stride());
    for (std::size_t c = 0; c < use.cells.size(); ++c)
        field.add(static_cast<std::size_t>(use.cells[c]), use.moments.data() + c * basis.stride(), use.rows[c]);
    sort_all(targets, nullptr, target_blocks, out);
    add_up_blocks(basis, target_blocks.data(), target_blocks.data() + target_blocks.size(), slots, use);
    std::vector<double> coefs(use.cells.size() * basis.variants() * basis.stride(), 0.0);
    basis.spread(sum.part, field, grid.ids, use.cells.data(), use.cells.size(), sum.factor, coefs.data());
    in_threads(target_blocks.size(), threads, [&](std::size_t b) {
        const std::size_t begin = target_blocks[b].begin;
        evaluate_block(basis, target_blocks[b], where.data() + begin, use, coefs, out + begin);
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
