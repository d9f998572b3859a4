// Bags of instances.
#include "module.hpp"

#include "rows/bags.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

std::size_t expect_bags(const In<double> &scores, const In<std::int64_t> &offsets) {
    if (!bags_exist(span_of(offsets), scores.size()))
        throw std::invalid_argument("expected bags of one row or more, " + std::to_string(scores.size()) + " in all");
    return offsets.size() - 1;
}

void best(In<double> scores, In<std::int64_t> offsets, Out<std::int64_t> rows, std::size_t threads) {
    expect_size(rows.size(), expect_bags(scores, offsets), "rows, as there are bags");
    expect_threads(threads);
    nb::gil_scoped_release unlocked;
    best_of_bags(span_of(scores), span_of(offsets), rows.data(), threads);
}

void top(In<double> scores, In<std::int64_t> offsets, In<std::int64_t> counts, Out<std::int64_t> rows,
         std::size_t threads) {
    const std::size_t bags = expect_bags(scores, offsets);
    expect_size(counts.size(), bags, "counts, as there are bags");
    std::size_t total = 0;
    for (std::size_t b = 0; b < bags; ++b) {
        const std::int64_t count = counts.data()[b];
        if (count < 1 || count > offsets.data()[b + 1] - offsets.data()[b])
            throw std::invalid_argument("expected counts from 1 to the bag's size");
        total += static_cast<std::size_t>(count);
    }
    expect_size(rows.size(), total, "rows, as are counted");
    expect_finite(span_of(scores), "scores");
    expect_threads(threads);
    nb::gil_scoped_release unlocked;
    top_of_bags(span_of(scores), span_of(offsets), span_of(counts), rows.data(), threads);
}

}  // namespace

void bind_bags(nb::module_ &m) {
    m.def("best_of_bags", &best);
    m.def("top_of_bags", &top);
}
