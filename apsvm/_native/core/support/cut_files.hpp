// Files that are mapped and may be cut off while they are read. Reading beyond the end raises SIGBUS; here the process
// then ends with a sentence and an exit code.
#pragma once

#include <cstddef>
#include <string_view>

namespace apsvm {

// From now on a SIGBUS at an address in [begin, begin + n_bytes) writes `words`, cut at 511 bytes, to standard error and
// ends the process with `exit_code`. Any other SIGBUS goes to who had it before. Returns the number to forget it by, or −1
// where there is no room for another, and nothing is guarded. Not to be called by two threads at once.
int guard_mapping(const void *begin, std::size_t n_bytes, std::string_view words, int exit_code);

// The mapping is no more.
void forget_mapping(int number);

}  // namespace apsvm
