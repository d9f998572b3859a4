// The bucket oracle's kernels one by one, for negatives that stand in several parts (core/binned_ranks.hpp).
#include "module.hpp"

#include <algorithm>
#include <utility>

#include "../core/binned_ranks.hpp"
#include "../core/bins.hpp"
#include "../core/ranking_oracle.hpp"
#include "arrays.hpp"
#include "turn.hpp"
#include "score_bins.hpp"

namespace {

using namespace apsvm;

using Int64Array = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;
using DoubleArray = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

// How many names there are of each bin.
std::vector<std::int64_t> counts_of(const In<std::uint16_t> &names, std::size_t n_bins) {
    std::vector<std::int64_t> counts(n_bins, 0);
    for (const std::uint16_t name : span_of(names)) {
        if (name >= n_bins) throw std::invalid_argument("expected names of bins that there are");
        ++counts[name];
    }
    return counts;
}

class BinnedRanks {
public:
    BinnedRanks(const ScoreBins &bins, In<std::int64_t> counts, In<double> positives, In<double> weights,
                In<double> discount, bool unimodal, std::size_t threads)
        : tables_(checked_total(bins, counts), span_of(weights), span_of(discount)),
          positives_(positives.data(), positives.data() + positives.size()),
          problem_{positives_.data(),       tables_.n_pos, tables_.weights.data(),
                   tables_.discount.data(), tables_.scale, unimodal},
          rank_counts_(positives.size() + 2, 0),
          threads_(threads) {
        expect_threads(threads);
        expect_size(positives.size(), weights.size(), "scores of positives, as there are weights");
        if (!std::is_sorted(positives_.rbegin(), positives_.rend()))
            throw std::invalid_argument("expected the scores of the positives in descending order");
        nb::gil_scoped_release unlocked;
        bound_ranks(problem_, bins.bins(), counts.data(), 1, rank_counts_.data(),
                    threads_, bounds_);
        evaluated_ = bounds_.evaluated;
    }

    // (bins,): what assign_part needs: the row weight of the negatives of each bin, or −1 where it is open.
    DoubleArray weight_of_bin() const {
        std::vector<double> weights;
        for (const std::int32_t rank : bounds_.rank_of_bin)
            weights.push_back(rank == Bounds::kOpen ? -1.0 : weight_of(rank));
        return to_numpy(std::move(weights));
    }
    // (P,): the negatives of the ranks 1..P; complete once the open bins are solved.
    Int64Array rank_counts() const {
        const Turn turn(mutex_);
        return to_numpy(std::vector<std::int64_t>(rank_counts_.begin() + 1, rank_counts_.end() - 1));
    }
    std::int64_t evaluated() const {
        const Turn turn(mutex_);
        return evaluated_;
    }

    DoubleArray rank_open(In<std::uint16_t> names, In<double> scores) {
        expect_size(names.size(), scores.size(), "names of bins, as there are scores");
        expect_finite(span_of(scores), "scores of the open bins");
        const std::size_t n = scores.size(), n_bins = bounds_.rank_of_bin.size();
        std::vector<std::int64_t> counts = counts_of(names, n_bins);
        std::size_t n_open = 0;
        for (const FilledBin &bin : bounds_.open) {
            if (counts[bin.name] != bin.count) throw std::invalid_argument("expected all scores of the open bins");
            n_open += static_cast<std::size_t>(bin.count);
        }
        expect_size(n, n_open, "scores of the open bins");
        std::vector<double> row_weights(n);
        std::vector<double> open(n);
        std::vector<std::int32_t> ranks(n);
        const Turn turn(mutex_);
        {
            nb::gil_scoped_release unlocked;
            place_open(bounds_, counts.data(), 1);
            const Part part{names.data(), nullptr, n, counts.data()};
            gather_open(bounds_, part, scores.data(), open.data());
            const OpenRanks answer =
                apsvm::rank_open(problem_, bounds_, open.data(), rank_counts_.data(), threads_, threads_);
            evaluated_ += answer.evaluated;
            assign_ranks(bounds_, part, answer.ranks, ranks.data());
            for (std::size_t i = 0; i < n; ++i) row_weights[i] = weight_of(ranks[i]);
        }
        return to_numpy(std::move(row_weights));
    }

private:
    double weight_of(std::int32_t rank) const {
        return tables_.scale * static_cast<double>(tables_.n_pos + 1 - rank);
    }

    // The negatives that the bins hold together.
    static std::size_t checked_total(const ScoreBins &bins, const In<std::int64_t> &counts) {
        expect_size(counts.size(), bins.size(), "counts, as there are bins");
        std::size_t total = 0;
        for (const std::int64_t count : span_of(counts)) {
            if (count < 0) throw std::invalid_argument("expected counts that are not negative");
            expect_numerable(static_cast<std::size_t>(count));
            total += static_cast<std::size_t>(count);
        }
        return total;
    }

    LossTables tables_;
    std::vector<double> positives_;
    Problem problem_;
    std::vector<std::int64_t> rank_counts_;
    std::size_t threads_;
    Bounds bounds_;
    std::int64_t evaluated_ = 0;
    mutable std::mutex mutex_;
};

// Writes the row weights of one part's solved bins, and returns the places of its rows in open ones, ascending.
Int64Array assign_part(In<double> weight_of_bin, In<std::uint16_t> names, In<double> scores, Out<double> weights) {
    const std::size_t n = names.size();
    expect_size(scores.size(), n, "scores, as there are names of bins");
    expect_size(weights.size(), n, "row weights, as there are names of bins");
    expect_numerable(n);
    std::vector<std::int64_t> open;
    {
        nb::gil_scoped_release unlocked;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint16_t name = names.data()[i];
            if (name >= weight_of_bin.size()) throw std::invalid_argument("expected names of bins that there are");
            weights.data()[i] = weight_of_bin.data()[name];
            if (weights.data()[i] < 0.0) open.push_back(static_cast<std::int64_t>(i));
        }
    }
    return to_numpy(std::move(open));
}

}  // namespace

void bind_bins(nb::module_ &m) {
    nb::class_<ScoreBins>(m, "ScoreBins")
        .def(nb::init<In<double>, std::size_t, std::size_t, std::size_t>(), nb::arg("sample"), nb::arg("n_neg"),
             nb::arg("n_pos"), nb::arg("most") = kNamedBins)
        .def_prop_ro("size", &ScoreBins::size)
        .def("edges", &ScoreBins::edges)
        .def("count", &ScoreBins::count, nb::arg("scores"))
        .def("number", &ScoreBins::number, nb::arg("scores"), nb::arg("cells"));

    nb::class_<BinnedRanks>(m, "BinnedRanks")
        .def(nb::init<const ScoreBins &, In<std::int64_t>, In<double>, In<double>, In<double>, bool, std::size_t>(),
             nb::arg("bins"), nb::arg("counts"), nb::arg("positives"), nb::arg("weights"), nb::arg("discount"),
             nb::kw_only(), nb::arg("unimodal"), nb::arg("threads") = 1)
        .def_prop_ro("weight_of_bin", &BinnedRanks::weight_of_bin, nb::rv_policy::move)
        .def_prop_ro("rank_counts", &BinnedRanks::rank_counts, nb::rv_policy::move)
        .def_prop_ro("evaluated", &BinnedRanks::evaluated)
        .def("rank_open", &BinnedRanks::rank_open, nb::arg("names"), nb::arg("scores"));

    m.def("assign_part", &assign_part, nb::arg("weight_of_bin"), nb::arg("names"), nb::arg("scores"),
          nb::arg("weights"));
}
