#include "svmlight/parser.hpp"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "support/threads.hpp"
#include "svmlight/grammar.hpp"

namespace apsvm::svmlight {

namespace {

// A line this long with a NUL in it is refused before its end is seen: /dev/zero never ends a line.
constexpr std::size_t nul_patience = 4096;

// The rows of a chunk behind those before it; false, with nothing done, if one has qids or bags and the other has not.
template <class Value>
bool append_rows(Rows &rows, Rows &chunk, const Options &options) {
    const std::size_t n_before = rows.size(), n = chunk.size();
    const bool alike = rows.has_qids() == chunk.has_qids() && rows.has_bags() == chunk.has_bags();
    if (rows.settled() && n > 0 && !alike) return false;
    if (chunk.wide && !rows.wide) rows.widen();
    if (rows.wide && !chunk.wide) chunk.widen();
    if (n_before == 0) {
        rows.full = chunk.full;
    } else if (n > 0) {
        const std::int64_t width = std::max(rows.width(), chunk.width());
        const bool both = rows.full && chunk.full;
        if (both && (rows.width() == chunk.width() ||
                     rows.may_fill<Value>(options, n, chunk.nnz - chunk.absent, width))) {
            rows.widen_rows<Value>(width);
            chunk.widen_rows<Value>(width);
        } else {
            rows.store_indices<Value>();
            chunk.store_indices<Value>();
        }
    }
    if (!rows.full) rows.indices.append<char>(chunk.indices);
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
    rows.bags.append<std::int64_t>(chunk.bags);
    const auto *const row_lines = chunk.row_lines.as<std::int64_t>();
    for (std::size_t i = 0; i < chunk.row_lines.size<std::int64_t>(); ++i)
        rows.row_lines.push(rows.line + row_lines[i] - 1);
    if (rows.costs.bytes() != 0 || chunk.costs.bytes() != 0) {
        if (rows.costs.bytes() == 0) rows.costs.fill(n_before, 1.0);
        if (chunk.costs.bytes() == 0) chunk.costs.fill(n, 1.0);
        rows.costs.append<double>(chunk.costs);
    }
    if (n_before == 0 && n > 0 && !rows.follows) rows.first_row_line = rows.line + chunk.first_row_line - 1;
    rows.nnz += chunk.nnz;
    rows.absent += chunk.absent;
    rows.n_columns = std::max(rows.n_columns, chunk.n_columns);
    rows.unknown += chunk.unknown;
    rows.line += chunk.line - 1;
    if (!rows.wide && rows.nnz > options.narrow_limit) rows.widen();
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
        const char *const cut = std::find(begin + size * i / most, end, '\n') + 1;
        if (cut < end && cut > cuts.back()) cuts.push_back(cut);
    }
    const std::size_t n_chunks = cuts.size();
    cuts.push_back(end);
    if (spare.size() + 1 < n_chunks) spare.resize(n_chunks - 1);

    std::vector<std::exception_ptr> errors(n_chunks);
    std::vector<char> has_fault(n_chunks, 0);
    const bool wide = rows.wide;
    in_threads(n_chunks, threads, [&](std::size_t i) {
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

}  // namespace

Parser::Parser(const Options &options, std::size_t threads, std::size_t least_chunk)
    : options_(options), threads_(threads), least_chunk_(least_chunk) {
    rows_.wide = options.n_features > options.narrow_limit;
}

Parser::~Parser() {
    if (running_.valid()) running_.wait();
}

void Parser::start(const char *begin, const char *end) {
    running_ = std::async(std::launch::async, [this, begin, end] { feed(begin, end); });
}

void Parser::wait() {
    if (running_.valid()) running_.get();
}

void Parser::feed(const char *begin, const char *end) {
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

Rows Parser::take() {
    Rows behind = rows_.next();
    return std::exchange(rows_, std::move(behind));
}

Rows Parser::finish() {
    spare_.clear();
    if (carry_.bytes() != 0) parse_last_line();
    if (!rows_.wide && static_cast<std::int64_t>(rows_.size()) > options_.narrow_limit) rows_.widen();
    return std::move(rows_);
}

void Parser::parse_carry() {
    parse_range(carry_.as<char>(), carry_.as<char>() + carry_.bytes(), options_, rows_);
    carry_.clear();
    carry_has_nul_ = false;
}

void Parser::parse_last_line() {
    carry_.push('\n');
    parse_carry();
}

void Parser::carry(const char *begin, const char *end) {
    carry_has_nul_ = carry_has_nul_ || std::find(begin, end, '\0') != end;
    carry_.append(begin, end);
    if (carry_has_nul_ && carry_.bytes() >= nul_patience) parse_last_line();
}

}  // namespace apsvm::svmlight
