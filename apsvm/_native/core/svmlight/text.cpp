#include "svmlight/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace apsvm::svmlight {

namespace {

constexpr std::size_t longest_excerpt = 40;

std::string escaped(char c) {
    constexpr char hex[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '\'') return {'\\', c};
    if (byte >= 0x20 && byte < 0x7f) return {c};
    return {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
}

}  // namespace

std::string quoted(const char *begin, const char *end) {
    std::string text = "'";
    const auto n = std::min(static_cast<std::size_t>(end - begin), longest_excerpt);
    for (std::size_t i = 0; i < n; ++i) text += escaped(begin[i]);
    return text + (begin + n < end ? "'..." : "'");
}

void Line::fail(const char *at, std::string message) const {
    throw SyntaxError{number, at - begin + 1, std::move(message)};
}

void Line::fail_control(const char *at) const {
    if (*at == '\r') fail(at, "expected a line end '\\n' or '\\r\\n', found a lone carriage return '\\r'");
    if (*at == '\0') fail(at, "expected text, found a NUL byte '\\x00'");
    fail(at, "expected text, found the control character '" + escaped(*at) + "'");
}

std::string Line::found(const char *at) const {
    refuse_control(at);
    if (at == end) return "found the end of the line";
    if (*at == '#') return "found a comment";
    if (is_blank(*at)) return "found a blank";
    return "found " + quoted(at, token_end(at));
}

void Line::check_comment(const char *at) const {
    const auto *const nul = static_cast<const char *>(std::memchr(at, '\0', static_cast<std::size_t>(end - at)));
    const auto *const stop = nul ? nul : end;
    const auto *const cr = static_cast<const char *>(std::memchr(at, '\r', static_cast<std::size_t>(stop - at)));
    if (cr != nullptr) refuse_control(cr);
    if (nul != nullptr) refuse_control(nul);
}

}  // namespace apsvm::svmlight
