// Many queries solved together: the bookkeeping of the oracles, whatever they solve.
//
// The rows of a query stand together in the scores. Several tasks may share their rows, as the levels of a graded loss
// do; their sum counts. Queries are shared out among threads and their answers added up in the order of the queries, so
// one thread and many give the same bits.
//
// `Solver` says what a task is and how it is solved:
//
//     struct Task;                   what the tasks of a query differ in, with what is kept of it from call to call
//     struct Workspace;              the memory of one thread, kept from task to task
//     static constexpr bool kSharesTask;   whether several threads can work on one task
//     Answer solve(Task &, const double *scores, double *weights, Workspace &, std::size_t threads) const;
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "oracles/inference.hpp"
#include "support/require.hpp"
#include "support/threads.hpp"

namespace apsvm {

template <class Solver>
class Batch {
public:
    using Task = typename Solver::Task;

    // Adds a task of the rows [first, first + rows), to count `coefficient` times. Tasks of the same rows come one
    // after another, queries in the order of their rows.
    void add(std::size_t first, std::size_t rows, double coefficient, Task task) {
        if (queries_.empty() || queries_.back().first != first) {
            require(first >= end(), "expected tasks in the order of their rows, and queries that share no row");
            queries_.push_back({first, rows, tasks_.size(), tasks_.size()});
            answers_.emplace_back();
            rows_ += rows;
            largest_ = std::max(largest_, rows);
        }
        require(queries_.back().rows == rows, "expected tasks that begin at the same row to have the same rows");
        tasks_.push_back({task, coefficient});
        queries_.back().end = tasks_.size();
    }

    // Rows that the scores and the weights must hold: up to the last query's last.
    std::size_t end() const { return queries_.empty() ? 0 : queries_.back().first + queries_.back().rows; }

    // The sum of all answers; fills the queries' row weights.
    Answer solve(const Solver &solver, const double *scores, double *weights, std::size_t threads) {
        return sum_over_queries(threads, [&](const Query &query, Memory &memory, std::size_t of_query) {
            return solve_query(solver, query, scores + query.first, weights + query.first, memory, of_query);
        });
    }

    // The same for a solver that can subtract the row weights of a task from those there are.
    Answer subtract(const Solver &solver, const double *scores, double *weights, std::size_t threads) {
        return sum_over_queries(threads, [&](const Query &query, Memory &memory, std::size_t of_query) {
            const double *const s = scores + query.first;
            double *const c = weights + query.first;
            if (query.end - query.begin > 1) {
                if (memory.sum.size() < query.rows) memory.sum.resize(query.rows);
                const Answer answer = solve_query(solver, query, s, memory.sum.data(), memory, of_query);
                for (std::size_t i = 0; i < query.rows; ++i) c[i] -= memory.sum[i];
                return answer;
            }
            auto &[task, coefficient] = tasks_[query.begin];
            Answer answer;
            answer.add(solver.subtract(task, coefficient, s, c, memory.workspace, of_query), coefficient);
            return answer;
        });
    }

private:
    struct CountedTask {
        Task task;
        double coefficient;
    };
    struct Query {
        std::size_t first, rows;
        std::size_t begin, end;  // of its tasks
    };
    struct Memory {
        typename Solver::Workspace workspace;
        std::vector<double> weights;  // of a task that is not the first of its query
        std::vector<double> sum;      // of a query's tasks, to be subtracted
    };

    void resize_memory(std::size_t threads) {
        if (memory_.size() < threads) memory_.resize(threads);
    }

    // The sum of what body(query, memory, threads of the query) answers.
    template <class Body>
    Answer sum_over_queries(std::size_t threads, Body body) {
        // A query that is most of the data has all threads to itself.
        if (Solver::kSharesTask && 2 * largest_ > rows_) {
            resize_memory(1);
            for (std::size_t q = 0; q < queries_.size(); ++q) answers_[q] = body(queries_[q], memory_[0], threads);
        } else {
            // Below this many rows a thread costs more than it saves.
            constexpr std::size_t rows_per_thread = 1u << 13;
            threads = std::clamp<std::size_t>(rows_ / rows_per_thread, 1, threads);
            resize_memory(threads);
            in_runs(queries_.size(), threads,
                    [&](std::size_t q, std::size_t t) { answers_[q] = body(queries_[q], memory_[t], 1); });
        }
        Answer total;
        for (const Answer &answer : answers_) total.add(answer, 1.0);
        return total;
    }

    // The sum of the query's tasks by their coefficients; `s` and `c`: its scores and row weights.
    Answer solve_query(const Solver &solver, const Query &query, const double *s, double *c, Memory &memory,
                       std::size_t threads) {
        Answer total;
        for (std::size_t t = query.begin; t < query.end; ++t) {
            auto &[task, coefficient] = tasks_[t];
            const bool is_first = t == query.begin;
            if (!is_first && memory.weights.size() < query.rows) memory.weights.resize(query.rows);
            double *const of_task = is_first ? c : memory.weights.data();
            total.add(solver.solve(task, s, of_task, memory.workspace, threads), coefficient);
            if (!is_first)
                for (std::size_t i = 0; i < query.rows; ++i) c[i] += coefficient * of_task[i];
            else if (coefficient != 1.0)
                for (std::size_t i = 0; i < query.rows; ++i) c[i] *= coefficient;
        }
        return total;
    }

    std::vector<CountedTask> tasks_;
    std::vector<Query> queries_;
    std::vector<Answer> answers_;
    std::vector<Memory> memory_;
    std::size_t rows_ = 0, largest_ = 0;
};

}  // namespace apsvm
