// Characters and lines of svmlight text, and what an error says of them.
//
// Every line ends in '\n', so the byte at `Line::end` is '\n' or '\r': scans over digits and tokens stop there by
// themselves and need no bounds check.
#pragma once

#include <cstdint>
#include <string>

namespace apsvm::svmlight {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_blank(char c) { return c == ' ' || c == '\t'; }
inline bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
inline bool ends_token(char c) { return static_cast<unsigned char>(c) <= ' ' || c == '#' || c == 0x7f; }

inline const char *token_end(const char *p) {
    while (!ends_token(*p)) ++p;
    return p;
}

// The text in quotes, cut short where it is long, with what cannot be printed as an escape.
std::string quoted(const char *begin, const char *end);

struct SyntaxError {
    std::int64_t line;
    std::int64_t column;
    std::string message;
};

struct Line {
    const char *begin;
    const char *end;            // the '\n' or '\r' behind the last character
    const char *readable_from;  // the first byte that may be read, of this line or those before it
    const char *readable;       // behind the last byte that may be read, of this line or those after it
    std::int64_t number;

    [[noreturn]] void fail(const char *at, std::string message) const;

    // A control character has no place anywhere but in a comment.
    void refuse_control(const char *at) const {
        if (at != end && is_control(*at) && *at != '\t') fail_control(at);
    }

    // What stands at `at`, for a message; a control character there is the real fault and is reported instead.
    std::string found(const char *at) const;

    // At the end of the line or a comment? Then the row ends.
    bool ends_row(const char *at) const {
        if (at == end) return true;
        if (*at != '#') return false;
        check_comment(at);
        return true;
    }

    // A comment may hold anything but what betrays swallowed rows: NUL bytes (holes) and lone carriage returns.
    void check_comment(const char *at) const;

private:
    [[noreturn]] void fail_control(const char *at) const;
};

}  // namespace apsvm::svmlight
