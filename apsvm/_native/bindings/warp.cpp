// WARP's loops, and the arrays that they work in.
#include "module.hpp"

#include <nanobind/stl/string.h>

#include "warp/items.hpp"
#include "warp/rows.hpp"
#include "arrays.hpp"
#include "csr.hpp"
#include "turn.hpp"

namespace {

using namespace apsvm;
using warp::Counts;

nb::tuple as_tuple(const Counts &counts) { return nb::make_tuple(counts.trials, counts.updates, counts.loss); }

template <class T>
warp::Parameters<T> parameters_of(const Out<T> &values, const Out<T> &squares, const Out<T> &steps, warp::Rule rule) {
    const warp::Parameters<T> parameters{values.data(), squares.data(), steps.data(), values.size()};
    if (!parameters.has_memory(rule, squares.size(), steps.size()))
        throw std::invalid_argument("expected as many numbers that the rule remembers as there are parameters");
    return parameters;
}

warp::Descent descent_of(const In<double> &loss_of_rank, const std::string &estimator, double scale,
                         std::int64_t max_trials, warp::Rule rule, double rate, double l2, std::int64_t instalment,
                         std::uint64_t seed, std::size_t threads) {
    expect_threads(threads);
    return {warp::RankLoss(span_of(loss_of_rank), estimator, scale, max_trials),
            {rule, rate, l2},
            instalment,
            seed,
            threads};
}

// The loop over rows, with the arrays that it reads and writes.
class WarpRows {
public:
    WarpRows(Out<double> w, Out<double> squares, Out<double> steps, In<std::int64_t> positives, In<std::int64_t> starts,
             In<std::int64_t> counts, In<std::int64_t> members, In<double> loss_of_rank, const std::string &estimator,
             double scale, std::int64_t max_trials, const std::string &rule, double rate, double l2,
             std::int64_t instalment, std::uint64_t seed, std::size_t threads)
        : loop_(parameters_of(w, squares, steps, warp::rule_named(rule)),
                {span_of(positives), span_of(starts), span_of(counts), span_of(members)},
                descent_of(loss_of_rank, estimator, scale, max_trials, warp::rule_named(rule), rate, l2, instalment,
                           seed, threads)),
          written_{w, squares, steps},
          read_{positives, starts, counts, members},
          loss_of_rank_(loss_of_rank) {}

    nb::tuple run_csr(const CsrMatrix &X, In<std::int64_t> order) {
        expect_size(X.n_columns(), loop_.n_columns(), "columns, as there are weights");
        if (!X.ascending()) throw std::invalid_argument("expected columns that ascend in each row");
        return X.with([&](const auto &matrix) { return run(matrix, X.n_rows(), order); });
    }

    template <class Value>
    nb::tuple run_dense(In2<Value> X, In<std::int64_t> order) {
        expect_size(X.shape(1), loop_.n_columns(), "columns, as there are weights");
        return run(Dense<Value>{X.data(), X.shape(1)}, X.shape(0), order);
    }

    void settle() {
        const Turn turn(mutex_);
        nb::gil_scoped_release unlocked;
        loop_.settle();
    }

private:
    template <class Matrix>
    nb::tuple run(const Matrix &X, std::size_t n_rows, const In<std::int64_t> &order) {
        const Turn turn(mutex_);
        Counts counts;
        {
            nb::gil_scoped_release unlocked;
            counts = loop_.run(X, n_rows, span_of(order));
        }
        return as_tuple(counts);
    }

    warp::Rows loop_;
    Out<double> written_[3];
    In<std::int64_t> read_[4];
    In<double> loss_of_rank_;
    std::mutex mutex_;
};

// The loop over users' lists, with the arrays that it reads and writes.
class WarpItems {
public:
    WarpItems(Out<float> parameters, Out<float> squares, Out<float> steps, std::size_t items, std::size_t factors,
              In<double> loss_of_rank, const std::string &estimator, double scale, std::int64_t max_trials,
              const std::string &rule, double rate, double l2, std::int64_t instalment, std::uint64_t seed,
              std::size_t threads)
        : loop_(parameters_of(parameters, squares, steps, warp::rule_named(rule)), items, factors,
                descent_of(loss_of_rank, estimator, scale, max_trials, warp::rule_named(rule), rate, l2, instalment,
                           seed, threads)),
          written_{parameters, squares, steps},
          loss_of_rank_(loss_of_rank) {}

    template <class Index>
    nb::tuple run(In<Index> indptr, In<Index> indices, In<std::int64_t> users) {
        const Turn turn(mutex_);
        Counts counts;
        {
            nb::gil_scoped_release unlocked;
            counts = loop_.run(span_of(indptr), span_of(indices), span_of(users));
        }
        return as_tuple(counts);
    }

    void settle() {
        const Turn turn(mutex_);
        nb::gil_scoped_release unlocked;
        loop_.settle();
    }

private:
    warp::Items loop_;
    Out<float> written_[3];
    In<double> loss_of_rank_;
    std::mutex mutex_;
};

}  // namespace

void bind_warp(nb::module_ &m) {
    nb::class_<WarpRows>(m, "WarpRows")
        .def(nb::init<Out<double>, Out<double>, Out<double>, In<std::int64_t>, In<std::int64_t>, In<std::int64_t>,
                      In<std::int64_t>, In<double>, const std::string &, double, std::int64_t, const std::string &,
                      double, double, std::int64_t, std::uint64_t, std::size_t>())
        .def("run_csr", &WarpRows::run_csr)
        .def("run_dense", &WarpRows::run_dense<double>)
        .def("run_dense", &WarpRows::run_dense<float>)
        .def("settle", &WarpRows::settle);

    nb::class_<WarpItems>(m, "WarpItems")
        .def(nb::init<Out<float>, Out<float>, Out<float>, std::size_t, std::size_t, In<double>, const std::string &,
                      double, std::int64_t, const std::string &, double, double, std::int64_t, std::uint64_t,
                      std::size_t>())
        .def("run", &WarpItems::run<std::int32_t>)
        .def("run", &WarpItems::run<std::int64_t>)
        .def("settle", &WarpItems::settle);
}
