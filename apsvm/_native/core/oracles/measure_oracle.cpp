#include "oracles/measure_oracle.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "support/require.hpp"

namespace apsvm {

Measure measure_named(std::string_view form) {
    if (form == "ndcg-chakrabarti") return Measure::ndcg_first_two;
    if (form == "ndcg@k") return Measure::ndcg_at;
    if (form == "p@k") return Measure::precision_at;
    if (form == "f(beta)") return Measure::f_measure;
    if (form == "set-p@k") return Measure::set_precision_at;
    if (form == "set-r@k") return Measure::set_recall_at;
    if (form == "prbep") return Measure::break_even;
    throw std::invalid_argument("unknown measure " + std::string(form));
}

MeasureSolver::MeasureSolver(Measure measure, double parameter, std::span<const double> discount)
    : measure_(measure), parameter_(parameter), discount_(discount.begin(), discount.end()) {
    const bool has_k = measure == Measure::ndcg_at || measure == Measure::precision_at ||
                       measure == Measure::set_precision_at || measure == Measure::set_recall_at;
    require(!has_k || parameter >= 1.0, "expected a k of at least 1");
}

void MeasureSolver::check_sizes(std::int64_t n_pos, std::int64_t n_neg) const {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() / 2;
    require(0 < n_pos && n_pos <= most && 0 < n_neg && n_neg <= most,
            "expected at least one positive and one negative, and fewer than 2^30 of each");
    const bool at_k = measure_ == Measure::ndcg_at;
    if (!at_k && measure_ != Measure::ndcg_first_two) return;
    const double places = static_cast<double>(n_pos + n_neg);
    require(static_cast<double>(discount_.size()) >= (at_k ? std::min(parameter_, places) : places),
            "expected a discount for each position");
}

Answer MeasureSolver::solve(const MeasureQuery &query, Workspace &workspace) const {
    const auto n_pos = static_cast<double>(query.n_pos);
    switch (measure_) {
        case Measure::ndcg_first_two: return ndcg_first_two(query, discount_.data(), workspace);
        case Measure::ndcg_at: return ndcg_at(query, parameter_, discount_.data(), workspace);
        case Measure::precision_at: return precision_at(query, parameter_, workspace);
        case Measure::f_measure: return f_measure(query, parameter_, workspace);
        case Measure::set_precision_at: return labelled_at(query, parameter_, parameter_, workspace);
        case Measure::set_recall_at: return labelled_at(query, parameter_, n_pos, workspace);
        case Measure::break_even: break;
    }
    return labelled_at(query, n_pos, n_pos, workspace);
}

void MeasureOracle::add_tasks(std::span<const std::int64_t> first, std::span<const std::int64_t> n_pos,
                              std::span<const std::int64_t> n_neg, std::span<const double> coefficients) {
    require(first.size() == n_pos.size() && first.size() == n_neg.size() && first.size() == coefficients.size(),
            "expected a first row, a number of positives and of negatives, and a coefficient for each task");
    for (std::size_t t = 0; t < first.size(); ++t) {
        require(first[t] >= 0, "expected first rows that are not negative");
        solver_.check_sizes(n_pos[t], n_neg[t]);
        batch_.add(static_cast<std::size_t>(first[t]), static_cast<std::size_t>(n_pos[t] + n_neg[t]), coefficients[t],
                   {static_cast<std::int32_t>(n_pos[t]), static_cast<std::int32_t>(n_neg[t])});
    }
}

}  // namespace apsvm
