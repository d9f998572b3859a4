// WARP (Weston, Bengio, Usunier 2010): stochastic steps on a rank-weighted pairwise hinge.
//
//   draw a positive i; draw negatives uniformly with replacement until 1 − s_i + s_j > 0, say at the t-th, t ≤ T
//   θ ← θ − rate · L̂(t) · ∇(1 − s_i + s_j),      L(r) = τ_1 + … + τ_r,   r = #negatives with 1 − s_i + s_j > 0
//
// L̂ is read off the trials (plugin: L(⌊N/t⌋); log-unbiased: see RankLoss) or off r itself (exact: all N are scored and
// the violator is drawn from among them). A trial costs one dot product, a step one pass over the rows it moves. The L2
// penalty is paid in instalments, which cost a fraction of the trials.
//
// With one thread the draws come from one generator in one order: the same seed gives the same bits, however the work
// is cut into calls. With more, each has its own, and they share the parameters without locks (Hogwild, Niu et al. 2011):
// loads and stores are relaxed atomics, so that a step may be lost but nothing is undefined, and no two runs agree.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "matrices.hpp"
#include "module.hpp"
#include "threads.hpp"

namespace {

using namespace apsvm;

// xoshiro256++ (Blackman, Vigna 2019), seeded by splitmix64.
class Random {
public:
    explicit Random(std::uint64_t seed) {
        for (std::uint64_t &word : state_) {
            std::uint64_t z = seed += 0x9e3779b97f4a7c15u;
            z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
            z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
            word = z ^ (z >> 31);
        }
    }

