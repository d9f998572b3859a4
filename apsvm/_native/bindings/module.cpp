// The extension module apsvm._native._kernels: kernels only, no policy. What would reach beyond an array is refused.
#include "module.hpp"

NB_MODULE(_kernels, m) {
    m.doc() = "Native kernels of apsvm. Internal.";
    bind_bags(m);
    bind_build(m);
    bind_lists(m);
    bind_oracles(m);
    bind_pair_sums(m);
    bind_qp(m);
    bind_rows(m);
    bind_rules(m);
    bind_svmlight(m);
    bind_warp(m);
}
