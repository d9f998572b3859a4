// The svmlight text format, bytes -> CSR buffers in one pass:
//
//     label [qid:INT] [cost:NUM] index:value index:value ... [# comment]
//
// with, where that is asked for, any number of labels, "1,4" or none at all, in place of the one.
//
// SvmlightParser is fed the file block by block. It cuts the bytes at line ends and hands each run of whole lines to
// parse_range(), which knows nothing of blocks: it appends to a Rows. With several threads a block is cut into chunks,
// each parsed into a Rows of its own and then appended in order, and feed() returns while they are at it, so that the
// caller can read the next block meanwhile. A chunk that cannot be appended, because of a syntax error or of the "all
// rows or none" rule of qid, is parsed once more, now behind the rows before it: so the first error of the file is
// reported in the very words of a single thread.
//
// Every line handed to parse_range() ends in '\n', so the byte at `Line::end` is '\n' or '\r': scans over digits and
// tokens stop there by themselves and need no bounds check. Numbers are rounded correctly: a decimal of at most 2^53
// divided by a power of ten of at most 10^22 is exact but for the one rounding of the division (Clinger 1990);
// std::from_chars does the rest.
#include "module.hpp"
#include "threads.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cfloat>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

static_assert(FLT_EVAL_METHOD == 0, "the short decimal path needs double arithmetic without excess precision");

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t longest_excerpt = 40;
// A line this long with a NUL in it is refused before its end is seen: /dev/zero never ends a line.
constexpr std::size_t nul_patience = 4096;

// ---------------------------------------------------------------------------------------------------- storage

