// The parts of the extension module, a file each: what crosses is checked here, and the work is done in core/.
#pragma once

#include <nanobind/nanobind.h>

void bind_bags(nanobind::module_ &m);
void bind_build(nanobind::module_ &m);
void bind_lists(nanobind::module_ &m);
void bind_oracles(nanobind::module_ &m);
void bind_pair_sums(nanobind::module_ &m);
void bind_qp(nanobind::module_ &m);
void bind_rows(nanobind::module_ &m);
void bind_rules(nanobind::module_ &m);
void bind_svmlight(nanobind::module_ &m);
void bind_warp(nanobind::module_ &m);
