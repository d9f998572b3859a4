// The extension module apsvm._native._kernels: kernels only, no policy. Arguments are trusted; Python validates them.
#include "module.hpp"

NB_MODULE(_kernels, m) {
    m.doc() = "Native kernels of apsvm. Internal: arguments are trusted.";
    bind_build(m);
    bind_measures(m);
    bind_oracles(m);
    bind_qp(m);
    bind_rows(m);
    bind_svmlight(m);
    bind_warp(m);
    bind_wmw(m);
}