// A growable run of trivially copyable items. realloc moves large runs by remapping pages, so growing neither copies
// nor holds the data twice, and the spare capacity is never touched.
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer &operator=(Buffer &&other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    std::size_t bytes() const { return bytes_; }

    template <class T> T *as() const { return static_cast<T *>(data_); }
    template <class T> std::size_t size() const { return bytes_ / sizeof(T); }
    template <class T> void set_size(std::size_t n) { bytes_ = n * sizeof(T); }

    // Room for `extra` more items, so that they may be written behind the last one.
    template <class T> void reserve_more(std::size_t extra) {
        if (extra > (std::numeric_limits<std::size_t>::max() / 2 - bytes_) / sizeof(T)) throw std::bad_alloc();
        const std::size_t needed = bytes_ + extra * sizeof(T);
        if (needed > capacity_) reallocate(std::max(needed, capacity_ + capacity_ / 2));
    }

    template <class T> void push(T item) {
        reserve_more<T>(1);
        std::memcpy(static_cast<char *>(data_) + bytes_, &item, sizeof(T));
        bytes_ += sizeof(T);
    }

    void append(const char *begin, const char *end) {
        const auto n = static_cast<std::size_t>(end - begin);
        if (n == 0) return;
        reserve_more<char>(n);
        std::memcpy(static_cast<char *>(data_) + bytes_, begin, n);
        bytes_ += n;
    }

    // All items of another buffer behind the last one.
    template <class T> void append(const Buffer &other) {
        if (other.bytes_ == 0) return;
        reserve_more<T>(other.size<T>());
        std::memcpy(static_cast<char *>(data_) + bytes_, other.data_, other.bytes_);
        bytes_ += other.bytes_;
    }

    // n times the same item behind the last one.
    template <class T> void fill(std::size_t n, T item) {
        reserve_more<T>(n);
        std::fill_n(as<T>() + size<T>(), n, item);
        bytes_ += n * sizeof(T);
    }

    void clear() { bytes_ = 0; }

    // int32 items become int64 items where they stand, last one first. memcpy, because the two overlap.
    void widen() {
        const std::size_t n = size<std::int32_t>();
        reserve_more<std::int32_t>(n);
        char *const base = static_cast<char *>(data_);
        for (std::size_t i = n; i-- > 0;) {
            std::int32_t narrow;
            std::memcpy(&narrow, base + i * sizeof narrow, sizeof narrow);
            const std::int64_t wide = narrow;
            std::memcpy(base + i * sizeof wide, &wide, sizeof wide);
        }
        set_size<std::int64_t>(n);
    }

    // The memory itself, cut to size and never null; the caller frees it.
    void *release() {
        reallocate(std::max<std::size_t>(bytes_, 1));
        bytes_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    void reallocate(std::size_t capacity) {
        void *const moved = std::realloc(data_, capacity);
        if (moved == nullptr) throw std::bad_alloc();
        data_ = moved;
        capacity_ = capacity;
    }

    void swap(Buffer &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(capacity_, other.capacity_);
    }

    void *data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t capacity_ = 0;
};

struct Options {
    bool zero_based;
    bool float32;
    std::int64_t n_features;   // columns of the model, -1 if there is none
    std::int64_t max_features; // most columns allowed, -1 if any number is
    bool ignore_unknown;
    bool sort_features;
    bool multilabel;           // a row has any number of labels
    std::int64_t narrow_limit; // the largest number int32 indices may have to hold; smaller only in tests

    std::int64_t base() const { return zero_based ? 0 : 1; }
    // Columns at or beyond this one are errors or dropped.
    std::int64_t column_limit() const {
        return n_features >= 0 ? n_features : max_features >= 0 ? max_features : no_limit;
    }
};

// The rows of one run of lines.
struct Rows {
    bool wide = false;    // indices are int64, not int32
    Buffer indices;       // int32 | int64
    Buffer values;        // float | double
    Buffer row_ends;      // int64, the entries up to the end of each row
    Buffer relevance;     // double; 0 in every row of a file with several labels a row
    Buffer labels;        // double, of the rows with several; empty in other files …
    Buffer label_ends;    // int64, … and the labels up to the end of each row
    Buffer qids;          // int64, empty or one a row
    Buffer costs;         // double, empty or one a row
    std::int64_t nnz = 0;
    std::int64_t n_columns = 0;
    std::int64_t unknown = 0;
    std::int64_t line = 0;           // lines seen
    std::int64_t first_row_line = 0; // where the first row stands

    std::size_t size() const { return relevance.size<double>(); }

    // Empties it for the next run of lines, which is not the first of the file. The memory stays.
    void restart(bool with_wide_indices) {
        wide = with_wide_indices;
        for (Buffer *buffer : {&indices, &values, &row_ends, &relevance, &labels, &label_ends, &qids, &costs}) buffer->clear();
        nnz = n_columns = unknown = first_row_line = 0;
        line = 1;
    }
};

// ---------------------------------------------------------------------------------------------------- characters

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
inline bool ends_token(char c) { return static_cast<unsigned char>(c) <= ' ' || c == '#' || c == 0x7f; }

inline const char *token_end(const char *p) {
    while (!ends_token(*p)) ++p;
    return p;
}

std::string escaped(char c) {
    constexpr char hex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '\'') return {'\\', c};
    if (byte >= 0x20 && byte < 0x7f) return {c};
    return {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
}

std::string quoted(const char *begin, const char *end) {
    std::string text = "'";
    const auto n = std::min(static_cast<std::size_t>(end - begin), longest_excerpt);
    for (std::size_t i = 0; i < n; ++i) text += escaped(begin[i]);
    return text + (begin + n < end ? "'..." : "'");
}

struct SyntaxError {
    std::int64_t line;
    std::int64_t column;
    std::string message;
};

struct Line {
    const char *begin;
    const char *end; // the '\n' or '\r' behind the last character
    std::int64_t number;

    [[noreturn]] void fail(const char *at, std::string message) const {
        throw SyntaxError{number, at - begin + 1, std::move(message)};
    }

    void refuse_control(const char *at) const {
        if (at == end || !is_control(*at) || *at == '\t') return;
        if (*at == '\r') fail(at, "expected a line end '\\n' or '\\r\\n', found a lone carriage return '\\r'");
        if (*at == '\0') fail(at, "expected text, found a NUL byte '\\x00'");
        fail(at, "expected text, found the control character '" + escaped(*at) + "'");
    }

    // What stands at `at`, for a message; a control character there is the real fault and is reported instead.
    std::string found(const char *at) const {
        refuse_control(at);
        if (at == end) return "found the end of the line";
        if (*at == '#') return "found a comment";
        if (is_blank(*at)) return "found a blank";
        return "found " + quoted(at, token_end(at));
    }

    // A comment may hold anything but what betrays swallowed rows: NUL bytes (holes) and lone carriage returns.
    void check_comment(const char *at) const {
        const auto *const nul = static_cast<const char *>(std::memchr(at, '\0', static_cast<std::size_t>(end - at)));
        const auto *const stop = nul ? nul : end;
        const auto *const cr = static_cast<const char *>(std::memchr(at, '\r', static_cast<std::size_t>(stop - at)));
        if (cr != nullptr) refuse_control(cr);
        if (nul != nullptr) refuse_control(nul);
    }
};

// ---------------------------------------------------------------------------------------------------- numbers

constexpr double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum class Number { fine, malformed, overflow };

// A whole token [+-]digits[.digits][e[+-]digits] to the nearest double. Underflow rounds to a signed zero.
Number parse_number(const char *begin, const char *end, double &out) {
    const char *p = begin;
    const bool negative = p != end && *p == '-';
    if (p != end && (*p == '+' || *p == '-')) ++p;
    const char *const unsigned_begin = p;
    bool any = false, nonzero = false;
    std::int64_t magnitude = 0; // |number| = 0.d1d2... * 10^magnitude with d1 != 0
    for (; p != end && is_digit(*p); ++p) {
        any = true;
        nonzero = nonzero || *p != '0';
        magnitude += nonzero;
    }
    if (p != end && *p == '.') {
        for (++p; p != end && is_digit(*p); ++p) {
            any = true;
            nonzero = nonzero || *p != '0';
            magnitude -= !nonzero;
        }
    }
    if (!any) return Number::malformed;
    if (p != end && (*p == 'e' || *p == 'E')) {
        ++p;
        const bool down = p != end && *p == '-';
        if (p != end && (*p == '+' || *p == '-')) ++p;
        if (p == end) return Number::malformed;
        constexpr std::int64_t plenty = 100'000'000'000'000'000; // beyond any magnitude a line can make up for
        std::int64_t exponent = 0;
        for (; p != end && is_digit(*p); ++p) exponent = std::min(exponent * 10 + (*p - '0'), plenty);
        magnitude += down ? -exponent : exponent;
    }
    if (p != end) return Number::malformed;

    double number = 0.0;
    if (nonzero) {
        const auto [stop, error] = std::from_chars(unsigned_begin, end, number);
        if (error == std::errc::result_out_of_range || std::isinf(number)) {
            if (magnitude > 0) return Number::overflow;
            number = 0.0;
        }
    }
    out = negative ? -number : number;
    return Number::fine;
}

// The number at p, which moves behind its token.
inline Number read_number(const char *&p, double &out) {
    const char *const begin = p;
    const bool negative = *p == '-';
    if (negative || *p == '+') ++p;
    const char *const unsigned_begin = p;
    std::uint64_t mantissa = 0;
    for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
    std::ptrdiff_t n_digits = p - unsigned_begin, n_decimals = 0;
    if (*p == '.') {
        const char *const point = p++;
        for (; is_digit(*p); ++p) mantissa = mantissa * 10 + static_cast<unsigned>(*p - '0');
        n_decimals = p - point - 1;
        n_digits += n_decimals;
    }
    if (ends_token(*p) && n_digits > 0) [[likely]] {
        double number;
        // 19 digits fit 64 bits, so a mantissa of at most 2^53 is known to be the true one.
        if (n_digits <= 19 && mantissa <= (std::uint64_t{1} << 53)) [[likely]] {
            number = static_cast<double>(mantissa);
            if (n_decimals > 0) number /= powers_of_ten[n_decimals];
            out = negative ? -number : number;
            return Number::fine;
        }
        // Without an exponent and below 300 digits nothing can overflow or underflow.
        if (n_digits < 300 && std::from_chars(unsigned_begin, p, number).ec == std::errc()) {
            out = negative ? -number : number;
            return Number::fine;
        }
    }
    p = token_end(begin);
    return parse_number(begin, p, out);
}

bool is_not_finite_word(const char *begin, const char *end) {
    if (begin != end && (*begin == '+' || *begin == '-')) ++begin;
    std::string word;
    for (; begin != end && word.size() < 9; ++begin) word += static_cast<char>(*begin | 0x20);
    return word == "inf" || word == "infinity" || word == "nan" || word.starts_with("nan(");
}

[[noreturn]] void fail_number(const Line &line, const char *at, Number status, const std::string &what,
                              const char *type = "float64") {
    const char *const stop = token_end(at);
    if (status == Number::overflow) line.fail(at, what + " overflows " + type + ": found " + quoted(at, stop));
    if (is_not_finite_word(at, stop))
        line.fail(at, "expected a finite number as " + what + ", found " + quoted(at, stop));
    line.fail(at, "expected a number as " + what + ", " + line.found(at));
}

// A decimal integer, a leading '+' allowed: malformed unless it is the whole of [begin, end).
Number parse_integer(const char *begin, const char *end, std::int64_t &out) {
    if (begin != end && *begin == '+') {
        ++begin;
        if (begin == end || !is_digit(*begin)) return Number::malformed;
    }
    const auto [stop, error] = std::from_chars(begin, end, out);
    if (error == std::errc::invalid_argument || stop != end) return Number::malformed;
    return error == std::errc::result_out_of_range ? Number::overflow : Number::fine;
}

// ---------------------------------------------------------------------------------------------------- one line

// The parts of an entry index:value that the short path of read_index does not read, and all of its errors.
[[gnu::noinline]] std::int64_t read_index_slowly(const Line &line, const char *&p, const Options &options) {
    const char *const token = p;
    line.refuse_control(token);
    const char *const stop = token_end(token);
    const auto *const colon =
        static_cast<const char *>(std::memchr(token, ':', static_cast<std::size_t>(stop - token)));
    if (colon == nullptr) {
        const char *next = stop;
        while (is_blank(*next)) ++next;
        if (*next == ':')
            line.fail(next, "expected index:value without blanks around the ':', found a blank before it");
        line.fail(token, "expected index:value, " + line.found(token));
    }
    const std::string_view name(token, static_cast<std::size_t>(colon - token));
    if (name == "qid" || name == "cost")
        line.fail(token, std::string(name) + " must stand before the features: " + line.found(token));
    if (name.empty()) line.fail(token, "expected a feature index before the ':', " + line.found(token));
    std::int64_t index = 0;
    const Number status = parse_integer(token, colon, index);
    if (status == Number::malformed)
        line.fail(token, "expected an integer as the feature index, found " + quoted(token, colon));
    if (*token == '-' && (index < 0 || status == Number::overflow))
        line.fail(token, "expected a feature index of at least " + std::to_string(options.base()) + ", found " +
                             quoted(token, colon));
    if (status == Number::overflow)
        line.fail(token, "the feature index does not fit in 64 bits: found " + quoted(token, colon));
    if (index < options.base())
        line.fail(token, "expected feature indices that start at 1, found " + quoted(token, colon) +
                             "; if the file counts from 0, say so with --zero-based (zero_based=True)");
    p = colon + 1;
    return index;
}

// The index at p, which moves behind the colon.
inline std::int64_t read_index(const Line &line, const char *&p, const Options &options) {
    const char *q = p;
    std::uint64_t sum = 0; // unsigned, as it may wrap: only behind the digits is their number looked at (18 fit)
    for (; is_digit(*q); ++q) sum = sum * 10 + static_cast<unsigned>(*q - '0');
    const auto index = static_cast<std::int64_t>(sum);
    if (*q != ':' || q == p || q - p > 18 || index < options.base()) [[unlikely]]
        return read_index_slowly(line, p, options);
    p = q + 1;
    return index;
}

template <class Value> Value read_value(const Line &line, const char *&p, std::int64_t index) {
    const char *const at = p;
    double number = 0.0;
    const Number status = read_number(p, number);
    if (status != Number::fine) [[unlikely]] {
        line.refuse_control(at);
        if (at == p)
            line.fail(at, "expected a value right behind the ':' of feature " + std::to_string(index) + ", " +
                              line.found(at));
        fail_number(line, at, status, "the value of feature " + std::to_string(index));
    }
    const auto value = static_cast<Value>(number);
    if constexpr (!std::is_same_v<Value, double>) {
        if (std::isinf(value)) [[unlikely]]
            fail_number(line, at, Number::overflow, "the value of feature " + std::to_string(index), "float32");
    }
    return value;
}

// For a column at or beyond the limit: returns if the entry is to be dropped.
[[gnu::noinline]] void drop_or_refuse(const Line &line, const char *at, std::int64_t index, const Options &options) {
    if (options.n_features >= 0) {
        if (options.ignore_unknown) return;
        line.fail(at, "feature " + std::to_string(index) + " is unknown (the model has " +
                          std::to_string(options.n_features) +
                          " features); --ignore-unknown (ignore_unknown=True) drops such entries");
    }
    if (options.max_features >= 0)
        line.fail(at, "feature " + std::to_string(index) + " is beyond the limit of " +
                          std::to_string(options.max_features) + " features (--max-features, max_features=)");
    line.fail(at, "the feature index is too large: found '" + std::to_string(index) + "'");
}

[[noreturn]] [[gnu::noinline]] void fail_order(const Line &line, const char *at, std::int64_t index,
                                               std::int64_t previous) {
    if (index == previous) line.fail(at, "feature " + std::to_string(index) + " is given twice in this row");
    line.fail(at, "expected feature indices in increasing order, found " + std::to_string(index) + " after " +
                      std::to_string(previous) + "; --sort-features (sort_features=True) accepts any order");
}

// At the end of the line or a comment? Then the row ends.
inline bool ends_row(const Line &line, const char *at) {
    if (at == line.end) return true;
    if (*at != '#') return false;
    line.check_comment(at);
    return true;
}

enum class Outcome { done, too_wide, unsorted };

// The entries of a row in increasing order, written straight into `rows`. Anything rarer stops it and is begun anew:
// a column that int32 cannot hold, or, where that is allowed, an index out of order.
template <class Index, class Value>
Outcome parse_sorted(const Line &line, const char *p, const Options &options, Rows &rows) {
    const std::int64_t base = options.base();
    const std::int64_t limit = options.column_limit();
    const std::int64_t widest = sizeof(Index) == sizeof(std::int32_t) ? options.narrow_limit - 1 : no_limit - 1;
    const std::int64_t ceiling = std::min(limit - 1, widest);
    // An entry takes 4 bytes at least, "1:2 ".
    const auto room = static_cast<std::size_t>(line.end - p) / 4 + 2;
    rows.indices.reserve_more<Index>(room);
    rows.values.reserve_more<Value>(room);
    Index *const indices = rows.indices.as<Index>() + rows.nnz;
    Value *const values = rows.values.as<Value>() + rows.nnz;
    std::int64_t n = 0, unknown = 0, previous = -1;
    for (;;) {
        while (is_blank(*p)) ++p;
        if (ends_row(line, p)) break;
        const char *const at = p;
        const std::int64_t index = read_index(line, p, options);
        if (index <= previous) [[unlikely]] {
            if (options.sort_features) return Outcome::unsorted;
            fail_order(line, at, index, previous);
        }
        previous = index;
        const std::int64_t column = index - base;
        if (column > ceiling) [[unlikely]] {
            if (column < limit) return Outcome::too_wide;
            drop_or_refuse(line, at, index, options);
            read_value<Value>(line, p, index);
            ++unknown;
            continue;
        }
        const auto value = read_value<Value>(line, p, index);
        indices[n] = static_cast<Index>(column);
        values[n] = value;
        ++n;
    }
    if (n > 0) rows.n_columns = std::max(rows.n_columns, static_cast<std::int64_t>(indices[n - 1]) + 1);
    rows.nnz += n;
    rows.unknown += unknown;
    rows.indices.set_size<Index>(static_cast<std::size_t>(rows.nnz));
    rows.values.set_size<Value>(static_cast<std::size_t>(rows.nnz));
    return Outcome::done;
}

void widen(Rows &rows) {
    rows.indices.widen();
    rows.wide = true;
}

// The entries of a row in any order.
template <class Value> void parse_unsorted(const Line &line, const char *p, const Options &options, Rows &rows) {
    struct Entry {
        std::int64_t index;
        const char *at;
        Value value;
    };
    std::vector<Entry> entries;
    const std::int64_t base = options.base();
    const std::int64_t limit = options.column_limit();
    for (;;) {
        while (is_blank(*p)) ++p;
        if (ends_row(line, p)) break;
        const char *const at = p;
        const std::int64_t index = read_index(line, p, options);
        if (index - base >= limit) drop_or_refuse(line, at, index, options);
        entries.push_back({index, at, read_value<Value>(line, p, index)});
    }
    std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
        return a.index != b.index ? a.index < b.index : a.at < b.at;
    });
    const Entry *repeated = nullptr;
    for (std::size_t i = 1; i < entries.size(); ++i)
        if (entries[i].index == entries[i - 1].index && (repeated == nullptr || entries[i].at < repeated->at))
            repeated = &entries[i];
    if (repeated != nullptr) fail_order(line, repeated->at, repeated->index, repeated->index);

    while (!entries.empty() && entries.back().index - base >= limit) {
        entries.pop_back();
        ++rows.unknown;
    }
    if (entries.empty()) return;
    const std::int64_t n_columns = entries.back().index - base + 1;
    if (!rows.wide && n_columns > options.narrow_limit) widen(rows);
    for (const Entry &entry : entries) {
        if (rows.wide) {
            rows.indices.push(entry.index - base);
        } else {
            rows.indices.push(static_cast<std::int32_t>(entry.index - base));
        }
        rows.values.push(entry.value);
    }
    rows.nnz += static_cast<std::int64_t>(entries.size());
    rows.n_columns = std::max(rows.n_columns, n_columns);
}

