#include "rules/boosting.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "support/random.hpp"

namespace apsvm::rules {
namespace {

constexpr double kLeastCurvature = 1e-12;
constexpr double kMostStep = 1.0;

// Of the rows of a node in one bin. `rows` is a double because sums are divided by it.
struct Cell {
    double slope = 0.0;
    double rows = 0.0;
};

struct Node {
    std::size_t begin, end;  // its rows are a run of the drawn ones
    double slope;
    std::vector<Cell> cells;  // those of the columns drawn, one after the other; empty where it cannot be split
};

struct Split {
    double gain = 0.0;
    std::size_t column = 0;  // among those drawn
    std::size_t bin = 0;
    double left = 0.0;  // the slope
};

class Booster {
public:
    Booster(std::span<const std::uint8_t> codes, std::size_t n, std::size_t d, std::span<const double> targets,
            const Boosting &how)
        : codes_(codes.data()), n_(n), d_(d), targets_(targets), how_(how), random_(how.seed),
          fits_(targets.size()), slopes_(n), leaves_(n), bins_(d, 1), aside_(n) {
        // Cells that no row has would cost more than the others where most features have few values.
        for (std::size_t i = 0; i < codes.size(); ++i)
            bins_[i % d] = std::max(bins_[i % d], std::size_t{codes[i]} + 1);
        grown_.features.assign(how.trees * nodes_of(how.depth), kNotSplit);
        grown_.bins.assign(how.trees * nodes_of(how.depth), 0);
        grown_.values.assign(how.trees << how.depth, 0.0);
        grown_.scores.resize(targets.size());
        for (std::size_t k = 0; k < targets.size() / n; ++k) start(k);
    }

    Boosted grown() && {
        const std::size_t targets = targets_.size() / n_;
        for (std::size_t t = 0; t < how_.trees; ++t) grow(t, t % targets);
        return std::move(grown_);
    }

private:
    // From the best constant.
    void start(std::size_t k) {
        const std::span<const double> target = targets_.subspan(k * n_, n_);
        const double n = static_cast<double>(n_), sum = std::accumulate(target.begin(), target.end(), 0.0);
        const double constant = how_.logistic ? std::log((sum + 0.5) / (n - sum + 0.5)) : sum / n;
        std::fill_n(grown_.scores.begin() + static_cast<std::ptrdiff_t>(k * n_), n_, constant);
        std::fill_n(fits_.begin() + static_cast<std::ptrdiff_t>(k * n_), n_, fitted(constant));
    }

    // 0 … n − 1: `count` that are drawn, ascending, and behind them the others.
    void draw(std::size_t n, std::size_t count, std::vector<std::uint32_t> &all) {
        all.resize(n);
        std::size_t i = 0, yes = 0, no = count;
        for (; yes < count; ++i) {
            const bool is_drawn = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(n - i))) < count - yes;
            all[is_drawn ? yes : no] = static_cast<std::uint32_t>(i);
            yes += is_drawn;
            no += !is_drawn;
        }
        std::iota(all.begin() + static_cast<std::ptrdiff_t>(no), all.end(), static_cast<std::uint32_t>(i));
    }

