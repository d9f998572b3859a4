#include "warp/steps.hpp"

#include "support/threads.hpp"

namespace apsvm::warp {

namespace {

// Into each of the clones. The arrays do not overlap.
template <Rule rule>
inline __attribute__((always_inline)) void descend_all(double *__restrict value, double *__restrict squares,
                                                       double *__restrict steps, std::size_t n,
                                                       const double *__restrict differences, double weight,
                                                       double rate) {
    const Parameters<double> all{value, squares, steps, n};
    for (std::size_t i = 0; i < n; ++i) {
        const double gradient = weight * differences[i];
        // Of the others a step for a gradient of 0 moves nothing.
        if (rule == Rule::adadelta && gradient == 0.0) continue;
        all.template descend<rule, Plain>(i, gradient, rate);
    }
}

template <class Value>
inline __attribute__((always_inline)) void difference_of(const Value *from, const Value *to, std::size_t n,
                                                         double *__restrict out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(to[i]) - static_cast<double>(from[i]);
}

#define APSVM_DESCEND(rule)                                                                                        \
    APSVM_CLONES void descend_##rule(const Parameters<double> &all, const double *differences, double weight,      \
                                     double rate) {                                                                \
        descend_all<Rule::rule>(all.value, all.squares, all.steps, all.size, differences, weight, rate);           \
    }
APSVM_DESCEND(sgd)
APSVM_DESCEND(adagrad)
APSVM_DESCEND(adadelta)

}  // namespace

void descend(Rule rule, const Parameters<double> &all, const double *differences, double weight, double rate) {
    switch (rule) {
        case Rule::sgd: return descend_sgd(all, differences, weight, rate);
        case Rule::adagrad: return descend_adagrad(all, differences, weight, rate);
        case Rule::adadelta: return descend_adadelta(all, differences, weight, rate);
    }
}

APSVM_CLONES void difference(const Dense<float> &X, std::size_t a, std::size_t b, double *out) {
    difference_of(X.values + a * X.n_columns, X.values + b * X.n_columns, X.n_columns, out);
}

APSVM_CLONES void difference(const Dense<double> &X, std::size_t a, std::size_t b, double *out) {
    difference_of(X.values + a * X.n_columns, X.values + b * X.n_columns, X.n_columns, out);
}

}  // namespace apsvm::warp
