// The parameters of a stochastic descent, how they are shared, and the rules that pace their steps.
#pragma once

#include <atomic>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace apsvm::warp {

// How parameters are touched: by one thread, or by several at once.
struct Plain {
    template <class T>
    static T load(const T &at) {
        return at;
    }
    template <class T>
    static void store(T &at, T value) {
        at = value;
    }
};

struct Relaxed {
    template <class T>
    static T load(const T &at) {
        return std::atomic_ref<T>(const_cast<T &>(at)).load(std::memory_order_relaxed);
    }
    template <class T>
    static void store(T &at, T value) {
        std::atomic_ref<T>(at).store(value, std::memory_order_relaxed);
    }
};

template <class Access, class T>
struct View {
    const T *at;
    T operator[](std::size_t i) const { return Access::load(at[i]); }
};

enum class Rule { sgd, adagrad, adadelta };

inline Rule rule_named(std::string_view name) {
    if (name == "sgd") return Rule::sgd;
    if (name == "adagrad") return Rule::adagrad;
    if (name == "adadelta") return Rule::adadelta;
    throw std::invalid_argument("unknown rule " + std::string(name));
}

struct Pace {
    Rule rule;
    double rate;
    double l2;
};

// Parameters and what their rule remembers. adagrad (Duchi et al. 2011): squares = Σg², rate/√squares; adadelta (Zeiler
// 2012): squares and steps = means of g² and of steps², decaying by ρ; rate √(steps + ε)/√(squares + ε).
template <class T>
struct Parameters {
    T *value;
    T *squares;
    T *steps;
    std::size_t size;

    // Whether `squares` and `steps` numbers are what the rule needs to remember.
    bool has_memory(Rule rule, std::size_t n_squares, std::size_t n_steps) const {
        return (rule == Rule::sgd || n_squares >= size) && (rule != Rule::adadelta || n_steps >= size);
    }

    static constexpr double rho = 0.95, epsilon = 1e-6;

    template <Rule rule, class Access>
    double rate(std::size_t i, double rate) const {
        if constexpr (rule == Rule::sgd) return rate;
        if constexpr (rule == Rule::adagrad) return rate / std::sqrt(static_cast<double>(Access::load(squares[i])));
        return rate * std::sqrt((Access::load(steps[i]) + epsilon) / (Access::load(squares[i]) + epsilon));
    }

    template <Rule rule, class Access>
    void descend(std::size_t i, double gradient, double rate) const {
        double step = rate * gradient;
        if constexpr (rule == Rule::adagrad) {
            const double sum = Access::load(squares[i]) + gradient * gradient;
            Access::store(squares[i], static_cast<T>(sum));
            step /= std::sqrt(sum);
        }
        if constexpr (rule == Rule::adadelta) {
            const double mean = rho * Access::load(squares[i]) + (1 - rho) * gradient * gradient;
            const double before = Access::load(steps[i]);
            const double bare = std::sqrt((before + epsilon) / (mean + epsilon)) * gradient;
            Access::store(squares[i], static_cast<T>(mean));
            Access::store(steps[i], static_cast<T>(rho * before + (1 - rho) * bare * bare));
            step = rate * bare;
        }
        Access::store(value[i], static_cast<T>(Access::load(value[i]) - step));
    }

    // The implicit step on draws · l2/2 · ‖value‖², stable whatever the rate.
    template <Rule rule, class Access>
    void shrink(double draws, const Pace &pace) const {
        for (std::size_t i = 0; i < size; ++i) {
            const T now = Access::load(value[i]);
            Access::store(value[i], static_cast<T>(now / (1.0 + rate<rule, Access>(i, pace.rate) * pace.l2 * draws)));
        }
    }
};

// Calls body with the rule as a constant.
template <class Body>
void with_rule(Rule rule, Body body) {
    switch (rule) {
        case Rule::sgd: return body.template operator()<Rule::sgd>();
        case Rule::adagrad: return body.template operator()<Rule::adagrad>();
        case Rule::adadelta: return body.template operator()<Rule::adadelta>();
    }
}

}  // namespace apsvm::warp
