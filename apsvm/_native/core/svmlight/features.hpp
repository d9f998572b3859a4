// The features of a row: index:value index:value ... up to the end of the line or a comment.
#pragma once

#include "svmlight/parsed_rows.hpp"
#include "svmlight/text.hpp"

namespace apsvm::svmlight {

// Appends the entries from p on to `rows`, as the next row's. Throws SyntaxError.
void parse_features(const Line &line, const char *p, const Options &options, Rows &rows);

}  // namespace apsvm::svmlight
