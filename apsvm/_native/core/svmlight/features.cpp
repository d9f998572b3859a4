#include "svmlight/features.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "svmlight/numbers.hpp"
#include "svmlight/usual_entries.hpp"

namespace apsvm::svmlight {

namespace {

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

enum class Outcome { done, too_wide, unsorted };

// Puts the n values of a row where its columns are, and NaN between them and up to `width`.
template <class Index, class Value>
void spread(Value *row, const Index *columns, std::int64_t n, std::int64_t width) {
    constexpr Value absent = std::numeric_limits<Value>::quiet_NaN();
    std::int64_t end = width;
    for (std::int64_t k = n; k-- > 0; end = columns[k]) {
        std::fill(row + columns[k] + 1, row + end, absent);
        row[columns[k]] = row[k];
    }
    std::fill(row, row + end, absent);
}

// Behind full rows one of n entries of these columns: whether it is full, too, or becomes so. Else all indices are
// written down, its own among them. Returns how many entries the row has now.
template <class Index, class Value>
std::int64_t follow_full_rows(Rows &rows, const Options &options, const Index *columns, std::int64_t n) {
    const bool runs_through = n == 0 || columns[n - 1] == n - 1;
    if (runs_through && (rows.size() == 0 || n == rows.width())) return n;
    // They stand where the others are to be.
    const std::vector<Index> columns_of_row(columns, columns + n);
    const Value *const behind = rows.values.as<Value>() + rows.nnz;
    const std::vector<Value> values_of_row(behind, behind + n);
    const std::int64_t width = std::max(rows.width(), n == 0 ? 0 : static_cast<std::int64_t>(columns[n - 1]) + 1);
    if (rows.may_fill<Value>(options, 1, n, width)) {
        rows.widen_rows<Value>(width);
        rows.values.reserve_more<Value>(static_cast<std::size_t>(width));
        Value *const row = rows.values.as<Value>() + rows.nnz;
        std::copy(values_of_row.begin(), values_of_row.end(), row);
        spread(row, columns_of_row.data(), n, width);
        rows.absent += width - n;
        return width;
    }
    rows.store_indices<Value>();
    rows.indices.reserve_more<Index>(columns_of_row.size());
    std::copy(columns_of_row.begin(), columns_of_row.end(), rows.indices.as<Index>() + rows.nnz);
    rows.values.reserve_more<Value>(values_of_row.size());
    std::copy(values_of_row.begin(), values_of_row.end(), rows.values.as<Value>() + rows.nnz);
    return n;
}

// Where the entries of a row go, and what they must be for that.
template <class Index, class Value>
struct SortedRow {
    Index *indices;
    Value *values;
    std::int64_t base;
    std::int64_t ceiling;  // the highest column
    std::int64_t n = 0;
    std::int64_t previous = -1;  // index, none yet

    void push(std::int64_t index, Value value) {
        previous = index;
        indices[n] = static_cast<Index>(index - base);
        values[n] = value;
        ++n;
    }
};

// The next entries, as long as they are of the usual kind and nothing is to be said of them; p moves behind the last.
template <class Index, class Value>
void parse_usual(const char *&p, SortedRow<Index, Value> &to) {
    SortedRow<Index, Value> row = to;  // a copy stays in registers
    UsualEntry entry;
    const char *at = p;
    while (read_usual(at, entry)) {
        const std::int64_t column = entry.index - row.base;
        const auto value = static_cast<Value>(entry.value);
        if (entry.index <= row.previous || column < 0 || column > row.ceiling) [[unlikely]] break;
        if constexpr (!std::is_same_v<Value, double>) {
            if (std::isinf(value)) [[unlikely]] break;
        }
        row.push(entry.index, value);
        p = at;
        if (*p != ' ') break;
        ++at;
    }
    to = row;
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
    SortedRow<Index, Value> row{rows.indices.as<Index>() + (rows.full ? 0 : rows.nnz),
                                rows.values.as<Value>() + rows.nnz, base, ceiling};
    std::int64_t unknown = 0;
    for (;;) {
        while (is_blank(*p)) ++p;
        if (may_read_usual(line, p)) {
            parse_usual(p, row);
            while (is_blank(*p)) ++p;
        }
        if (line.ends_row(p)) break;
        const char *const at = p;
        const std::int64_t index = read_index(line, p, options);
        if (index <= row.previous) [[unlikely]] {
            if (options.sort_features) return Outcome::unsorted;
            fail_order(line, at, index, row.previous);
        }
        const std::int64_t column = index - base;
        if (column > ceiling) [[unlikely]] {
            if (column < limit) return Outcome::too_wide;
            drop_or_refuse(line, at, index, options);
            read_value<Value>(line, p, index);
            row.previous = index;
            ++unknown;
            continue;
        }
        row.push(index, read_value<Value>(line, p, index));
    }
    std::int64_t n = row.n;
    if (n > 0) rows.n_columns = std::max(rows.n_columns, static_cast<std::int64_t>(row.indices[n - 1]) + 1);
    if (rows.full) n = follow_full_rows<Index, Value>(rows, options, row.indices, n);
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
        if (line.ends_row(p)) break;
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
    rows.store_indices<Value>();
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
void parse_features_as(const Line &line, const char *p, const Options &options, Rows &rows) {
    Outcome outcome = rows.wide ? parse_sorted<std::int64_t, Value>(line, p, options, rows)
                                : parse_sorted<std::int32_t, Value>(line, p, options, rows);
    if (outcome == Outcome::too_wide) {
        rows.widen();
        outcome = parse_sorted<std::int64_t, Value>(line, p, options, rows);
    }
    if (outcome == Outcome::unsorted) parse_unsorted<Value>(line, p, options, rows);
}

}  // namespace

void parse_features(const Line &line, const char *p, const Options &options, Rows &rows) {
    if (options.float32)
        parse_features_as<float>(line, p, options, rows);
    else
        parse_features_as<double>(line, p, options, rows);
}

}  // namespace apsvm::svmlight
