#include "grammar.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "numbers.hpp"

namespace apsvm::svmlight {

namespace {

[[noreturn]] void fail_number(const Line &line, const char *at, Number status, const std::string &what,
                              const char *type = "float64") {
    const char *const stop = token_end(at);
    if (status == Number::overflow) line.fail(at, what + " overflows " + type + ": found " + quoted(at, stop));
    if (is_not_finite_word(at, stop))
        line.fail(at, "expected a finite number as " + what + ", found " + quoted(at, stop));
    line.fail(at, "expected a number as " + what + ", " + line.found(at));
}

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
    if (name == "qid" || name == "cost" || name == "bag")
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
    std::uint64_t sum = 0;  // unsigned, as it may wrap: only behind the digits is their number looked at (18 fit)
    for (; is_digit(*q); ++q) sum = sum * 10 + static_cast<unsigned>(*q - '0');
    const auto index = static_cast<std::int64_t>(sum);
    if (*q != ':' || q == p || q - p > 18 || index < options.base()) [[unlikely]]
        return read_index_slowly(line, p, options);
    p = q + 1;
    return index;
}

template <class Value>
Value read_value(const Line &line, const char *&p, std::int64_t index) {
    const char *const at = p;
    double number = 0.0;
    const Number status = read_number(p, line.readable, number);
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

// Behind full rows one of n entries of these columns: whether it is full, too. Else all indices are written down, its own
// among them.
template <class Index>
void follow_full_rows(Rows &rows, const Index *columns, std::int64_t n) {
    const bool runs_through = n == 0 || columns[n - 1] == n - 1;
    if (runs_through && (rows.size() == 0 || n == rows.width())) return;
    const std::vector<Index> of_row(columns, columns + n);  // they stand where the others are to be
    rows.store_indices();
    rows.indices.reserve_more<Index>(of_row.size());
    std::copy(of_row.begin(), of_row.end(), rows.indices.as<Index>() + rows.nnz);
}

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
    Index *const indices = rows.indices.as<Index>() + (rows.full ? 0 : rows.nnz);
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
    if (rows.full) follow_full_rows(rows, indices, n);
    rows.nnz += n;
    rows.unknown += unknown;
    if (!rows.full) rows.indices.set_size<Index>(static_cast<std::size_t>(rows.nnz));
    rows.values.set_size<Value>(static_cast<std::size_t>(rows.nnz));
    return Outcome::done;
}

// The entries of a row in any order.
template <class Value>
void parse_unsorted(const Line &line, const char *p, const Options &options, Rows &rows) {
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
    std::sort(entries.begin(), entries.end(),
              [](const Entry &a, const Entry &b) { return a.index != b.index ? a.index < b.index : a.at < b.at; });
    const Entry *repeated = nullptr;
    for (std::size_t i = 1; i < entries.size(); ++i)
        if (entries[i].index == entries[i - 1].index && (repeated == nullptr || entries[i].at < repeated->at))
            repeated = &entries[i];
    if (repeated != nullptr) fail_order(line, repeated->at, repeated->index, repeated->index);

    while (!entries.empty() && entries.back().index - base >= limit) {
        entries.pop_back();
        ++rows.unknown;
    }
    rows.store_indices();
    if (entries.empty()) return;
    const std::int64_t n_columns = entries.back().index - base + 1;
    if (!rows.wide && n_columns > options.narrow_limit) rows.widen();
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

template <class Value>
void parse_features(const Line &line, const char *p, const Options &options, Rows &rows) {
    Outcome outcome = rows.wide ? parse_sorted<std::int64_t, Value>(line, p, options, rows)
                                : parse_sorted<std::int32_t, Value>(line, p, options, rows);
    if (outcome == Outcome::too_wide) {
        rows.widen();
        outcome = parse_sorted<std::int64_t, Value>(line, p, options, rows);
    }
    if (outcome == Outcome::unsorted) parse_unsorted<Value>(line, p, options, rows);
}

double read_label(const Line &line, const char *&p) {
    const char *const at = p;
    double label = 0.0;
    const Number status = read_number(p, line.readable, label);
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

// The number of a query or a bag, behind its `name` and ':'.
std::int64_t read_id(const Line &line, const char *&p, const char *name) {
    const char *const at = p;
    p = token_end(at);
    std::int64_t id = 0;
    const Number status = parse_integer(at, p, id);
    if (status == Number::malformed)
        line.fail(at, std::string("expected an integer behind ") + name + ":, " + line.found(at));
    if (status == Number::overflow)
        line.fail(at, std::string("the ") + name + " does not fit in 64 bits: found " + quoted(at, p));
    return id;
}

double read_cost(const Line &line, const char *&p) {
    const char *const at = p;
    double cost = 0.0;
    const Number status = read_number(p, line.readable, cost);
    if (status != Number::fine) fail_number(line, at, status, "the cost");
    if (cost < 0) line.fail(at, "expected a cost of at least 0, found " + quoted(at, p));
    return cost;
}

// What stands between the label and the features, in any order. A pointer says where, null that it does not.
struct Prefix {
    const char *qid_at = nullptr;
    const char *cost_at = nullptr;
    const char *bag_at = nullptr;
    std::int64_t qid = 0;
    std::int64_t bag = 0;
    double cost = 1.0;
};

// The token `name` at p, which moves behind its colon; it must be the first of its kind in the row.
inline bool read_name(const Line &line, const char *&p, std::string_view name, const char *&at) {
    if (!std::string_view(p, static_cast<std::size_t>(line.end - p)).starts_with(name)) return false;
    if (at != nullptr) {
        name.remove_suffix(1);
        line.fail(p, std::string(name) + " is given twice in this row: " + line.found(p));
    }
    at = p;
    p += name.size();
    return true;
}

inline Prefix read_prefix(const Line &line, const char *&p) {
    Prefix prefix;
    for (;;) {
        while (is_blank(*p)) ++p;
        if (is_digit(*p)) return prefix;
        if (read_name(line, p, "qid:", prefix.qid_at)) {
            prefix.qid = read_id(line, p, "qid");
        } else if (read_name(line, p, "bag:", prefix.bag_at)) {
            prefix.bag = read_id(line, p, "bag");
        } else if (read_name(line, p, "cost:", prefix.cost_at)) {
            prefix.cost = read_cost(line, p);
        } else {
            return prefix;
        }
    }
}

// Every row of a file has the token `name`, or none has: `at`, where it stands in this one, is null if it has none.
[[noreturn]] [[gnu::noinline]] void fail_unlike_before(const Line &line, const char *p, const Rows &rows,
                                                       const std::string &name, const char *at) {
    const std::string before = ", as in the rows before (since line " + std::to_string(rows.first_row_line) + "), ";
    if (at == nullptr) line.fail(p, "expected " + name + ":INT" + before + line.found(p));
    line.fail(at, "expected no " + name + before + line.found(at));
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
    const Prefix prefix = read_prefix(line, p);

    const std::size_t n_before = rows.size();
    if (!rows.settled()) {
        rows.first_row_line = line.number;
    } else if ((prefix.qid_at != nullptr) != rows.has_qids()) {
        fail_unlike_before(line, p, rows, "qid", prefix.qid_at);
    } else if ((prefix.bag_at != nullptr) != rows.has_bags()) {
        fail_unlike_before(line, p, rows, "bag", prefix.bag_at);
    }

    if (options.float32) {
        parse_features<float>(line, p, options, rows);
    } else {
        parse_features<double>(line, p, options, rows);
    }
    if (!rows.wide && rows.nnz > options.narrow_limit) rows.widen();
    rows.row_ends.push(rows.nnz);
    rows.relevance.push(label);
    if (prefix.qid_at != nullptr) rows.qids.push(prefix.qid);
    if (prefix.bag_at != nullptr) {
        rows.bags.push(prefix.bag);
        rows.row_lines.push(line.number);
    }
    if (prefix.cost_at != nullptr && rows.costs.bytes() == 0) rows.costs.fill(n_before, 1.0);
    if (prefix.cost_at != nullptr || rows.costs.bytes() != 0) rows.costs.push(prefix.cost);
}

}  // namespace

void parse_range(const char *begin, const char *end, const Options &options, Rows &rows) {
    while (begin != end) {
        const auto *const newline =
            static_cast<const char *>(std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
        const bool crlf = newline != begin && newline[-1] == '\r';
        parse_line({begin, newline - crlf, end, ++rows.line}, options, rows);
        begin = newline + 1;
    }
}

}  // namespace apsvm::svmlight
