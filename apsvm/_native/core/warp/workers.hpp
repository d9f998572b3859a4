// The threads of a descent, and how draws are shared out among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/threads.hpp"
#include "warp/ahead.hpp"
#include "warp/difference.hpp"
#include "warp/parameters.hpp"
#include "warp/rank_loss.hpp"

namespace apsvm::warp {

// How to descend: what a draw is worth, the pace of the steps, the draws between two instalments of the L2 penalty.
struct Descent {
    RankLoss loss;
    Pace pace;
    std::int64_t instalment;
    std::uint64_t seed;
    std::size_t threads;
};

// What one thread keeps from call to call.
struct alignas(128) Worker {
    explicit Worker(std::uint64_t seed) : random(seed) {}
    Random random;
    Ahead ahead;
    std::int64_t unpaid = 0;   // draws whose share of the L2 penalty is still to be paid
    std::vector<double> copy;  // of the weights, where they are shared
    std::vector<double> difference;  // between two dense rows
    SparseDifference sparse_difference;
};

// Cuts 0..n−1 into a stretch a worker; draw<Access>(i, worker, counts).
template <class Draw>
Counts run_all(std::size_t n, std::vector<Worker> &workers, Draw draw) {
    std::vector<Counts> found(workers.size());
    in_threads(workers.size(), workers.size(), [&](std::size_t t) {
        Counts counts;
        for (std::size_t i = n * t / workers.size(); i < n * (t + 1) / workers.size(); ++i) {
            if (workers.size() == 1)
                draw.template operator()<Plain>(i, workers[t], counts);
            else
                draw.template operator()<Relaxed>(i, workers[t], counts);
        }
        found[t] = counts;
    });
    Counts total;
    for (const Counts &counts : found) total += counts;
    return total;
}

inline std::vector<Worker> make_workers(std::uint64_t seed, std::size_t threads) {
    std::vector<Worker> workers;
    for (std::size_t t = 0; t < threads; ++t) workers.emplace_back(seed + t);
    return workers;
}

}  // namespace apsvm::warp
