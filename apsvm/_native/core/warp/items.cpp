#include "warp/items.hpp"

#include <algorithm>
#include <type_traits>

#include "support/require.hpp"

namespace apsvm::warp {

Items::Items(const Parameters<float> &parameters, std::size_t items, std::size_t factors, const Descent &descent)
    : parameters_(parameters),
      items_(items),
      factors_(factors),
      loss_(descent.loss),
      pace_(descent.pace),
      instalment_(descent.instalment),
      workers_(make_workers(descent.seed, descent.threads)),
      rooms_(descent.threads) {
    constexpr std::size_t most = std::size_t{1} << 31;
    require(items < most && factors < most && parameters.size == items * (2 * factors + 1),
            "expected 2K + 1 parameters for each item");
}

template <class Index>
Counts Items::run(std::span<const Index> indptr, std::span<const Index> indices, std::span<const std::int64_t> users) {
    for (const std::int64_t user : users) check_list(indptr, indices, user);
    for (Room &room : rooms_) room.sum.resize(3 * factors_);
    return run_all(users.size(), workers_, [&]<class Access>(std::size_t i, Worker &worker, Counts &counts) {
        const Index *liked = indices.data() + indptr[users[i]];
        visit<Access>(liked, static_cast<std::size_t>(indptr[users[i] + 1] - indptr[users[i]]), worker, counts);
    });
}

void Items::settle() {
    for (Worker &worker : workers_) pay<Plain>(worker);
}

template <class Index>
void Items::check_list(std::span<const Index> indptr, std::span<const Index> indices, std::int64_t user) const {
    require(0 <= user && user < static_cast<std::int64_t>(indptr.size()) - 1, "expected users who have a list");
    const auto begin = static_cast<std::int64_t>(indptr[user]), end = static_cast<std::int64_t>(indptr[user + 1]);
    require(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(indices.size()),
            "expected the lists one after another");
    std::int64_t before = -1;
    for (std::int64_t at = begin; at < end; ++at) {
        const auto item = static_cast<std::int64_t>(indices[at]);
        require(before < item && item < static_cast<std::int64_t>(items_),
                "expected lists of items in ascending order, each of them one that has factors");
        before = item;
    }
    const std::int64_t liked = end - begin, others = static_cast<std::int64_t>(items_) - liked;
    require(liked < 2 || others <= loss_.most_negatives(), "expected a loss for each rank that an item may have");
}

double Items::dot(const float *h, const float *v, std::size_t n) {
    float sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    std::size_t at = 0;
    for (; at + 8 <= n; at += 8)
        for (int lane = 0; lane < 8; ++lane) sum[lane] += h[at + lane] * v[at + lane];
    for (; at < n; ++at) sum[0] += h[at] * v[at];
    return static_cast<double>(((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])));
}

template <class Index>
std::int64_t Items::other_item(const Index *liked, std::size_t n, std::int64_t r) {
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
void Items::visit(const Index *liked, std::size_t n, Worker &worker, Counts &counts) {
    const auto others = static_cast<std::int64_t>(items_ - n);
    if (n < 2 || others < 1) return;
    const std::size_t K = factors_, second = items_ * K;
    const Parameters<float> &all = parameters_;
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
        const auto score_of = [&](const std::int64_t *r, std::size_t, double *out) {
            const auto other = static_cast<std::size_t>(other_item(liked, n, *r));
            *out = b[other] + dot(h, V + other * K, K);
        };
        const RankLoss::Found found =
            loss_.find<1>(others, score, worker.random, counts, score_of, [](std::int64_t) {});
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

template <class Access>
const float *Items::outputs(const Parameters<float> &all, Room &room, std::size_t draws) const {
    if constexpr (std::is_same_v<Access, Plain>) return all.value + items_ * factors_;
    if (room.outputs.empty() || room.age >= items_) {
        room.outputs.resize(items_ * (factors_ + 1));
        for (std::size_t item = 0; item < items_; ++item) copy_output(all, room, item);
        room.age = 0;
    }
    room.age += draws;
    return room.outputs.data();
}

void Items::copy_output(const Parameters<float> &all, Room &room, std::size_t item) const {
    const std::size_t K = factors_, second = items_ * K;
    for (std::size_t k = 0; k < K; ++k) room.outputs[item * K + k] = Relaxed::load(all.value[second + item * K + k]);
    room.outputs[second + item] = Relaxed::load(all.value[2 * second + item]);
}

template <class Access>
void Items::move(const Parameters<float> &all, std::size_t item, std::size_t other, double weight, const float *h,
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
void Items::pay(Worker &worker) {
    const Parameters<float> &all = parameters_;
    const auto draws = static_cast<double>(worker.unpaid);
    worker.unpaid = 0;
    if (draws > 0 && pace_.l2 > 0.0)
        with_rule(pace_.rule, [&]<Rule rule>() { all.template shrink<rule, Access>(draws, pace_); });
}

template Counts Items::run(std::span<const std::int32_t>, std::span<const std::int32_t>, std::span<const std::int64_t>);
template Counts Items::run(std::span<const std::int64_t>, std::span<const std::int64_t>, std::span<const std::int64_t>);

}  // namespace apsvm::warp
