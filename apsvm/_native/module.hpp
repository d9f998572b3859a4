// The parts of the extension module; each .cpp binds its own kernels.
#pragma once

#include <nanobind/nanobind.h>

void bind_build(nanobind::module_ &m);
void bind_measures(nanobind::module_ &m);
void bind_oracles(nanobind::module_ &m);
void bind_qp(nanobind::module_ &m);
void bind_rows(nanobind::module_ &m);
void bind_svmlight(nanobind::module_ &m);
void bind_warp(nanobind::module_ &m);
void bind_wmw(nanobind::module_ &m);
