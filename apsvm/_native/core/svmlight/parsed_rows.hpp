// How svmlight text is to be read, and what a run of its lines becomes: CSR buffers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "svmlight/buffer.hpp"

namespace apsvm::svmlight {

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

struct Options {
    bool zero_based;
    bool float32;
    std::int64_t n_features;    // columns of the model, -1 if there is none
    std::int64_t max_features;  // most columns allowed, -1 if any number is
    bool ignore_unknown;
    bool sort_features;
    bool multilabel;            // a row has any number of labels
    double fill_if;             // the most bytes of full rows that lack entries, over those of CSR; 0: none lack any
    std::int64_t narrow_limit;  // the largest number int32 indices may have to hold; smaller only in tests

    std::int64_t base() const { return zero_based ? 0 : 1; }
    // Columns at or beyond this one are errors or dropped.
    std::int64_t column_limit() const {
        return n_features >= 0 ? n_features : max_features >= 0 ? max_features : no_limit;
    }
};

// The rows of one run of lines. As long as they are full, each with an entry in the columns 0, 1, 2 … of the first, their
// indices are not kept: the values are then a dense matrix. In the place of an entry that the file leaves out, a zero,
// stands a NaN, which no file has.
struct Rows {
    bool wide = false;  // indices are int64, not int32
    bool full = true;
    std::int64_t absent = 0;  // of the entries of full rows, those that are NaN
    int widenings = 0;        // of full rows
    Buffer indices;     // int32 | int64; empty while the rows are full
    Buffer values;      // float | double
    Buffer row_ends;    // int64, the entries up to the end of each row
    Buffer relevance;   // double; 0 in every row of a file with several labels a row
    Buffer labels;      // double, of the rows with several; empty in other files …
    Buffer label_ends;  // int64, … and the labels up to the end of each row
    Buffer qids;        // int64, empty or one a row
    Buffer costs;       // double, empty or one a row
    Buffer bags;        // int64, empty or one a row; then …
    Buffer row_lines;   // int64, … the line of each row, as two rows of a bag may be at odds
    std::int64_t nnz = 0;
    std::int64_t n_columns = 0;
    std::int64_t unknown = 0;
    std::int64_t line = 0;            // lines seen
    std::int64_t first_row_line = 0;  // where the first row of the file stands
    bool follows = false;  // there were rows before these, which were given away; if so, whether those had …
    bool followed_qids = false, followed_bags = false;

    std::size_t size() const { return relevance.size<double>(); }

    // Whether a row may no longer have a qid, or a bag, or lack one, as it likes.
    bool settled() const { return follows || size() > 0; }
    bool has_qids() const { return size() > 0 ? qids.bytes() != 0 : followed_qids; }
    bool has_bags() const { return size() > 0 ? bags.bytes() != 0 : followed_bags; }

    // No rows, behind these.
    Rows next() const {
        Rows rows;
        rows.wide = wide;
        rows.line = line;
        rows.first_row_line = first_row_line;
        rows.follows = settled();
        rows.followed_qids = has_qids();
        rows.followed_bags = has_bags();
        return rows;
    }

    // The entries of a full row.
    std::int64_t width() const { return row_ends.bytes() == 0 ? 0 : row_ends.as<std::int64_t>()[0]; }

    // Whether full rows of this number of columns, n more of them with `entries`, take hardly more bytes than CSR. Of few
    // the next rows will tell.
    template <class Value>
    bool may_fill(const Options &options, std::size_t n, std::int64_t entries, std::int64_t columns) const {
        constexpr double few = 1 << 16;
        if (columns != width() && size() > 0 && widenings == kMostWidenings) return false;
        const double cells = static_cast<double>(size() + n) * static_cast<double>(columns);
        return options.fill_if > 0.0 && (cells <= few || is_dense<Value>(options, cells, nnz - absent + entries));
    }

    // The same of all rows as they are.
    template <class Value>
    bool is_dense(const Options &options) const {
        return absent == 0 || is_dense<Value>(options, static_cast<double>(nnz), nnz - absent);
    }

    // Gives full rows more columns, which they have no entries in, where they stand: last one first.
    template <class Value>
    void widen_rows(std::int64_t columns) {
        const std::int64_t before = width(), n = static_cast<std::int64_t>(size());
        if (columns == before || n == 0) return;
        values.reserve_more<Value>(static_cast<std::size_t>(n * (columns - before)));
        auto *const cells = values.as<Value>();
        auto *const ends = row_ends.as<std::int64_t>();
        for (std::int64_t row = n; row-- > 0;) {
            Value *const from = cells + row * before, *const to = cells + row * columns;
            std::copy_backward(from, from + before, to + before);
            std::fill(to + before, to + columns, std::numeric_limits<Value>::quiet_NaN());
            ends[row] = (row + 1) * columns;
        }
        absent += n * (columns - before);
        nnz = n * columns;
        values.set_size<Value>(static_cast<std::size_t>(nnz));
        ++widenings;
    }

    // Makes zeros of the entries that full rows lack.
    template <class Value>
    void zero_absent() {
        if (absent == 0) return;
        for (Value *cell = values.as<Value>(), *const end = cell + nnz; cell != end; ++cell)
            *cell = *cell == *cell ? *cell : Value{0};
        absent = 0;
    }

    // Writes down the indices of full rows, of the entries that they have.
    template <class Value>
    void store_indices() {
        if (!full) return;
        full = false;
        if (wide)
            store_indices_as<std::int64_t, Value>();
        else
            store_indices_as<std::int32_t, Value>();
    }

    // Makes the indices int64.
    void widen() {
        indices.widen();
        wide = true;
    }

    // Empties it for the next run of lines, which is not the first of the file. The memory stays.
    void restart(bool with_wide_indices) {
        wide = with_wide_indices;
        for (Buffer *buffer : {&indices, &values, &row_ends, &relevance, &labels, &label_ends, &qids, &costs, &bags,
                               &row_lines})
            buffer->clear();
        nnz = n_columns = unknown = first_row_line = absent = 0;
        widenings = 0;
        line = 1;
        full = true;
    }

private:
    static constexpr int kMostWidenings = 64;  // each moves all rows

    template <class Value>
    bool is_dense(const Options &options, double cells, std::int64_t entries) const {
        const double of_entry = sizeof(Value) + (wide ? sizeof(std::int64_t) : sizeof(std::int32_t));
        return cells * sizeof(Value) <= options.fill_if * of_entry * static_cast<double>(entries);
    }

    template <class Index, class Value>
    void store_indices_as() {
        indices.clear();
        indices.reserve_more<Index>(static_cast<std::size_t>(nnz - absent));
        Index *const out = indices.as<Index>();
        const std::int64_t columns = width();
        if (absent == 0) {
            for (std::int64_t at = 0; at < nnz; at += columns) std::iota(out + at, out + at + columns, Index{0});
        } else {
            auto *const cells = values.as<Value>();
            auto *const ends = row_ends.as<std::int64_t>();
            std::int64_t kept = 0;
            for (std::int64_t row = 0; row * columns < nnz; ++row) {
                for (std::int64_t column = 0; column < columns; ++column) {
                    const Value value = cells[row * columns + column];
                    if (value != value) continue;
                    cells[kept] = value;
                    out[kept++] = static_cast<Index>(column);
                }
                ends[row] = kept;
            }
            nnz = kept;
            absent = 0;
            values.set_size<Value>(static_cast<std::size_t>(nnz));
        }
        indices.set_size<Index>(static_cast<std::size_t>(nnz));
    }
};

}  // namespace apsvm::svmlight
