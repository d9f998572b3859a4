// What apsvm.torch calls: the oracles over the lists of a batch, and the recurrences of soft ranks.
#include "module.hpp"

#include <limits>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "sums/decaying_sums.hpp"
#include "sums/soft_rank_losses.hpp"
#include "oracles/lists.hpp"
#include "arrays.hpp"

namespace {

using namespace apsvm;

// What stands in rows: (n,), one list, or (b, n), one a row.
template <class T>
using Rows = AsItIs<nb::ndarray<const T, nb::c_contig, nb::device::cpu>>;
template <class T>
using OutRows = AsItIs<nb::ndarray<T, nb::c_contig, nb::device::cpu>>;
using Marks = Rows<bool>;

ListRows rows_of(const Marks &positive, const std::optional<Marks> &valid) {
    expect_numerable(positive.size());
    if (positive.ndim() != 1 && positive.ndim() != 2)
        throw std::invalid_argument("expected the rows of one list, or lists of as many rows");
    const bool is_one = positive.ndim() == 1;
    // As bytes: what stands in an array of bool need not be one.
    const auto bytes_of = [&](const Marks &marks) {
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(marks.data());
        if (!all_bits(bytes, marks.size())) throw std::invalid_argument("expected marks of 0 and 1");
        return bytes;
    };
    if (valid) expect_size(valid->size(), positive.size(), "marks of rows that count, as there are rows");
    return {is_one ? 1 : positive.shape(0), positive.shape(is_one ? 0 : 1), bytes_of(positive),
            valid ? bytes_of(*valid) : nullptr};
}

// (positives, negatives) of each list: Python's numbers, by which the arrays of its loss are looked up.
std::vector<std::pair<std::int64_t, std::int64_t>> count(Marks positive, std::optional<Marks> valid) {
    const ListRows rows = rows_of(positive, valid);
    std::vector<std::pair<std::int64_t, std::int64_t>> sizes(rows.n_lists);
    for (std::size_t l = 0; l < sizes.size(); ++l) {
        const ClassSizes of_list = count_classes(rows, l);
        sizes[l] = {of_list.positives, of_list.negatives};
    }
    return sizes;
}

// That `needed` numbers from `begin` on are among `size`.
void expect_within(std::int64_t begin, std::int64_t needed, std::size_t size, const char *what) {
    const auto end = static_cast<std::int64_t>(size);
    if (begin < 0 || begin > end || needed > end - begin)
        throw std::invalid_argument(std::string("expected ") + what + " of each list");
}

void expect_losses(const ListRows &rows, const ListLosses &losses, std::size_t n_weights, std::size_t n_places) {
    expect_size(losses.weights_begin.size(), rows.n_lists, "begins of weights, as there are lists");
    expect_size(losses.discount_begin.size(), rows.n_lists, "begins of discounts, as there are lists");
    for (std::size_t l = 0; l < rows.n_lists; ++l) {
        const auto [n_pos, n_neg] = count_classes(rows, l);
        if (n_pos == 0 || n_neg == 0) continue;
        expect_within(losses.weights_begin[l], n_pos, n_weights, "weights for the positives");
        expect_within(losses.discount_begin[l], n_pos + n_neg, n_places, "discounts for the positions");
    }
}

// Where the answers go, each of its length.
template <class Score>
ListAnswers<Score> answers_of(const ListRows &rows, const Rows<Score> &scores, const Out<double> &values,
                              const Out<bool> &counts, const OutRows<Score> &row_weights) {
    expect_size(scores.size(), rows.n_lists * rows.n, "scores, as there are rows");
    expect_size(row_weights.size(), rows.n_lists * rows.n, "row weights, as there are rows");
    expect_size(values.size(), rows.n_lists, "values, as there are lists");
    expect_size(counts.size(), rows.n_lists, "marks of lists that count, as there are lists");
    return {values.data(), counts.data(), row_weights.data()};
}

template <class Score>
void solve(const std::string &algorithm, bool unimodal, const std::string &form, Rows<Score> scores,
           Marks positive, std::optional<Marks> valid, In<std::int64_t> weights_begin, In<double> weights,
           In<std::int64_t> discount_begin, In<double> discount, Out<double> values, Out<bool> counts,
           OutRows<Score> row_weights, std::size_t threads) {
    if (form != "hinge" && form != "ramp") throw std::invalid_argument("unknown form " + form);
    expect_threads(threads);
    const ListRows rows = rows_of(positive, valid);
    const ListAnswers<Score> answers = answers_of(rows, scores, values, counts, row_weights);
    const ListLosses arrays{span_of(weights_begin), weights.data(), span_of(discount_begin), discount.data()};
    expect_losses(rows, arrays, weights.size(), discount.size());
    const Algorithm named = algorithm_named(algorithm);
    nb::gil_scoped_release unlocked;
    solve_lists<Score>(named, unimodal, form == "hinge" ? ListForm::hinge : ListForm::ramp, scores.data(), rows, arrays,
                       answers, threads);
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
void soft_ranks(Rows<Score> scores, Marks positive, std::optional<Marks> valid, double tau, bool relative,
                In<double> places, double tau_rank, Out<double> values, Out<bool> counts, OutRows<Score> slopes,
                std::size_t threads) {
    expect_threads(threads);
    const ListRows rows = rows_of(positive, valid);
    const ListAnswers<Score> answers = answers_of(rows, scores, values, counts, slopes);
    if (!(tau > 0.0) || !(tau_rank > 0.0)) throw std::invalid_argument("expected widths above 0");
    const SoftRankLoss loss{tau, relative, span_of(places), tau_rank};
    nb::gil_scoped_release unlocked;
    soft_rank_losses<Score>(loss, scores.data(), rows, answers, threads);
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
