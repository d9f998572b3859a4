// How this extension was compiled, and which of the clones of its kernels this machine runs (core/support/threads.hpp).
#include "module.hpp"

#include <string>

#include <nanobind/stl/string.h>

#include "support/threads.hpp"

namespace nb = nanobind;

namespace {

// Chosen by the same resolver as the kernels' clones.
#ifdef APSVM_HAS_CLONES
constexpr bool has_clones = true;
__attribute__((target("avx512f"))) const char *clone() { return "avx512f"; }
__attribute__((target("avx2"))) const char *clone() { return "avx2"; }
__attribute__((target("default"))) const char *clone() { return "default"; }
#else
constexpr bool has_clones = false;
const char *clone() { return "default"; }
#endif

std::string compiler() {
#if defined(__clang__)
    return "Clang " __clang_version__;
#elif defined(__GNUC__)
    return "GCC " __VERSION__;
#else
    return "unknown";
#endif
}

}  // namespace

void bind_build(nb::module_ &m) {
    m.def("build_info", [] {
        nb::dict info;
        info["compiler"] = compiler();
        info["clones"] = has_clones ? "avx512f, avx2, default" : "default";
        info["clone"] = clone();
        return info;
    });
}
