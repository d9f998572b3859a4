// The svmlight text format, line by line:
//
//     label [qid:INT] [cost:NUM] [bag:INT] index:value index:value ... [# comment]
//
// with, where that is requested, any number of labels, "1,4" or none at all, in place of the one.
#pragma once

#include "svmlight/parsed_rows.hpp"
#include "svmlight/text.hpp"

namespace apsvm::svmlight {

// Appends whole lines, each with its '\n', to `rows`. Throws SyntaxError.
void parse_range(const char *begin, const char *end, const Options &options, Rows &rows);

}  // namespace apsvm::svmlight
