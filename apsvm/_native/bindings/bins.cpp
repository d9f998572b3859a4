// Bins of scores (score_bins.hpp).
#include "module.hpp"

#include "score_bins.hpp"

using namespace apsvm;

void bind_bins(nb::module_ &m) {
    nb::class_<ScoreBins>(m, "ScoreBins")
        .def(nb::init<In<double>, std::size_t, std::size_t, std::size_t>(), nb::arg("sample"), nb::arg("n_neg"),
             nb::arg("n_pos"), nb::arg("most") = kNamedBins)
        .def_prop_ro("size", &ScoreBins::size)
        .def("edges", &ScoreBins::edges)
        .def("number", &ScoreBins::number, nb::arg("scores"), nb::arg("cells"));
}
