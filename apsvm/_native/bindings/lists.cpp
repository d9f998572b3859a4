// What apsvm.torch calls: the oracles over the lists of a batch, and the recurrences of soft ranks.
#include "module.hpp"

#include <limits>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sums/decaying_sums.hpp"
#include "sums/soft_rank_losses.hpp"
#include "oracles/lists.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

// What stands in rows: an array of any shape, list after list.
template <class T>
using Rows = AsItIs<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>;
template <class T>
using OutRows = AsItIs<nb::ndarray<T, nb::c_contig, nb::device::cpu>>;

// A mask of as many rows as there are; or of none, which means all.
const std::uint8_t *mask_of(const Rows<std::uint8_t> &valid, std::size_t n) {
    if (valid.size() == 0) return nullptr;
    expect_size(valid.size(), n, "marks of rows that count, as there are rows");
    return valid.data();
}

ListRows rows_of(const In<std::int64_t> &starts, const Rows<std::uint8_t> &positive, const Rows<std::uint8_t> &valid) {
    expect_numerable(positive.size());
    if (starts.size() == 0 || starts.data()[0] != 0 ||
        starts.data()[starts.size() - 1] != static_cast<std::int64_t>(positive.size()))
        throw std::invalid_argument("expected lists from the first row to the last");
    for (std::size_t l = 0; l + 1 < starts.size(); ++l)
        if (starts.data()[l] > starts.data()[l + 1]) throw std::invalid_argument("expected lists that ascend");
    const std::uint8_t *const mask = mask_of(valid, positive.size());
    if (!all_bits(positive.data(), positive.size()) || !all_bits(valid.data(), valid.size()))
        throw std::invalid_argument("expected marks of 0 and 1");
    return {span_of(starts), positive.data(), mask};
}

// (positives, negatives) of each list: Python's numbers, by which the arrays of its loss are looked up.
std::vector<std::pair<std::int64_t, std::int64_t>> count(In<std::int64_t> starts, Rows<std::uint8_t> positive,
                                                         Rows<std::uint8_t> valid) {
    const ListRows rows = rows_of(starts, positive, valid);
    std::vector<std::int64_t> n_pos(starts.size() - 1), n_neg(starts.size() - 1);
    count_classes(rows, n_pos.data(), n_neg.data());
    std::vector<std::pair<std::int64_t, std::int64_t>> sizes(starts.size() - 1);
    for (std::size_t l = 0; l < sizes.size(); ++l) sizes[l] = {n_pos[l], n_neg[l]};
    return sizes;
}

// That `needed` numbers from `begin` on are among `size`.
void expect_within(std::int64_t begin, std::int64_t needed, std::size_t size, const char *what) {
    const auto end = static_cast<std::int64_t>(size);
    if (begin < 0 || begin > end || needed > end - begin)
        throw std::invalid_argument(std::string("expected ") + what + " of each list");
}

void expect_losses(const ListRows &rows, const ListLosses &losses, std::size_t n_weights, std::size_t n_places) {
    const std::size_t n_lists = rows.starts.size() - 1;
    expect_size(losses.weights_begin.size(), n_lists, "begins of weights, as there are lists");
    expect_size(losses.discount_begin.size(), n_lists, "begins of discounts, as there are lists");
    std::vector<std::int64_t> n_pos(n_lists), n_neg(n_lists);
    count_classes(rows, n_pos.data(), n_neg.data());
    for (std::size_t l = 0; l < n_lists; ++l) {
        if (n_pos[l] == 0 || n_neg[l] == 0) continue;
        expect_within(losses.weights_begin[l], n_pos[l], n_weights, "weights for the positives");
        expect_within(losses.discount_begin[l], n_pos[l] + n_neg[l], n_places, "discounts for the positions");
    }
}

template <class Score>
void solve(const std::string &algorithm, bool unimodal, const std::string &form, Rows<Score> scores,
           In<std::int64_t> starts, Rows<std::uint8_t> positive, Rows<std::uint8_t> valid, In<std::int64_t> weights_begin,
           In<double> weights, In<std::int64_t> discount_begin, In<double> discount, Out<double> values, Out<bool> counts,
           OutRows<Score> row_weights, std::size_t threads) {
    if (form != "hinge" && form != "ramp") throw std::invalid_argument("unknown form " + form);
    expect_threads(threads);
    const ListRows rows = rows_of(starts, positive, valid);
    expect_size(scores.size(), positive.size(), "scores, as there are rows");
    expect_size(row_weights.size(), positive.size(), "row weights, as there are rows");
    expect_size(values.size(), starts.size() - 1, "values, as there are lists");
    expect_size(counts.size(), starts.size() - 1, "marks of lists that count, as there are lists");
    const ListLosses arrays{span_of(weights_begin), weights.data(), span_of(discount_begin), discount.data()};
    expect_losses(rows, arrays, weights.size(), discount.size());
    const Algorithm named = algorithm_named(algorithm);
    nb::gil_scoped_release unlocked;
    solve_lists<Score>(named, unimodal, form == "hinge" ? ListForm::hinge : ListForm::ramp, scores.data(), rows, arrays,
                       {values.data(), counts.data(), row_weights.data()}, threads);
}

void sum_decaying(In<double> decay, In<double> values, Out<double> sums, std::size_t channels, std::size_t lists,
                  bool reverse, std::size_t threads) {
    expect_threads(threads);
    const bool countable = channels != 0 && lists <= std::numeric_limits<std::size_t>::max() / channels;
    if (!countable || lists == 0 || values.size() % (channels * lists) != 0)
        throw std::invalid_argument("expected as many values for each list of each channel");
    const std::size_t n = values.size() / (channels * lists);
    expect_size(decay.size(), n == 0 ? 0 : lists * (n - 1), "decays, one between two rows");
    expect_size(sums.size(), values.size(), "sums, as there are values");
    nb::gil_scoped_release unlocked;
    decaying_sums(decay.data(), values.data(), sums.data(), channels, lists, n, reverse, threads);
}

template <class Score>
void soft_ranks(Rows<Score> scores, In<std::int64_t> starts, Rows<std::uint8_t> positive, Rows<std::uint8_t> valid,
                double tau, bool relative, In<double> places, double tau_rank, Out<double> values, Out<bool> counts,
                OutRows<Score> slopes, std::size_t threads) {
    expect_threads(threads);
    const ListRows rows = rows_of(starts, positive, valid);
    expect_size(scores.size(), positive.size(), "scores, as there are rows");
    expect_size(slopes.size(), positive.size(), "slopes, as there are rows");
    expect_size(values.size(), starts.size() - 1, "values, as there are lists");
    expect_size(counts.size(), starts.size() - 1, "marks of lists that count, as there are lists");
    if (!(tau > 0.0) || !(tau_rank > 0.0)) throw std::invalid_argument("expected widths above 0");
    const SoftRankLoss loss{tau, relative, span_of(places), tau_rank};
    nb::gil_scoped_release unlocked;
    soft_rank_losses<Score>(loss, scores.data(), rows, {values.data(), counts.data(), slopes.data()}, threads);
}

}  // namespace

void bind_lists(nb::module_ &m) {
    m.def("solve_lists", &solve<float>);
    m.def("solve_lists", &solve<double>);
    m.def("count_classes", &count);
    m.def("soft_rank_losses", &soft_ranks<float>);
    m.def("soft_rank_losses", &soft_ranks<double>);
    m.def("decaying_sums", &sum_decaying);
}
