// Files that are mapped and may be cut off (core/support/cut_files.hpp).
#include "support/cut_files.hpp"

#include "arrays.hpp"
#include "module.hpp"

namespace nb = nanobind;

void bind_cut_files(nb::module_ &m) {
    m.def(
        "guard_mapping",
        [](const apsvm::In<std::uint8_t> &bytes, const nb::bytes &words, int exit_code) {
            return apsvm::guard_mapping(bytes.data(), bytes.size(), {words.c_str(), words.size()}, exit_code);
        },
        nb::arg("bytes"), nb::arg("words"), nb::arg("exit_code"));
    m.def("forget_mapping", &apsvm::forget_mapping, nb::arg("number"));
}