template <class Value> void parse_features(const Line &line, const char *p, const Options &options, Rows &rows) {
    Outcome outcome = rows.wide ? parse_sorted<std::int64_t, Value>(line, p, options, rows)
                                : parse_sorted<std::int32_t, Value>(line, p, options, rows);
    if (outcome == Outcome::too_wide) {
        widen(rows);
        outcome = parse_sorted<std::int64_t, Value>(line, p, options, rows);
    }
    if (outcome == Outcome::unsorted) parse_unsorted<Value>(line, p, options, rows);
}

double read_label(const Line &line, const char *&p) {
    const char *const at = p;
    double label = 0.0;
    const Number status = read_number(p, label);
    if (status == Number::fine) return label;
    const auto has = [&](char c) { return std::memchr(at, c, static_cast<std::size_t>(p - at)) != nullptr; };
    if (has(':'))
        line.fail(at, "expected a label at the start of the row, " + line.found(at) +
                          "; --multilabel (multilabel=True) reads rows without one");
    if (has(','))
        line.fail(at, "expected one number as the label, " + line.found(at) +
                          "; --multilabel (multilabel=True) reads rows with several");
    fail_number(line, at, status, "the label");
}

// Labels with commas between them, or none: then the row begins with its features, its qid or its cost.
[[gnu::noinline]] void read_labels(const Line &line, const char *&p, Rows &rows) {
    const char *const begin = p;
    const char *const end = token_end(begin);
    const auto *const comma = std::find(begin, end, ',');
    const bool has_none = std::find(begin, comma, ':') != comma || begin == end;
    if (!has_none) {
        const std::size_t n_before = rows.labels.size<double>();
        double highest = -std::numeric_limits<double>::infinity();
        for (const char *at = begin;; ++at) {
            const char *const stop = std::find(at, end, ',');
            double label = 0.0;
            const Number status = parse_number(at, stop, label);
            if (at == stop) line.fail(at, "expected a label before and behind each ',', found " + quoted(begin, end));
            if (status == Number::overflow) line.fail(at, "the label overflows float64: found " + quoted(at, stop));
            if (is_not_finite_word(at, stop))
                line.fail(at, "expected a finite number as the label, found " + quoted(at, stop));
            if (status != Number::fine) line.fail(at, "expected a number as the label, found " + quoted(at, stop));
            const auto *const labels = rows.labels.as<double>();
            const auto *const behind = labels + rows.labels.size<double>();
            if (label <= highest && std::find(labels + n_before, behind, label) != behind)
                line.fail(at, "label " + quoted(at, stop) + " is given twice in this row");
            highest = std::max(highest, label);
            rows.labels.push(label);
            at = stop;
            if (at == end) break;
        }
        p = end;
    }
    rows.label_ends.push(static_cast<std::int64_t>(rows.labels.size<double>()));
}

