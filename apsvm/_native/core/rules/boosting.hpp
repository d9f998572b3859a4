// Stochastic gradient boosting (Friedman 2001, 2002) of shallow symmetric trees on features in at most 256 bins: all nodes
// of a level have one split, chosen by scores with noise that fades (Prokhorenkova et al., NeurIPS 2018).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace apsvm::rules {

// A complete binary tree of depth D has 2^D − 1 nodes, numbered by level, and 2^D leaves.
constexpr std::size_t nodes_of(std::size_t depth) { return (std::size_t{1} << depth) - 1; }
constexpr std::size_t kMostDepth = 6;
constexpr std::int32_t kNotSplit = -1;

struct Boosting {
    std::size_t trees, depth;
    double rate;            // that a tree's values are multiplied by
    std::size_t rows;       // that each tree is grown on, drawn without replacement
    std::size_t columns;    // that it may split by, likewise
    double prior;           // rows without a slope that each side of a split is given
    double leaf_prior;      // likewise curvature of a leaf
    double noise;           // of the scores of splits, in root mean squares of the slopes, at the first tree
    bool logistic;          // the loss is that of 0/1 targets; else squares
    std::uint64_t seed;
};

// The splits of all trees, one after the other: a row goes left where its bin of `features[node]` is at most
// `bins[node]`; where features[node] is kNotSplit, all go left. `values`, 2^D a tree: what a leaf adds to the scores.
// `scores`, (K, n): those of the rows in the end.
struct Boosted {
    std::vector<std::int32_t> features;
    std::vector<std::uint8_t> bins;
    std::vector<double> values, scores;
};

// codes : (n, d) row by row, the rows' bins; targets : (K, n); tree t is grown on target t mod K. n, d, K > 0.
Boosted boost(std::span<const std::uint8_t> codes, std::size_t n, std::size_t d, std::span<const double> targets,
              const Boosting &how);

}  // namespace apsvm::rules
