// WARP for item factors from lists of liked items.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "warp/parameters.hpp"
#include "warp/rank_loss.hpp"
#include "warp/workers.hpp"

namespace apsvm::warp {

// The parameters are U (n, K), V (n, K) and b (n), one after the other; of a
// user who likes D, the score of item y for the one who likes the rest of D is
//
//   s_y = b_y + V_y · h,     h = 1/|D∖y| Σ_{i ∈ D∖y} U_i
//
// One visit to a user takes every liked item in turn as the positive, with h made of the others: V and b move at once,
// the U_i once at the end, so that a visit costs O(|D| K) beside its trials.
//
// What it is made of must outlive it.
class Items {
public:
    // Throws std::invalid_argument where there are not (2K + 1) n parameters.
    Items(const Parameters<float> &parameters, std::size_t items, std::size_t factors, const Descent &descent);

    // Visits the users in turn: user u likes indices[indptr[u]] … indices[indptr[u + 1] − 1]. Throws
    // std::invalid_argument for lists that are no CSR matrix of these items, with sorted rows.
    template <class Index>
    Counts run(std::span<const Index> indptr, std::span<const Index> indices, std::span<const std::int64_t> users);

    void settle();

private:
    // A visit costs K times as much and more.
    template <class Index>
    void check_list(std::span<const Index> indptr, std::span<const Index> indices, std::int64_t user) const;

    struct Room {
        std::vector<float> sum;      // Σ U_i, h, and the gradient for all of the user's U_i
        std::vector<float> own;      // for each liked item, what it must not get of that gradient
        std::vector<float> outputs;  // where V and b are shared: this thread's copy, for the trials
        std::size_t age = 0;         // draws since it was made
    };

    static double dot(const float *h, const float *v, std::size_t n);

    // The r-th item, from 0, that is not among `liked`, sorted.
    template <class Index>
    static std::int64_t other_item(const Index *liked, std::size_t n, std::int64_t r);

    template <class Access, class Index>
    void visit(const Index *liked, std::size_t n, Worker &worker, Counts &counts);

    // V and b for the trials. Atomic loads come one at a time, which would make a trial among shared factors several
    // times as slow: a thread has a copy, in which its own steps are seen at once and the others' now and then.
    template <class Access>
    const float *outputs(const Parameters<float> &all, Room &room, std::size_t draws) const;

    void copy_output(const Parameters<float> &all, Room &room, std::size_t item) const;

    template <class Access>
    void move(const Parameters<float> &all, std::size_t item, std::size_t other, double weight, const float *h,
              float *total, float *own, float share);

    template <class Access>
    void pay(Worker &worker);

    Parameters<float> parameters_;
    std::size_t items_, factors_;
    RankLoss loss_;
    Pace pace_;
    std::int64_t instalment_;
    std::vector<Worker> workers_;
    std::vector<Room> rooms_;
};

}  // namespace apsvm::warp