std::int64_t read_qid(const Line &line, const char *&p) {
    const char *const at = p;
    p = token_end(at);
    std::int64_t qid = 0;
    const Number status = parse_integer(at, p, qid);
    if (status == Number::malformed) line.fail(at, "expected an integer behind qid:, " + line.found(at));
    if (status == Number::overflow) line.fail(at, "the qid does not fit in 64 bits: found " + quoted(at, p));
    return qid;
}

double read_cost(const Line &line, const char *&p) {
    const char *const at = p;
    double cost = 0.0;
    const Number status = read_number(p, cost);
    if (status != Number::fine) fail_number(line, at, status, "the cost");
    if (cost < 0) line.fail(at, "expected a cost of at least 0, found " + quoted(at, p));
    return cost;
}

// Byte order marks: that of UTF-8 is skipped (and not counted in columns), the others name an encoding not read here.
void skip_byte_order_mark(Line &line) {
    const std::string_view text(line.begin, static_cast<std::size_t>(line.end - line.begin));
    const std::string_view utf32_be("\0\0\xfe\xff", 4), utf32_le("\xff\xfe\0\0", 4);
    const char *name = nullptr;
    if (text.starts_with("\xef\xbb\xbf")) line.begin += 3;
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) name = "UTF-16";
    if (text.starts_with(utf32_be) || text.starts_with(utf32_le)) name = "UTF-32";
    if (name != nullptr) line.fail(line.begin, std::string("expected ASCII or UTF-8 text, found ") + name);
}

