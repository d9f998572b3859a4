// Push parser of separated values (RFC 4180): bytes in, cells out.
//
// Fields are separated by one character, may stand in double quotes (a quote in them is doubled) and then hold
// separators and line ends; lines end in \n, \r\n or \r; blanks around a field are not part of it; blank lines are no
// rows. Every row must have as many fields as there are columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "svmlight/buffer.hpp"
#include "table/cells.hpp"

namespace apsvm::table {

enum class Column : std::uint8_t {
    cells,   // numbers, words and missing cells
    labels,  // the same, but none is a word
    text,    // every cell a word as it stands, also numbers; an empty one is missing
    skip,    // not kept
};

struct CsvError {
    std::int64_t line;
    std::int64_t column;  // from 0; -1: the row as a whole
    std::string message;
};

class CsvParser {
public:
    struct Options {
        char separator = ',';
        char decimal = '.';
        std::vector<Column> columns;
        std::int64_t first_line = 1;  // of the first byte fed
        std::size_t most_words = 0;   // of a column of cells: those beyond are one word, of this number
        std::size_t longest_row = 0;  // bytes
    };

    explicit CsvParser(Options options);

    // Both throw CsvError.
    void feed(std::string_view block);
    void finish();

    std::size_t n_kept() const { return n_kept_; }
    // The rows since the last call, row after row.
    svmlight::Buffer take();
    const Dictionary &dictionary(std::size_t kept) const { return dictionaries_.at(kept); }
    // The rows, counted over all blocks from 0, that do not stand in the line behind the row before, and their lines.
    const std::vector<std::int64_t> &rows_apart() const { return rows_apart_; }
    const std::vector<std::int64_t> &lines_apart() const { return lines_apart_; }

private:
    enum class End { separator, line, nowhere };

    void parse(const char *end);
    bool row(const char *&p, const char *end);
    End field(const char *&p, const char *end, std::size_t at);
    End field_end(const char *&p);
    End quoted_field(const char *&p, const char *end, std::size_t at);
    bool number(const char *&p, std::uint64_t &cell) const;
    std::uint64_t cell_of(const char *begin, const char *end, std::size_t at);
    std::uint64_t word(std::string_view text, std::size_t at);
    void line_end(const char *&p);
    bool stops(char c) const { return stops_[static_cast<unsigned char>(c)]; }

    Options options_;
    std::vector<std::size_t> kept_;  // of each column its place among those that are kept
    std::size_t n_kept_ = 0;
    bool stops_[256] = {};
    std::string pending_;  // from the first row that is not whole yet
    svmlight::Buffer cells_;
    std::vector<Dictionary> dictionaries_;
    std::string scratch_;
    std::int64_t line_, expected_line_, n_rows_ = 0;
    std::vector<std::int64_t> rows_apart_, lines_apart_;
};

}  // namespace apsvm::table
