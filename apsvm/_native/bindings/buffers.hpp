// Buffers whose memory becomes that of an array.
#pragma once

#include <memory>
#include <utility>

#include "svmlight/buffer.hpp"
#include "module.hpp"

namespace apsvm {

// Keeps the buffer, cut to size, for as long as an array needs it; `memory` says where that begins, never null.
template <class T>
nb::capsule owner_of(svmlight::Buffer &buffer, T *&memory) {
    buffer.cut();
    auto kept = std::make_unique<svmlight::Buffer>(std::move(buffer));
    memory = kept->as<T>();
    nb::capsule owner(kept.get(), [](void *p) noexcept { delete static_cast<svmlight::Buffer *>(p); });
    kept.release();
    return owner;
}

}  // namespace apsvm