    void grow(std::size_t tree, std::size_t k) {
        const double *target = targets_.data() + k * n_;
        const double *fits = fits_.data() + k * n_;
        draw(n_, how_.rows, rows_);
        draw(d_, how_.columns, columns_);
        starts_.assign(1, 0);
        for (std::size_t c = 0; c < how_.columns; ++c) starts_.push_back(starts_.back() + bins_[columns_[c]]);
        for (std::size_t row = 0; row < n_; ++row) slopes_[row] = target[row] - fits[row];
        double total = 0.0;
        for (std::size_t r = 0; r < how_.rows; ++r) total += slopes_[rows_[r]];
        std::int32_t *features = grown_.features.data() + tree * nodes_of(how_.depth);
        std::uint8_t *bins = grown_.bins.data() + tree * nodes_of(how_.depth);
        std::vector<Node> level(1);
        level[0] = {0, how_.rows, total, counted(0, how_.rows)};
        std::size_t first = 0;  // of the level's nodes
        for (std::size_t depth = 0; depth < how_.depth; ++depth) {
            std::vector<Node> next;
            const bool last = depth + 1 == how_.depth;
            for (std::size_t i = 0; i < level.size(); ++i) {
                Node &node = level[i];
                const Split split = best(node);
                if (split.gain <= 0.0) {
                    give_back(node.cells);
                    next.push_back({node.begin, node.end, node.slope, {}});
                    next.push_back({node.end, node.end, 0.0, {}});
                    continue;
                }
                const std::size_t feature = columns_[split.column];
                features[first + i] = static_cast<std::int32_t>(feature);
                bins[first + i] = static_cast<std::uint8_t>(split.bin);
                divide(node, feature, split, last, next);
            }
            first += level.size();
            level = std::move(next);
        }
        for (std::size_t leaf = 0; leaf < level.size(); ++leaf)
            for (std::size_t r = level[leaf].begin; r < level[leaf].end; ++r)
                leaves_[rows_[r]] = static_cast<std::uint8_t>(leaf);
        for (std::size_t r = how_.rows; r < n_; ++r) leaves_[rows_[r]] = leaf_of(rows_[r], features, bins);
        step(k, grown_.values.data() + (tree << how_.depth));
    }

    std::uint8_t leaf_of(std::size_t row, const std::int32_t *features, const std::uint8_t *bins) const {
        const std::uint8_t *codes = codes_ + row * d_;
        std::size_t node = 0;
        for (std::size_t depth = 0; depth < how_.depth; ++depth) {
            const std::int32_t feature = features[node];
            node = 2 * node + 1 + (feature != kNotSplit && codes[feature] > bins[node]);
        }
        return static_cast<std::uint8_t>(node - nodes_of(how_.depth));
    }

    // The cells of the rows drawn from `begin` to `end`.
    std::vector<Cell> counted(std::size_t begin, std::size_t end) {
        std::vector<Cell> cells;
        if (!spare_.empty()) {
            cells = std::move(spare_.back());
            spare_.pop_back();
        }
        cells.assign(starts_.back(), Cell{});
        Cell *const first = cells.data();
        const std::size_t *const starts = starts_.data();
        const std::uint32_t *const columns = columns_.data();
        const std::size_t n_columns = how_.columns;
        for (std::size_t r = begin; r < end; ++r) {
            const std::uint8_t *codes = codes_ + rows_[r] * d_;
            const double slope = slopes_[rows_[r]];
            for (std::size_t c = 0; c < n_columns; ++c) {
                Cell &cell = first[starts[c] + codes[columns[c]]];
                cell.slope += slope;
                cell.rows += 1.0;
            }
        }
        return cells;
    }

    // Memory for cells to come.
    void give_back(std::vector<Cell> &cells) {
        if (!cells.empty()) spare_.push_back(std::move(cells));
    }

