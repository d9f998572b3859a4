// The contract of an object's arguments, checked once when it is made: Python sees a ValueError.
#pragma once

#include <stdexcept>

namespace apsvm {

inline void require(bool holds, const char *message) {
    if (!holds) [[unlikely]]
        throw std::invalid_argument(message);
}

}  // namespace apsvm
