#include "table/csv.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "svmlight/numbers.hpp"

namespace apsvm::table {

namespace {

using svmlight::is_digit;
using svmlight::Number;

// What others write for a cell without a value, in any case. An empty cell is one, too.
constexpr std::string_view missing_words[] = {"?",     "na",   "n/a",  "nan",     "null",    "none",
                                              "<na>",  "#n/a", "#na",  "#n/a n/a", "-nan",   "1.#qnan",
                                              "-1.#qnan", "1.#ind", "-1.#ind", "nil",      "."};

// A label may be none: that of a picture without the object.
bool is_missing(const char *begin, const char *end, Column column) {
    const auto n = static_cast<std::size_t>(end - begin);
    if (n == 0) return true;
    if (n > 8) return false;
    char lower[8];
    std::transform(begin, end, lower, [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    const std::string_view word(lower, n);
    if (column == Column::labels && word == "none") return false;
    return std::ranges::find(missing_words, word) != std::end(missing_words);
}

}  // namespace

CsvParser::CsvParser(Options options)
    : options_(std::move(options)), line_(options_.first_line), expected_line_(options_.first_line) {
    for (const Column column : options_.columns) {
        kept_.push_back(n_kept_);
        n_kept_ += column != Column::skip;
    }
    dictionaries_.resize(n_kept_);
    for (const char c : {options_.separator, '\n', '\r', '\0'}) stops_[static_cast<unsigned char>(c)] = true;
}

void CsvParser::feed(std::string_view block) {
    pending_.append(block);
    const std::size_t last = pending_.rfind('\n');
    if (last != std::string::npos) parse(pending_.data() + last + 1);
    if (pending_.size() > options_.longest_row)
        throw CsvError{line_, -1,
                       "expected a row of at most " + std::to_string(options_.longest_row >> 20) +
                           " MB: is a closing quote missing?"};
}

void CsvParser::finish() {
    if (pending_.empty()) return;
    if (pending_.back() != '\n') pending_.push_back('\n');
    parse(pending_.data() + pending_.size());
    if (!pending_.empty()) throw CsvError{line_, -1, "a quoted field begins in this row and never ends"};
}

svmlight::Buffer CsvParser::take() { return std::exchange(cells_, svmlight::Buffer()); }

// All whole rows before `end`, which is behind a '\n'.
void CsvParser::parse(const char *end) {
    const char *const begin = pending_.data();
    const char *p = begin;
    while (p != end) {
        const char *const row_begin = p;
        const std::int64_t row_line = line_;
        const std::size_t n_cells = cells_.size<std::uint64_t>();
        if (!row(p, end)) {  // a quoted field goes on in the next block
            p = row_begin;
            line_ = row_line;
            cells_.set_size<std::uint64_t>(n_cells);
            break;
        }
    }
    pending_.erase(0, static_cast<std::size_t>(p - begin));
}

// One row, or a blank line; false where it does not end before `end`.
bool CsvParser::row(const char *&p, const char *end) {
    const std::int64_t line = line_;
    const char *blank = p;
    while (*blank == ' ') ++blank;
    if (*blank == '\n' || *blank == '\r') {
        p = blank;
        line_end(p);
        return true;
    }
    cells_.reserve_more<std::uint64_t>(n_kept_);
    const std::size_t n_columns = options_.columns.size();
    for (std::size_t at = 0;; ++at) {
        const End stop = field(p, end, at);
        if (stop == End::nowhere) return false;
        if (stop == End::line) {
            if (at + 1 != n_columns)
                throw CsvError{line, -1,
                               "expected " + std::to_string(n_columns) + " fields, found " + std::to_string(at + 1)};
            break;
        }
    }
    if (line != expected_line_) {
        rows_apart_.push_back(n_rows_);
        lines_apart_.push_back(line);
    }
    expected_line_ = line + 1;
    ++n_rows_;
    return true;
}

// Moves behind the line end at p.
void CsvParser::line_end(const char *&p) {
    if (*p == '\r' && p[1] == '\n') ++p;
    ++p;
    ++line_;
}

// Moves behind the separator or the line end at p.
CsvParser::End CsvParser::field_end(const char *&p) {
    if (*p != options_.separator) {
        line_end(p);
        return End::line;
    }
    ++p;
    return End::separator;
}

CsvParser::End CsvParser::field(const char *&p, const char *end, std::size_t at) {
    const bool surplus = at >= options_.columns.size();  // counted for the message
    const Column column = surplus ? Column::skip : options_.columns[at];
    if (column == Column::cells || column == Column::labels) [[likely]] {
        std::uint64_t cell;
        const char *behind = p;
        if (number(behind, cell)) [[likely]] {
            p = behind;
            cells_.push(cell);
            return field_end(p);
        }
    }
    while (*p == ' ') ++p;
    if (*p == '"') return quoted_field(p, end, at);
    const char *const begin = p;
    while (!stops(*p)) ++p;
    if (*p == '\0')
        throw CsvError{line_, static_cast<std::int64_t>(at), "found a NUL byte: expected text"};
    const char *text_end = p;
    while (text_end != begin && text_end[-1] == ' ') --text_end;
    if (column != Column::skip) cells_.push(cell_of(begin, text_end, at));
    return field_end(p);
}

CsvParser::End CsvParser::quoted_field(const char *&p, const char *end, std::size_t at) {
    const std::int64_t line = line_;
    const char *begin = ++p;
    bool doubled = false;
    for (;;) {
        const void *const quote = std::memchr(p, '"', static_cast<std::size_t>(end - p));
        if (quote == nullptr) return End::nowhere;
        p = static_cast<const char *>(quote) + 1;
        if (p == end || *p != '"') break;
        doubled = true;
        ++p;
    }
    const char *content_end = p - 1;
    for (const char *c = begin; c != content_end; ++c) {
        if (*c == '\n' || (*c == '\r' && c[1] != '\n')) ++line_;
        if (*c == '\0') throw CsvError{line_, static_cast<std::int64_t>(at), "found a NUL byte: expected text"};
    }
    while (*p == ' ') ++p;
    if (*p != options_.separator && *p != '\n' && *p != '\r')
        throw CsvError{line, static_cast<std::int64_t>(at),
                       "expected a separator or the end of the line behind a closing quote"};
    if (at < options_.columns.size() && options_.columns[at] != Column::skip) {
        if (doubled) {
            scratch_.clear();
            for (const char *c = begin; c != content_end; ++c) {
                scratch_.push_back(*c);
                if (*c == '"') ++c;
            }
            begin = scratch_.data();
            content_end = begin + scratch_.size();
        }
        while (begin != content_end && *begin == ' ') ++begin;
        while (content_end != begin && content_end[-1] == ' ') --content_end;
        cells_.push(cell_of(begin, content_end, at));
    }
    return field_end(p);
}

// A plain decimal from p to the end of its field, as in svmlight/numbers.hpp; p moves behind it.
bool CsvParser::number(const char *&p, std::uint64_t &cell) const {
    const bool negative = *p == '-';
    const char *const begin = p + (negative ? 1 : 0);
    const char *at = begin;
    std::uint64_t mantissa = 0;
    for (; is_digit(*at); ++at) mantissa = mantissa * 10 + static_cast<unsigned>(*at - '0');
    std::ptrdiff_t n_digits = at - begin, n_decimals = 0;
    // Where it is the separator, too, it stands in quoted fields only.
    if (*at == options_.decimal && options_.decimal != options_.separator) {
        const char *const point = at++;
        for (; is_digit(*at); ++at) mantissa = mantissa * 10 + static_cast<unsigned>(*at - '0');
        n_decimals = at - point - 1;
        n_digits += n_decimals;
    }
    if ((*at != options_.separator && *at != '\n' && *at != '\r') || n_digits == 0 || n_digits > 19 ||
        mantissa > (std::uint64_t{1} << 53))
        return false;
    const double number = static_cast<double>(mantissa) / svmlight::powers_of_ten[n_decimals];
    cell = number_cell(negative ? -number : number);
    p = at;
    return true;
}

// The cell of a whole field, without quotes and blanks around it.
std::uint64_t CsvParser::cell_of(const char *begin, const char *end, std::size_t at) {
    const std::string_view text(begin, static_cast<std::size_t>(end - begin));
    if (options_.columns[at] == Column::text) return text.empty() ? missing_cell : word(text, at);
    double number;
    bool is_number;
    if (options_.decimal == '.') {
        is_number = svmlight::parse_number(begin, end, number) == Number::fine;
    } else {
        std::string point(text);
        std::ranges::replace(point, '.', ' ');  // no decimal point here
        std::ranges::replace(point, options_.decimal, '.');
        is_number = svmlight::parse_number(point.data(), point.data() + point.size(), number) == Number::fine;
    }
    if (is_number) return number_cell(number);
    return is_missing(begin, end, options_.columns[at]) ? missing_cell : word(text, at);
}

std::uint64_t CsvParser::word(std::string_view text, std::size_t at) {
    const bool is_text = options_.columns[at] == Column::text;
    const std::size_t most = is_text ? std::numeric_limits<std::size_t>::max() : options_.most_words;
    return word_cell(dictionaries_[kept_[at]].number_of(text, most));
}

}  // namespace apsvm::table