    // The split after which the squared distance of the slopes from their means is least.
    Split best(const Node &node) const {
        Split found;
        if (node.cells.empty()) return found;
        const auto rows = static_cast<double>(node.end - node.begin), least = static_cast<double>(how_.leaf_rows);
        const double whole = node.slope * node.slope / rows;
        for (std::size_t c = 0; c < how_.columns; ++c) {
            const Cell *cells = node.cells.data() + starts_[c];
            const std::size_t bins = starts_[c + 1] - starts_[c];
            Cell left;
            for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
                if (cells[bin].rows == 0.0) continue;
                left.slope += cells[bin].slope;
                left.rows += cells[bin].rows;
                const double right = rows - left.rows;
                if (right < least) break;
                if (left.rows < least) continue;
                const double rest = node.slope - left.slope;
                const double gain = left.slope * left.slope / left.rows + rest * rest / right - whole;
                if (gain > found.gain * (1.0 + 1e-12) + 1e-12) found = {gain, c, bin, left.slope};
            }
        }
        return found;
    }

    // Puts the rows that go left first, and both parts into `next`: the cells of the smaller one are counted, those of
    // the other are what is left.
    void divide(Node &node, std::size_t feature, const Split &split, bool last, std::vector<Node> &next) {
        std::uint32_t *const rows = rows_.data(), *const aside = aside_.data();
        const std::uint8_t *const codes = codes_ + feature;
        std::size_t cut = node.begin, right_rows = 0;
        for (std::size_t r = node.begin; r < node.end; ++r) {
            const std::uint32_t row = rows[r];
            const bool goes_left = codes[row * d_] <= split.bin;
            rows[cut] = aside[right_rows] = row;
            cut += goes_left;
            right_rows += !goes_left;
        }
        std::copy_n(aside, right_rows, rows + cut);
        Node left{node.begin, cut, split.left, {}}, right{cut, node.end, node.slope - split.left, {}};
        if (!last) {
            const bool left_is_smaller = cut - node.begin < node.end - cut;
            Node &smaller = left_is_smaller ? left : right, &larger = left_is_smaller ? right : left;
            smaller.cells = counted(smaller.begin, smaller.end);
            for (std::size_t i = 0; i < node.cells.size(); ++i) {
                node.cells[i].slope -= smaller.cells[i].slope;
                node.cells[i].rows -= smaller.cells[i].rows;
            }
            larger.cells = std::move(node.cells);
        }
        give_back(node.cells);
        next.push_back(std::move(left));
        next.push_back(std::move(right));
    }

    // One Newton step in each leaf, of all rows: those that were not drawn make it better.
    void step(std::size_t k, double *steps) {
        const std::size_t leaves = nodes_of(how_.depth) + 1;
        double *const scores = grown_.scores.data() + k * n_, *const fits = fits_.data() + k * n_;
        std::array<double, std::size_t{1} << kMostDepth> slopes{}, curvatures{};
        for (std::size_t row = 0; row < n_; ++row) {
            slopes[leaves_[row]] += slopes_[row];
            curvatures[leaves_[row]] += how_.logistic ? fits[row] * (1.0 - fits[row]) : 1.0;
        }
        for (std::size_t i = 0; i < leaves; ++i)
            if (curvatures[i] > kLeastCurvature) steps[i] = how_.rate * slopes[i] / curvatures[i];
        // In a leaf of one class alone the step grows without end.
        if (how_.logistic)
            for (double &step : std::span(steps, leaves)) step = std::clamp(step, -kMostStep, kMostStep);
        for (std::size_t row = 0; row < n_; ++row) {
            scores[row] += steps[leaves_[row]];
            fits[row] = fitted(scores[row]);
        }
    }

    double fitted(double score) const { return how_.logistic ? 1.0 / (1.0 + std::exp(-score)) : score; }

    const std::uint8_t *codes_;
    std::size_t n_, d_;
    std::span<const double> targets_;
    Boosting how_;
    Random random_;
    std::vector<double> fits_;    // (K, n) of the scores
    std::vector<double> slopes_;  // of the target that the tree is grown on
    std::vector<std::uint8_t> leaves_;  // that rows fall into
    std::vector<std::size_t> bins_;  // of each feature, up to the last that has rows
    std::vector<std::uint32_t> rows_, columns_;  // all: first the drawn ones, then the others
    std::vector<std::uint32_t> aside_;
    std::vector<std::size_t> starts_;
    std::vector<std::vector<Cell>> spare_;
    Boosted grown_;
};

}  // namespace

Boosted boost(std::span<const std::uint8_t> codes, std::size_t n, std::size_t d, std::span<const double> targets,
              const Boosting &how) {
    return Booster(codes, n, d, targets, how).grown();
}

}  // namespace apsvm::rules
