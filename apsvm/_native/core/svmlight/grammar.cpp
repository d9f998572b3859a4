#include "svmlight/grammar.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "svmlight/features.hpp"
#include "svmlight/numbers.hpp"

namespace apsvm::svmlight {

namespace {

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
    if (line.ends_row(p)) return;
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

    parse_features(line, p, options, rows);
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
    const char *const text = begin;
    while (begin != end) {
        const auto *const newline =
            static_cast<const char *>(std::memchr(begin, '\n', static_cast<std::size_t>(end - begin)));
        const bool crlf = newline != begin && newline[-1] == '\r';
        parse_line({begin, newline - crlf, text, end, ++rows.line}, options, rows);
        begin = newline + 1;
    }
}

}  // namespace apsvm::svmlight