    // Uniform on 0..n−1, to within n/2⁶⁴.
    std::int64_t below(std::int64_t n) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::int64_t>((static_cast<Wide>(next()) * static_cast<Wide>(n)) >> 64);
    }

private:
    static std::uint64_t rotated(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

    std::uint64_t next() {
        std::uint64_t *s = state_;
        const std::uint64_t result = rotated(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = rotated(s[3], 45);
        return result;
    }

    std::uint64_t state_[4];
};

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

Rule rule_named(const std::string &name) {
    if (name == "sgd") return Rule::sgd;
    if (name == "adagrad") return Rule::adagrad;
    if (name == "adadelta") return Rule::adadelta;
    throw std::invalid_argument("unknown rule " + name);
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

struct Counts {
    std::int64_t trials = 0;
    std::int64_t updates = 0;
    double loss = 0.0;  // Σ of L̂ · hinge over the steps

    Counts &operator+=(const Counts &other) {
        trials += other.trials;
        updates += other.updates;
        loss += other.loss;
        return *this;
    }
};

double harmonic(std::int64_t n) {
    if (n < 64) {
        double sum = 0.0;
        for (std::int64_t i = n; i > 0; --i) sum += 1.0 / static_cast<double>(i);
        return sum;
    }
    const double x = static_cast<double>(n), square = x * x;
    return std::log(x) + std::numbers::egamma + 0.5 / x - 1.0 / (12.0 * square) + 1.0 / (120.0 * square * square);
}

enum class Estimator { plugin, log_unbiased, exact };

// The search for a violating negative, and the weight of the step it leads to.
//
// log-unbiased serves L(r) = H_r. With p = r/N, t is geometric, and E[ln N − H_{t−1}] = ln r, E[t/N] = 1/r,
// E[t(t+1)/2N²] = 1/r², so that
//     E[ln N + γ − H_{t−1} + t/2N − t(t+1)/24N²] = ln r + γ + 1/2r − 1/12r² = H_r − 1/120r⁴ + …
class RankLoss {
public:
    RankLoss(In<double> loss_of_rank, const std::string &estimator, double scale, std::int64_t max_trials)
        : loss_of_rank_(loss_of_rank), scale_(scale), max_trials_(max_trials) {
        if (estimator == "plugin") estimator_ = Estimator::plugin;
        else if (estimator == "log-unbiased") estimator_ = Estimator::log_unbiased;
        else if (estimator == "exact") estimator_ = Estimator::exact;
        else throw std::invalid_argument("unknown estimator " + estimator);
    }

    struct Found {
        std::int64_t which = -1;
        double hinge = 0.0;
        double weight = 0.0;
    };

    // Among the negatives 0..n−1, n ≥ 1, of which score_of tells the scores.
    template <class ScoreOf>
    Found find(std::int64_t n, double positive, Random &random, Counts &counts, ScoreOf score_of) const {
        Found found = estimator_ == Estimator::exact ? among_all(n, positive, random, counts, score_of)
                                                     : by_trials(n, positive, random, counts, score_of);
        if (found.which >= 0) {
            ++counts.updates;
            counts.loss += found.weight * found.hinge;
        }
        return found;
    }

    double weight_after(std::int64_t n, std::int64_t trials) const {
        if (estimator_ == Estimator::plugin)
            return scale_ * loss_of_rank_.data()[std::max<std::int64_t>(n / trials, 1)];
        const double all = static_cast<double>(n), t = static_cast<double>(trials);
        return scale_ * (std::log(all) + std::numbers::egamma - harmonic(trials - 1) + t / (2.0 * all) -
                         t * (t + 1.0) / (24.0 * all * all));
    }

private:
    template <class ScoreOf>
    Found by_trials(std::int64_t n, double positive, Random &random, Counts &counts, ScoreOf score_of) const {
        const std::int64_t last = max_trials_ > 0 ? max_trials_ : std::min<std::int64_t>(n, 1000);
        for (std::int64_t trial = 1; trial <= last; ++trial) {
            const std::int64_t which = random.below(n);
            const double hinge = 1.0 - positive + score_of(which);
            if (hinge > 0.0) {
                counts.trials += trial;
                return {which, hinge, weight_after(n, trial)};
            }
        }
        counts.trials += last;
        return {};
    }

    template <class ScoreOf>
    Found among_all(std::int64_t n, double positive, Random &random, Counts &counts, ScoreOf score_of) const {
        Found found;
        std::int64_t violators = 0;
        for (std::int64_t which = 0; which < n; ++which) {
            const double hinge = 1.0 - positive + score_of(which);
            // The k-th violator takes the place of the one kept with probability 1/k: each is as likely in the end.
            if (hinge > 0.0 && random.below(++violators) == 0) found = {which, hinge, 0.0};
        }
        counts.trials += n;
        found.weight = scale_ * loss_of_rank_.data()[violators];
        return found;
    }

    In<double> loss_of_rank_;
    double scale_;
    std::int64_t max_trials_;
    Estimator estimator_ = Estimator::plugin;
};

// What one thread keeps from call to call.
struct alignas(128) Worker {
    explicit Worker(std::uint64_t seed) : random(seed) {}
    Random random;
    std::int64_t unpaid = 0;  // draws whose share of the L2 penalty is still to be paid
    std::vector<double> copy;  // of the weights, where they are shared
};

// Cuts 0..n−1 into a stretch a worker; draw<Access>(i, worker, counts).
template <class Draw>
Counts run_all(std::size_t n, std::vector<Worker> &workers, Draw draw) {
    std::vector<Counts> found(workers.size());
    in_threads(workers.size(), workers.size(), [&](std::size_t t) {
        Counts counts;
        for (std::size_t i = n * t / workers.size(); i < n * (t + 1) / workers.size(); ++i) {
            if (workers.size() == 1)
                draw.template operator()<Plain>(i, workers[t], counts);
            else
                draw.template operator()<Relaxed>(i, workers[t], counts);
        }
        found[t] = counts;
    });
    Counts total;
    for (const Counts &counts : found) total += counts;
    return total;
}

std::vector<Worker> make_workers(std::uint64_t seed, std::size_t threads) {
    std::vector<Worker> workers;
    for (std::size_t t = 0; t < threads; ++t) workers.emplace_back(seed + t);
    return workers;
}

nb::tuple as_tuple(const Counts &counts) { return nb::make_tuple(counts.trials, counts.updates, counts.loss); }

// step(column, x_b − x_a) for every column where row b differs from row a; CSR rows are sorted.
template <class Value, class Index, class Step>
void each_difference(const Csr<Value, Index> &X, std::size_t a, std::size_t b, Step step) {
    Index i = X.indptr[a], j = X.indptr[b];
    const Index end_i = X.indptr[a + 1], end_j = X.indptr[b + 1];
    while (i < end_i && j < end_j) {
        const Index column_i = X.indices[i], column_j = X.indices[j];
        if (column_i < column_j) {
            step(column_i, -static_cast<double>(X.values[i++]));
        } else if (column_j < column_i) {
            step(column_j, static_cast<double>(X.values[j++]));
        } else {
            step(column_i, static_cast<double>(X.values[j++]) - static_cast<double>(X.values[i++]));
        }
    }
    for (; i < end_i; ++i) step(X.indices[i], -static_cast<double>(X.values[i]));
    for (; j < end_j; ++j) step(X.indices[j], static_cast<double>(X.values[j]));
}

template <class Value, class Step>
void each_difference(const Dense<Value> &X, std::size_t a, std::size_t b, Step step) {
    const Value *x = X.values + a * X.n_columns, *y = X.values + b * X.n_columns;
    for (std::size_t at = 0; at < X.n_columns; ++at)
        step(at, static_cast<double>(y[at]) - static_cast<double>(x[at]));
}

// A linear ranker over rows: the negatives of positive p are members[starts[p]] … members[starts[p] + counts[p] − 1].
class WarpRows {
public:
    WarpRows(Out<double> w, Out<double> squares, Out<double> steps, In<std::int64_t> positives,
             In<std::int64_t> starts, In<std::int64_t> counts, In<std::int64_t> members, In<double> loss_of_rank,
             const std::string &estimator, double scale, std::int64_t max_trials, const std::string &rule, double rate,
             double l2, std::int64_t instalment, std::uint64_t seed, std::size_t threads)
        : w_(w), squares_(squares), steps_(steps), positives_(positives), starts_(starts), counts_(counts),
          members_(members), loss_(loss_of_rank, estimator, scale, max_trials), pace_{rule_named(rule), rate, l2},
          instalment_(instalment), workers_(make_workers(seed, threads)) {}

    template <class Matrix>
    Counts run(const Matrix &X, const std::int64_t *order, std::size_t n) {
        return run_all(n, workers_, [&]<class Access>(std::size_t i, Worker &worker, Counts &counts) {
            draw<Access>(X, order[i], worker, counts);
        });
    }

    void settle() {
        for (Worker &worker : workers_) pay<Plain>(worker);
    }

private:
    Parameters<double> parameters() { return {w_.data(), squares_.data(), steps_.data(), w_.size()}; }

    template <class Access, class Matrix>
    void draw(const Matrix &X, std::int64_t p, Worker &worker, Counts &counts) {
        const View<Access, double> w{w_.data()};
        RankLoss::Found found;
        if constexpr (Matrix::dense && std::is_same_v<Access, Relaxed>) {
            // Atomic loads come one at a time: a copy made by one pass of them is what dot products can take in pairs.
            worker.copy.resize(w_.size());
            for (std::size_t i = 0; i < worker.copy.size(); ++i) worker.copy[i] = w[i];
            found = search(X, p, View<Plain, double>{worker.copy.data()}, worker, counts);
        } else {
            found = search(X, p, w, worker, counts);
        }
        if (found.which >= 0) {
            const auto positive = static_cast<std::size_t>(positives_.data()[p]);
            const auto negative = static_cast<std::size_t>(members_.data()[starts_.data()[p] + found.which]);
            const Parameters<double> all = parameters();
            with_rule(pace_.rule, [&]<Rule rule>() {
                each_difference(X, positive, negative, [&](std::size_t column, double difference) {
                    const double gradient = found.weight * difference;
                    if (gradient != 0.0) all.template descend<rule, Access>(column, gradient, pace_.rate);
                });
            });
        }
        if (pace_.l2 > 0.0 && ++worker.unpaid >= instalment_) pay<Access>(worker);
    }

    template <class Matrix, class Weights>
    RankLoss::Found search(const Matrix &X, std::int64_t p, Weights w, Worker &worker, Counts &counts) const {
        const std::int64_t *negatives = members_.data() + starts_.data()[p];
        const double positive = X.dot(static_cast<std::size_t>(positives_.data()[p]), w);
        return loss_.find(counts_.data()[p], positive, worker.random, counts,
                          [&](std::int64_t j) { return X.dot(static_cast<std::size_t>(negatives[j]), w); });
    }

    template <class Access>
    void pay(Worker &worker) {
        const Parameters<double> all = parameters();
        const auto draws = static_cast<double>(worker.unpaid);
        worker.unpaid = 0;
        if (draws > 0) with_rule(pace_.rule, [&]<Rule rule>() { all.template shrink<rule, Access>(draws, pace_); });
    }

    Out<double> w_, squares_, steps_;
    In<std::int64_t> positives_, starts_, counts_, members_;
    RankLoss loss_;
    Pace pace_;
    std::int64_t instalment_;
    std::vector<Worker> workers_;
};

// Item factors from lists of liked items. The parameters are U (n, K), V (n, K) and b (n), one after the other; of a
// user who likes D, the score of item y for the one who likes the rest of D is
//
//   s_y = b_y + V_y · h,     h = 1/|D∖y| Σ_{i ∈ D∖y} U_i
//
// One visit to a user takes every liked item in turn as the positive, with h made of the others: V and b move at once,
// the U_i once at the end, so that a visit costs O(|D| K) beside its trials.
class WarpItems {
public:
    WarpItems(Out<float> parameters, Out<float> squares, Out<float> steps, std::size_t items, std::size_t factors,
              In<double> loss_of_rank, const std::string &estimator, double scale, std::int64_t max_trials,
              const std::string &rule, double rate, double l2, std::int64_t instalment, std::uint64_t seed,
              std::size_t threads)
        : parameters_(parameters), squares_(squares), steps_(steps), items_(items), factors_(factors),
          loss_(loss_of_rank, estimator, scale, max_trials), pace_{rule_named(rule), rate, l2},
          instalment_(instalment), workers_(make_workers(seed, threads)), rooms_(threads) {}

    template <class Index>
    Counts run(const Index *indptr, const Index *indices, const std::int64_t *users, std::size_t n) {
        for (Room &room : rooms_) room.sum.resize(3 * factors_);
        return run_all(n, workers_, [&]<class Access>(std::size_t i, Worker &worker, Counts &counts) {
            const Index *liked = indices + indptr[users[i]];
            visit<Access>(liked, static_cast<std::size_t>(indptr[users[i] + 1] - indptr[users[i]]), worker, counts);
        });
    }

    void settle() {
        for (Worker &worker : workers_) pay<Plain>(worker);
    }

private:
    struct Room {
        std::vector<float> sum;      // Σ U_i, h, and the gradient for all of the user's U_i
        std::vector<float> own;      // for each liked item, what it must not get of that gradient
        std::vector<float> outputs;  // where V and b are shared: this thread's copy, for the trials
        std::size_t age = 0;         // draws since it was made
    };

    Parameters<float> parameters() {
        return {parameters_.data(), squares_.data(), steps_.data(), parameters_.size()};
    }

    static double dot(const float *h, const float *v, std::size_t n) {
        float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        std::size_t at = 0;
        for (; at + 8 <= n; at += 8)
            for (int lane = 0; lane < 8; ++lane) sum[lane] += h[at + lane] * v[at + lane];
        for (; at < n; ++at) sum[0] += h[at] * v[at];
        return static_cast<double>(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
    }

    // The r-th item, from 0, that is not among `liked`, sorted.
    template <class Index>
    static std::int64_t other_item(const Index *liked, std::size_t n, std::int64_t r) {
        // liked[m] − m items that are not liked stand before liked[m].
        std::size_t low = 0, high = n;
        while (low < high) {
            const std::size_t middle = (low + high) / 2;
            if (static_cast<std::int64_t>(liked[middle]) - static_cast<std::int64_t>(middle) <= r)
                low = middle + 1;
            else
                high = middle;
        }
        return r + static_cast<std::int64_t>(low);
    }

    template <class Access, class Index>
    void visit(const Index *liked, std::size_t n, Worker &worker, Counts &counts) {
        const auto others = static_cast<std::int64_t>(items_ - n);
        if (n < 2 || others < 1) return;
        const std::size_t K = factors_, second = items_ * K;
        const Parameters<float> all = parameters();
        Room &room = rooms_[static_cast<std::size_t>(&worker - workers_.data())];
        const View<Access, float> U{all.value};
        const float *const V = outputs<Access>(all, room, n), *const b = V + second;
        float *const sum = room.sum.data(), *const h = sum + K, *const total = h + K;
        room.own.assign(n * K, 0.0f);
        std::fill(sum, sum + 3 * K, 0.0f);
        for (std::size_t m = 0; m < n; ++m)
            for (std::size_t k = 0; k < K; ++k) sum[k] += U[liked[m] * K + k];
        const float share = 1.0f / static_cast<float>(n - 1);
        const std::int64_t updates = counts.updates;
        for (std::size_t m = 0; m < n; ++m) {
            const auto item = static_cast<std::size_t>(liked[m]);
            for (std::size_t k = 0; k < K; ++k) h[k] = share * (sum[k] - U[item * K + k]);
            const double score = b[item] + dot(h, V + item * K, K);
            const RankLoss::Found found = loss_.find(others, score, worker.random, counts, [&](std::int64_t r) {
                const auto other = static_cast<std::size_t>(other_item(liked, n, r));
                return b[other] + dot(h, V + other * K, K);
            });
            if (found.which < 0) continue;
            const auto other = static_cast<std::size_t>(other_item(liked, n, found.which));
            move<Access>(all, item, other, found.weight, h, total, room.own.data() + m * K, share);
            if constexpr (std::is_same_v<Access, Relaxed>) {
                copy_output(all, room, item);
                copy_output(all, room, other);
            }
        }
        if (counts.updates > updates) {
            with_rule(pace_.rule, [&]<Rule rule>() {
                for (std::size_t m = 0; m < n; ++m)
                    for (std::size_t k = 0; k < K; ++k) {
                        const double gradient = total[k] - room.own[m * K + k];
                        all.template descend<rule, Access>(liked[m] * K + k, gradient, pace_.rate);
                    }
            });
        }
        worker.unpaid += static_cast<std::int64_t>(n);
        if (pace_.l2 > 0.0 && worker.unpaid >= instalment_) pay<Access>(worker);
    }

    // V and b for the trials. Atomic loads come one at a time, which would make a trial among shared factors several
    // times as slow: a thread has a copy, in which its own steps are seen at once and the others' now and then.
    template <class Access>
    const float *outputs(const Parameters<float> &all, Room &room, std::size_t draws) const {
        if constexpr (std::is_same_v<Access, Plain>) return all.value + items_ * factors_;
        if (room.outputs.empty() || room.age >= items_) {
            room.outputs.resize(items_ * (factors_ + 1));
            for (std::size_t item = 0; item < items_; ++item) copy_output(all, room, item);
            room.age = 0;
        }
        room.age += draws;
        return room.outputs.data();
    }

    void copy_output(const Parameters<float> &all, Room &room, std::size_t item) const {
        const std::size_t K = factors_, second = items_ * K;
        for (std::size_t k = 0; k < K; ++k)
            room.outputs[item * K + k] = Relaxed::load(all.value[second + item * K + k]);
        room.outputs[second + item] = Relaxed::load(all.value[2 * second + item]);
    }

    template <class Access>
    void move(const Parameters<float> &all, std::size_t item, std::size_t other, double weight, const float *h,
              float *total, float *own, float share) {
        const std::size_t K = factors_, second = items_ * K, biases = 2 * second;
        const std::size_t to = second + item * K, from = second + other * K;
        with_rule(pace_.rule, [&]<Rule rule>() {
            for (std::size_t k = 0; k < K; ++k) {
                own[k] = static_cast<float>(weight) * share *
                         (Access::load(all.value[from + k]) - Access::load(all.value[to + k]));
                total[k] += own[k];
                all.template descend<rule, Access>(to + k, -weight * h[k], pace_.rate);
                all.template descend<rule, Access>(from + k, weight * h[k], pace_.rate);
            }
            all.template descend<rule, Access>(biases + item, -weight, pace_.rate);
            all.template descend<rule, Access>(biases + other, weight, pace_.rate);
        });
    }

    template <class Access>
    void pay(Worker &worker) {
        const Parameters<float> all = parameters();
        const auto draws = static_cast<double>(worker.unpaid);
        worker.unpaid = 0;
        if (draws > 0 && pace_.l2 > 0.0)
            with_rule(pace_.rule, [&]<Rule rule>() { all.template shrink<rule, Access>(draws, pace_); });
    }

    Out<float> parameters_, squares_, steps_;
    std::size_t items_, factors_;
    RankLoss loss_;
    Pace pace_;
    std::int64_t instalment_;
    std::vector<Worker> workers_;
    std::vector<Room> rooms_;
};

template <class Value, class Index>
void bind_csr(nb::class_<WarpRows> &c) {
    c.def("run_csr", [](WarpRows &self, In<Index> indptr, In<Index> indices, In<Value> values, In<std::int64_t> order) {
        Counts counts;
        {
            nb::gil_scoped_release unlocked;
            // No kernel here asks for the number of columns of a CSR matrix.
            counts = self.run(Csr<Value, Index>{indptr.data(), indices.data(), values.data(), 0}, order.data(),
                              order.size());
        }
        return as_tuple(counts);
    });
}

template <class Value>
void bind_dense(nb::class_<WarpRows> &c) {
    c.def("run_dense", [](WarpRows &self, In2<Value> X, In<std::int64_t> order) {
        Counts counts;
        {
            nb::gil_scoped_release unlocked;
            counts = self.run(Dense<Value>{X.data(), X.shape(1)}, order.data(), order.size());
        }
        return as_tuple(counts);
    });
}

template <class Index>
void bind_items(nb::class_<WarpItems> &c) {
    c.def("run", [](WarpItems &self, In<Index> indptr, In<Index> indices, In<std::int64_t> users) {
        Counts counts;
        {
            nb::gil_scoped_release unlocked;
            counts = self.run(indptr.data(), indices.data(), users.data(), users.size());
        }
        return as_tuple(counts);
    });
}

}  // namespace

void bind_warp(nb::module_ &m) {
    nb::class_<WarpRows> rows(m, "WarpRows");
    rows.def(nb::init<Out<double>, Out<double>, Out<double>, In<std::int64_t>, In<std::int64_t>, In<std::int64_t>,
                      In<std::int64_t>, In<double>, const std::string &, double, std::int64_t, const std::string &,
                      double, double, std::int64_t, std::uint64_t, std::size_t>())
        .def("settle", &WarpRows::settle, nb::call_guard<nb::gil_scoped_release>());
    bind_csr<double, std::int32_t>(rows);
    bind_csr<double, std::int64_t>(rows);
    bind_csr<float, std::int32_t>(rows);
    bind_csr<float, std::int64_t>(rows);
    bind_dense<double>(rows);
    bind_dense<float>(rows);

    nb::class_<WarpItems> items(m, "WarpItems");
    items
        .def(nb::init<Out<float>, Out<float>, Out<float>, std::size_t, std::size_t, In<double>, const std::string &,
                      double, std::int64_t, const std::string &, double, double, std::int64_t, std::uint64_t,
                      std::size_t>())
        .def("settle", &WarpItems::settle, nb::call_guard<nb::gil_scoped_release>());
    bind_items<std::int32_t>(items);
    bind_items<std::int64_t>(items);

    m.def("warp_weight", [](In<double> loss_of_rank, const std::string &estimator, std::int64_t n_neg,
                            In<std::int64_t> trials) {
        const RankLoss loss(loss_of_rank, estimator, 1.0, 0);
        std::vector<double> weights(trials.size());
        for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = loss.weight_after(n_neg, trials.data()[i]);
        return to_numpy(std::move(weights));
    });
}