void parse_line(Line line, const Options &options, Rows &rows) {
    if (line.number == 1) skip_byte_order_mark(line);
    const char *p = line.begin;
    while (is_blank(*p)) ++p;
    if (ends_row(line, p)) return;
    line.refuse_control(p);

    double label = 0.0;
    if (options.multilabel) [[unlikely]] {
        read_labels(line, p, rows);
    } else {
        label = read_label(line, p);
    }
    std::optional<std::int64_t> qid;
    std::optional<double> cost;
    const char *qid_at = nullptr;
    for (;;) {
        while (is_blank(*p)) ++p;
        const std::string_view rest(p, static_cast<std::size_t>(line.end - p));
        if (rest.starts_with("qid:")) {
            if (qid) line.fail(p, "qid is given twice in this row: " + line.found(p));
            qid_at = p;
            p += 4;
            qid = read_qid(line, p);
        } else if (rest.starts_with("cost:")) {
            if (cost) line.fail(p, "cost is given twice in this row: " + line.found(p));
            p += 5;
            cost = read_cost(line, p);
        } else {
            break;
        }
    }

    const std::size_t n_before = rows.size();
    if (n_before == 0) {
        rows.first_row_line = line.number;
    } else if (qid && rows.qids.bytes() == 0) {
        line.fail(qid_at, "expected no qid, as in the rows before (since line " +
                              std::to_string(rows.first_row_line) + "), " + line.found(qid_at));
    } else if (!qid && rows.qids.bytes() != 0) {
        line.fail(p, "expected qid:INT, as in the rows before (since line " + std::to_string(rows.first_row_line) +
                         "), " + line.found(p));
    }

    if (options.float32) {
        parse_features<float>(line, p, options, rows);
    } else {
        parse_features<double>(line, p, options, rows);
    }
    if (!rows.wide && rows.nnz > options.narrow_limit) widen(rows);
    rows.row_ends.push(rows.nnz);
    rows.relevance.push(label);
    if (qid) rows.qids.push(*qid);
    if (cost && rows.costs.bytes() == 0)
        for (std::size_t i = 0; i < n_before; ++i) rows.costs.push(1.0);
    if (cost || rows.costs.bytes() != 0) rows.costs.push(cost.value_or(1.0));
}

