// Which rows of a matrix are meant, and in which order the kernels go through them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace apsvm {

// All rows of a matrix, or those of a list of int32 or int64, in its order.
class SelectedRows {
public:
    explicit SelectedRows(std::size_t all) : n_(all) {}
    explicit SelectedRows(std::span<const std::int32_t> list) : narrow_(list.data()), n_(list.size()) {}
    explicit SelectedRows(std::span<const std::int64_t> list) : wide_(list.data()), n_(list.size()) {}

    std::size_t size() const { return n_; }

    std::size_t operator[](std::size_t i) const {
        return narrow_ ? static_cast<std::size_t>(narrow_[i]) : wide_ ? static_cast<std::size_t>(wide_[i]) : i;
    }

    // body(place, row) for the places [begin, end).
    template <class Body>
    void each(std::size_t begin, std::size_t end, Body body) const {
        if (narrow_)
            for (std::size_t i = begin; i < end; ++i) body(i, static_cast<std::size_t>(narrow_[i]));
        else if (wide_)
            for (std::size_t i = begin; i < end; ++i) body(i, static_cast<std::size_t>(wide_[i]));
        else
            for (std::size_t i = begin; i < end; ++i) body(i, i);
    }

    // Those at the places [begin, end), written to `out`.
    void read(std::size_t begin, std::size_t end, std::size_t *out) const {
        each(begin, end, [&](std::size_t, std::size_t row) { *out++ = row; });
    }

    // The first place in [begin, end), where the rows ascend, of a row that is not before this one: soon found where it
    // is near the beginning.
    std::size_t place_of(std::size_t row, std::size_t begin, std::size_t end) const {
        if (!narrow_ && !wide_) return std::clamp(row, begin, end);
        for (std::size_t step = 16; end - begin > step; step *= 2) {
            if ((*this)[begin + step] >= row) {
                end = begin + step;
                break;
            }
            begin += step + 1;
        }
        while (begin < end) {
            const std::size_t middle = begin + (end - begin) / 2;
            if ((*this)[middle] < row)
                begin = middle + 1;
            else
                end = middle;
        }
        return begin;
    }

    // Where its ascending runs begin, and its size at the end: at most a few, or {0, size} where there are more. Nothing
    // if a row is not among 0 … n_rows − 1. One pass over the list.
    std::optional<std::vector<std::size_t>> runs(std::size_t n_rows) const;

private:
    const std::int32_t *narrow_ = nullptr;
    const std::int64_t *wide_ = nullptr;
    std::size_t n_;
};

// What ascending runs have of a range of the matrix.
struct Range {
    std::size_t low, high;                                   // its rows [low, high)
    std::vector<std::pair<std::size_t, std::size_t>> parts;  // places, of each run that has some
};

// The places of a selection in pieces, which depend on the selection and the size asked for alone. Where it is a few
// ascending runs, as the positives and then the negatives of a file are, a piece is what all runs have of a range of
// the matrix: pieces go through the matrix front to back, so that one that is mapped from a file is read once, in order.
class Pieces {
public:
    Pieces(const SelectedRows &rows, std::vector<std::size_t> runs, std::size_t n_rows, std::size_t size)
        : rows_(rows), runs_(std::move(runs)), n_rows_(n_rows), count_((rows.size() + size - 1) / size) {}

    std::size_t count() const { return count_; }

    // Whether they are what a few ascending runs have of ranges of the matrix, half of its rows at least.
    bool leave_few_out() const { return runs_.size() > 2 && 2 * rows_.size() >= n_rows_; }

    // body(piece, begin, end) for the places of the pieces [first, last), piece after piece.
    template <class Body>
    void each(std::size_t first, std::size_t last, Body body) const {
        const std::size_t n = rows_.size();
        if (runs_.size() == 2) {
            for (std::size_t piece = first; piece < last; ++piece)
                body(piece, n * piece / count_, n * (piece + 1) / count_);
            return;
        }
        std::vector<std::size_t> at(runs_.size() - 1);  // the place in each run
        for (std::size_t run = 0; run < at.size(); ++run)
            at[run] = rows_.place_of(n_rows_ * first / count_, runs_[run], runs_[run + 1]);
        for (std::size_t piece = first; piece < last; ++piece) {
            const std::size_t next = n_rows_ * (piece + 1) / count_;
            for (std::size_t run = 0; run < at.size(); ++run) {
                const std::size_t begin = at[run];
                at[run] = rows_.place_of(next, begin, runs_[run + 1]);
                if (begin < at[run]) body(piece, begin, at[run]);
            }
        }
    }

    // body(piece, range) for those of the pieces [first, last) that have a row, piece after piece.
    template <class Body>
    void each_range(std::size_t first, std::size_t last, Body body) const {
        Range range{n_rows_, 0, {}};
        std::size_t current = first;
        each(first, last, [&](std::size_t piece, std::size_t begin, std::size_t end) {
            if (piece != current) {
                if (!range.parts.empty()) body(current, range);
                range = {n_rows_, 0, {}};
                current = piece;
            }
            range.low = std::min(range.low, rows_[begin]);
            range.high = std::max(range.high, rows_[end - 1] + 1);
            range.parts.emplace_back(begin, end);
        });
        if (!range.parts.empty()) body(current, range);
    }

private:
    const SelectedRows &rows_;
    std::vector<std::size_t> runs_;
    std::size_t n_rows_;
    std::size_t count_;
};

}  // namespace apsvm
