#include "module.hpp"

void bind_svmlight(nanobind::module_ &) {}
