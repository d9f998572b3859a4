// A push parser of svmlight text, bytes -> CSR buffers in one pass.
//
// It is fed the file block by block, cuts the bytes at line ends and hands each run of whole lines to parse_range(),
// which knows nothing of blocks: it appends to a Rows. With several threads a block is cut into chunks, each parsed
// into a Rows of its own and then appended in order, and start() returns while they are at it, so that the caller can
// read the next block meanwhile. A chunk that cannot be appended, because of a syntax error or of the "all rows or
// none" rule of qid, is parsed once more, now behind the rows before it: so the first error of the file is reported in
// the very words of a single thread.
#pragma once

#include <cstddef>
#include <future>
#include <vector>

#include "svmlight/parsed_rows.hpp"

namespace apsvm::svmlight {

class Parser {
public:
    // A chunk of a block, where several threads parse it, has at least `least_chunk` bytes, or one line.
    Parser(const Options &options, std::size_t threads, std::size_t least_chunk);
    ~Parser();

    const Options &options() const { return options_; }

    // Worth parsing by several threads, and while the caller goes on?
    bool is_worth_threads(std::size_t bytes) const { return threads_ > 1 && bytes >= 2 * least_chunk_; }

    // Parses the next bytes. Throws SyntaxError.
    void feed(const char *begin, const char *end);

    // feed() that returns at once. Not before wait() has returned may anything else be called, nor the bytes be let go.
    void start(const char *begin, const char *end);

    // Until what start() began is done; throws what it threw.
    void wait();

    // Gives away the rows so far.
    Rows take();

    // Parses a last line that has no end, and gives all rows away. Throws SyntaxError.
    Rows finish();

private:
    void parse_carry();
    void parse_last_line();
    void carry(const char *begin, const char *end);

    Options options_;
    std::size_t threads_;
    std::size_t least_chunk_;
    Rows rows_;
    std::vector<Rows> spare_;  // of the chunks but the first, kept for their memory
    std::future<void> running_;
    Buffer carry_;  // the line not yet ended
    bool carry_has_nul_ = false;
};

}  // namespace apsvm::svmlight