// Whole lines, each with its '\n', appended to `rows`. Throws SyntaxError.
void parse_range(const char *begin, const char *end, const Options &options, Rows &rows) {
    while (begin != end) {
        const auto *const newline =
            static_cast<const char *>(std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
        const bool crlf = newline != begin && newline[-1] == '\r';
        parse_line({begin, newline - crlf, ++rows.line}, options, rows);
        begin = newline + 1;
    }
}

// ---------------------------------------------------------------------------------------------------- joining

// The rows of a chunk behind those before it; false, with nothing done, if one has qids and the other has not.
template <class Value> bool append_rows(Rows &rows, Rows &chunk, const Options &options) {
    const std::size_t n_before = rows.size(), n = chunk.size();
    if (n_before > 0 && n > 0 && (rows.qids.bytes() == 0) != (chunk.qids.bytes() == 0)) return false;
    if (chunk.wide && !rows.wide) widen(rows);
    if (rows.wide && !chunk.wide) widen(chunk);
    rows.indices.append<char>(chunk.indices);
    rows.values.append<Value>(chunk.values);
    rows.row_ends.reserve_more<std::int64_t>(n);
    const auto *const ends = chunk.row_ends.as<std::int64_t>();
    for (std::size_t i = 0; i < n; ++i) rows.row_ends.push(rows.nnz + ends[i]);
    rows.relevance.append<double>(chunk.relevance);
    const auto labels_before = static_cast<std::int64_t>(rows.labels.size<double>());
    rows.labels.append<double>(chunk.labels);
    const auto *const label_ends = chunk.label_ends.as<std::int64_t>();
    for (std::size_t i = 0; i < chunk.label_ends.size<std::int64_t>(); ++i)
        rows.label_ends.push(labels_before + label_ends[i]);
    rows.qids.append<std::int64_t>(chunk.qids);
    if (rows.costs.bytes() != 0 || chunk.costs.bytes() != 0) {
        if (rows.costs.bytes() == 0) rows.costs.fill(n_before, 1.0);
        if (chunk.costs.bytes() == 0) chunk.costs.fill(n, 1.0);
        rows.costs.append<double>(chunk.costs);
    }
    if (n_before == 0 && n > 0) rows.first_row_line = rows.line + chunk.first_row_line - 1;
    rows.nnz += chunk.nnz;
    rows.n_columns = std::max(rows.n_columns, chunk.n_columns);
    rows.unknown += chunk.unknown;
    rows.line += chunk.line - 1;
    if (!rows.wide && rows.nnz > options.narrow_limit) widen(rows);
    return true;
}

// parse_range() by several threads: the first chunk is written to `rows` at once, the others to `spare` at first.
// A chunk has at least `least` bytes, or one line.
void parse_chunks(const char *begin, const char *end, const Options &options, std::size_t threads, std::size_t least,
                  Rows &rows, std::vector<Rows> &spare) {
    const auto size = static_cast<std::size_t>(end - begin);
    const std::size_t most = std::min(threads, size / std::max<std::size_t>(least, 1));
    std::vector<const char *> cuts{begin};
    for (std::size_t i = 1; i < most; ++i) {
        const char *const near = begin + size * i / most;
        const char *const cut = std::find(std::max(near, cuts.back()), end, '\n') + 1;
        if (cut < end && cut > cuts.back()) cuts.push_back(cut);
    }
    const std::size_t n_chunks = cuts.size();
    cuts.push_back(end);
    if (spare.size() + 1 < n_chunks) spare.resize(n_chunks - 1);

    std::vector<std::exception_ptr> errors(n_chunks);
    std::vector<char> has_fault(n_chunks, 0);
    const bool wide = rows.wide;
    apsvm::in_threads(n_chunks, threads, [&](std::size_t i) {
        try {
            if (i > 0) spare[i - 1].restart(wide);
            parse_range(cuts[i], cuts[i + 1], options, i == 0 ? rows : spare[i - 1]);
        } catch (const SyntaxError &) {
            if (i == 0) errors[i] = std::current_exception();
            has_fault[i] = 1;
        } catch (...) {
            errors[i] = std::current_exception();
        }
    });
    for (std::size_t i = 0; i < n_chunks; ++i) {
        if (errors[i]) std::rethrow_exception(errors[i]);
        if (i == 0) continue;
        const auto append = options.float32 ? append_rows<float> : append_rows<double>;
        if (has_fault[i] || !append(rows, spare[i - 1], options)) parse_range(cuts[i], cuts[i + 1], options, rows);
    }
}

// ---------------------------------------------------------------------------------------------------- Python

class SvmlightParser {
public:
    SvmlightParser(const Options &options, std::size_t threads, std::size_t least_chunk)
        : options_(options), threads_(threads), least_chunk_(least_chunk) {
        rows_.wide = options.n_features > options.narrow_limit;
    }

    ~SvmlightParser() {
        if (running_.valid()) running_.wait();
    }

    // Worth parsing by several threads, and while the caller goes on?
    bool is_worth_threads(std::size_t bytes) const { return threads_ > 1 && bytes >= 2 * least_chunk_; }

    // feed() that returns at once. Not before wait() has returned may anything else be called, nor `block` be let go.
    void start(const nb::bytes &block) {
        block_ = block;
        const auto *const begin = static_cast<const char *>(block.data());
        const auto *const end = begin + block.size();
        running_ = std::async(std::launch::async, [this, begin, end] { feed(begin, end); });
    }

    // Until what start() began is done; throws what it threw.
    void wait() {
        if (running_.valid()) running_.get();
    }

    void feed(const char *begin, const char *end) {
        if (carry_.bytes() != 0) {
            const char *const newline = std::find(begin, end, '\n');
            if (newline == end) return carry(begin, end);
            carry_.append(begin, newline + 1);
            parse_carry();
            begin = newline + 1;
        }
        const auto whole = std::string_view(begin, static_cast<std::size_t>(end - begin)).rfind('\n') + 1;
        parse_chunks(begin, begin + whole, options_, threads_, least_chunk_, rows_, spare_);
        carry(begin + whole, end);
    }

    Rows finish() {
        spare_.clear();
        if (carry_.bytes() != 0) parse_last_line();
        if (!rows_.wide && static_cast<std::int64_t>(rows_.size()) > options_.narrow_limit) widen(rows_);
        return std::move(rows_);
    }

    const Options &options() const { return options_; }

private:
    void parse_carry() {
        parse_range(carry_.as<char>(), carry_.as<char>() + carry_.bytes(), options_, rows_);
        carry_.clear();
        carry_has_nul_ = false;
    }

    void parse_last_line() {
        carry_.push('\n');
        parse_carry();
    }

    void carry(const char *begin, const char *end) {
        carry_has_nul_ = carry_has_nul_ || std::find(begin, end, '\0') != end;
        carry_.append(begin, end);
        if (carry_has_nul_ && carry_.bytes() >= nul_patience) parse_last_line();
    }

    Options options_;
    std::size_t threads_;
    std::size_t least_chunk_;
    Rows rows_;
    std::vector<Rows> spare_; // of the chunks but the first, kept for their memory
    nb::object block_;        // what running_ reads
    std::future<void> running_;
    Buffer carry_; // the line not yet ended
    bool carry_has_nul_ = false;
};

// Gives the buffer's memory to a numpy array.
template <class T> nb::object to_array(Buffer &buffer) {
    const std::size_t n = buffer.size<T>();
    void *const data = buffer.release();
    nb::capsule owner(data, [](void *p) noexcept { std::free(p); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(static_cast<T *>(data), {n}, owner));
}

template <class T> nb::object to_array_or_none(Buffer &buffer) {
    return buffer.bytes() == 0 ? nb::none() : to_array<T>(buffer);
}

// The row ends behind a leading 0, in the type of the indices: scipy wants both of one type.
template <class Index> Buffer to_indptr(const Buffer &row_ends) {
    const std::size_t n = row_ends.size<std::int64_t>();
    Buffer indptr;
    indptr.reserve_more<Index>(n + 1);
    indptr.set_size<Index>(n + 1);
    Index *const out = indptr.as<Index>();
    out[0] = 0;
    std::copy_n(row_ends.as<std::int64_t>(), n, out + 1);
    return indptr;
}

PyObject *syntax_error_type = nullptr;

// Runs `work` without the GIL; a SyntaxError becomes the Python exception with args (line, column, message).
template <class Work> void run_unlocked(Work work) {
    std::optional<SyntaxError> error;
    {
        nb::gil_scoped_release unlocked;
        try {
            work();
        } catch (SyntaxError &caught) {
            error = std::move(caught);
        }
    }
    if (error) {
        const nb::tuple arguments = nb::make_tuple(error->line, error->column, nb::str(error->message.c_str()));
        PyErr_SetObject(syntax_error_type, arguments.ptr());
        throw nb::python_error();
    }
}

} // namespace

void bind_svmlight(nb::module_ &m) {
    syntax_error_type = PyErr_NewException("apsvm._native._kernels.SvmlightError", PyExc_ValueError, nullptr);
    if (syntax_error_type == nullptr) throw nb::python_error();
    m.attr("SvmlightError") = nb::borrow(syntax_error_type);

    nb::class_<SvmlightParser>(m, "SvmlightParser",
                               "Push parser of svmlight text: feed() it the bytes, finish() gives the arrays.")
        .def(
            "__init__",
            [](SvmlightParser *self, bool zero_based, bool float32, std::int64_t n_features, std::int64_t max_features,
               bool ignore_unknown, bool sort_features, bool multilabel, std::int64_t narrow_limit,
               std::size_t threads, std::size_t least_chunk) {
                new (self) SvmlightParser(Options{zero_based, float32, n_features, max_features, ignore_unknown,
                                                  sort_features,
                                                  multilabel, narrow_limit},
                                          threads, least_chunk);
            },
            nb::kw_only(), nb::arg("zero_based") = false, nb::arg("float32") = false, nb::arg("n_features") = -1,
            nb::arg("max_features") = -1, nb::arg("ignore_unknown") = false, nb::arg("sort_features") = false,
            nb::arg("multilabel") = false, nb::arg("narrow_limit") = std::int64_t{std::numeric_limits<std::int32_t>::max()},
            nb::arg("threads") = 1, nb::arg("least_chunk") = 1 << 18)
        .def(
            "feed",
            [](SvmlightParser &self, const nb::bytes &block) {
                run_unlocked([&] { self.wait(); });
                if (self.is_worth_threads(block.size())) return self.start(block);
                const auto *const begin = static_cast<const char *>(block.data());
                const auto *const end = begin + block.size();
                run_unlocked([&] { self.feed(begin, end); });
            },
            nb::arg("block"),
            "Parses the next bytes; raises SvmlightError(line, column, message).\n\n"
            "With several threads the parsing may go on behind it; its errors are raised by the next call.")
        .def(
            "wait", [](SvmlightParser &self) { run_unlocked([&] { self.wait(); }); },
            "Until all that was fed is parsed; raises SvmlightError.")
        .def(
            "finish",
            [](SvmlightParser &self) {
                Rows rows;
                Buffer indptr;
                run_unlocked([&] {
                    self.wait();
                    rows = self.finish();
                    indptr = rows.wide ? to_indptr<std::int64_t>(rows.row_ends)
                                       : to_indptr<std::int32_t>(rows.row_ends);
                });
                return nb::make_tuple(
                    rows.wide ? to_array<std::int64_t>(indptr) : to_array<std::int32_t>(indptr),
                    rows.wide ? to_array<std::int64_t>(rows.indices) : to_array<std::int32_t>(rows.indices),
                    self.options().float32 ? to_array<float>(rows.values) : to_array<double>(rows.values),
                    to_array<double>(rows.relevance), to_array_or_none<std::int64_t>(rows.qids),
                    to_array_or_none<double>(rows.costs), rows.n_columns, rows.unknown,
                    to_array<double>(rows.labels), to_array<std::int64_t>(rows.label_ends));
            },
            "The arrays (indptr, indices, values, relevance, qids | None, costs | None, n_columns, n_unknown, labels, "
            "label_ends).\n\n"
            "n_columns is one more than the largest column stored. The parser is spent afterwards.");
}
