// Memory that was let go of, and that the C library keeps for itself.
#include "module.hpp"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace nb = nanobind;

void bind_memory(nb::module_ &m) {
    m.def("give_back_memory", [] {
#ifdef __GLIBC__
        nb::gil_scoped_release unlocked;
        malloc_trim(0);
#endif
    });
}
