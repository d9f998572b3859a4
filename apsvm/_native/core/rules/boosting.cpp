#include "rules/boosting.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>

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
    std::vector<Cell> cells;  // those of the columns drawn, one after the other
};

struct Split {
    std::size_t column;  // among those drawn
    std::size_t bin;
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
        double squares = 0.0;
        for (std::size_t row = 0; row < n_; ++row) squares += slopes_[row] * slopes_[row];
        const double noise = how_.noise * std::sqrt(squares / static_cast<double>(n_)) * fading(tree);
        std::vector<Node> level;
        level.push_back({0, how_.rows, total, counted(0, how_.rows)});
        std::size_t first = 0, depth = 0;  // of the level's nodes
        for (; depth < how_.depth; ++depth) {
            const std::optional<Split> split = best(level, noise);
            if (!split) break;
            const std::size_t feature = columns_[split->column];
            std::fill_n(features + first, level.size(), static_cast<std::int32_t>(feature));
            std::fill_n(bins + first, level.size(), static_cast<std::uint8_t>(split->bin));
            std::vector<Node> next;
            for (Node &node : level) divide(node, feature, *split, depth + 1 == how_.depth, next);
            first += level.size();
            level = std::move(next);
        }
        for (std::size_t i = 0; i < level.size(); ++i) {
            const auto leaf = static_cast<std::uint8_t>(i << (how_.depth - depth));  // unsplit nodes send all rows left
            for (std::size_t r = level[i].begin; r < level[i].end; ++r) leaves_[rows_[r]] = leaf;
            give_back(level[i].cells);
        }
        for (std::size_t r = how_.rows; r < n_; ++r) leaves_[rows_[r]] = leaf_of(rows_[r], features, bins);
        step(k, grown_.values.data() + (tree << how_.depth));
    }

    // Falls from 1 to 0 while the trees grow: n e^(−rate·t) / (1 + n e^(−rate·t)).
    double fading(std::size_t tree) const {
        const double left = static_cast<double>(n_) * std::exp(-how_.rate * static_cast<double>(tree));
        return left / (1.0 + left);
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

    // The split of all nodes of a level with the largest length of the vector of their means' projections,
    // √Σ slope²/(rows + prior), after `noise` times a draw of about the normal distribution; none if no split raises it.
    std::optional<Split> best(const std::vector<Node> &level, double noise) {
        std::optional<Split> found;
        double highest = 0.0;
        for (std::size_t c = 0; c < how_.columns; ++c) {
            const std::size_t bins = starts_[c + 1] - starts_[c];
            double whole = 0.0;
            gains_.assign(bins, 0.0);
            for (const Node &node : level) {
                const auto rows = static_cast<double>(node.end - node.begin);
                if (rows == 0.0) continue;
                whole += node.slope * node.slope / (rows + how_.prior);
                const Cell *cells = node.cells.data() + starts_[c];
                Cell left;
                for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
                    left.slope += cells[bin].slope;
                    left.rows += cells[bin].rows;
                    const double rest = node.slope - left.slope;
                    gains_[bin] += left.slope * left.slope / (left.rows + how_.prior) +
                                   rest * rest / (rows - left.rows + how_.prior);
                }
            }
            for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
                if (gains_[bin] <= whole * (1.0 + 1e-12) + 1e-12) continue;
                const double length = std::sqrt(gains_[bin]) + (noise > 0.0 ? noise * random_.about_normal() : 0.0);
                if (!found || length > highest * (1.0 + 1e-12)) {
                    found = Split{c, bin};
                    highest = length;
                }
            }
        }
        return found;
    }

    // Puts the rows that go left first, and both parts into `next`: the cells of the smaller one are counted, those of
    // the other are what is left.
    void divide(Node &node, std::size_t feature, const Split &split, bool last, std::vector<Node> &next) {
        double left_slope = 0.0;
        const Cell *of_column = node.cells.data() + starts_[split.column];
        for (std::size_t bin = 0; bin <= split.bin; ++bin) left_slope += of_column[bin].slope;
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
        Node left{node.begin, cut, left_slope, {}}, right{cut, node.end, node.slope - left_slope, {}};
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
            if (curvatures[i] > kLeastCurvature) steps[i] = how_.rate * slopes[i] / (curvatures[i] + how_.leaf_prior);
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
    std::vector<double> gains_;  // of the bins of a column
    std::vector<std::vector<Cell>> spare_;
    Boosted grown_;
};

}  // namespace

Boosted boost(std::span<const std::uint8_t> codes, std::size_t n, std::size_t d, std::span<const double> targets,
              const Boosting &how) {
    return Booster(codes, n, d, targets, how).grown();
}

}  // namespace apsvm::rules
