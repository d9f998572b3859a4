#include "rows/walk.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include "support/threads.hpp"

namespace apsvm {

namespace {

// Multiply-adds of a stretch of scores: as many values stay in the second cache.
constexpr std::size_t kWorkInCache = 1u << 14;

// A pass of which a part has been done.
template <class Matrix>
class Begun {
public:
    Begun(const Matrix &X, const Pass &pass, std::size_t threads, bool follows) : out_(pass.out) {
        if (pass.combines)
            done_ = work_.template emplace<Combination<Matrix>>(X, pass.rows, pass.vector, 1, threads, follows).before(0);
        else
            done_ =
                work_.template emplace<Scores<Matrix>>(X, pass.rows, pass.vector, 1, pass.out, kWorkInCache, follows)
                    .before(0);
    }

    std::size_t pieces() const {
        if (const auto *combination = std::get_if<Combination<Matrix>>(&work_)) return combination->pieces();
        return std::get<Scores<Matrix>>(work_).pieces();
    }

    // The pieces up to this one, which follow those done.
    void advance(std::size_t last) {
        if (const auto *scores = std::get_if<Scores<Matrix>>(&work_)) {
            scores->compute(done_, last);
            return;
        }
        auto &combination = std::get<Combination<Matrix>>(work_);
        while (done_.piece < last) {
            const std::size_t end_of_block = combination.first_piece(block_ + 1);
            const std::size_t end = std::min(end_of_block, last);
            combination.add(block_, done_, end);
            block_ += end == end_of_block && block_ + 1 < combination.blocks();
        }
    }

    void finish() {
        if (const auto *combination = std::get_if<Combination<Matrix>>(&work_)) combination->write(out_);
    }

private:
    std::variant<std::monostate, Scores<Matrix>, Combination<Matrix>> work_;
    double *out_;
    Pieces::Cursor done_;
    std::size_t block_ = 0;  // of a combination, the one that the next piece is of
};

}  // namespace

template <class Matrix>
void walk(const Matrix &X, std::span<const Pass> passes, std::size_t threads) {
    std::vector<Begun<Matrix>> begun;
    begun.reserve(passes.size());
    std::size_t stretches = 1;
    // Each thread has some of the passes, and walks for itself.
    const std::size_t walkers = std::min(threads, passes.size());
    for (const Pass &pass : passes) {
        begun.emplace_back(X, pass, threads, begun.size() >= walkers);
        stretches = std::max(stretches, begun.back().pieces());
    }
    in_threads(walkers, walkers, [&](std::size_t t) {
        for (std::size_t stretch = 1; stretch <= stretches; ++stretch)
            for (std::size_t i = t; i < begun.size(); i += walkers)
                begun[i].advance(begun[i].pieces() * stretch / stretches);
        for (std::size_t i = t; i < begun.size(); i += walkers) begun[i].finish();
    });
}

#define APSVM_FOR_MATRIX(...) template void walk(const __VA_ARGS__ &, std::span<const Pass>, std::size_t);
APSVM_FOR_MATRIX(Csr<double, std::int32_t>)
APSVM_FOR_MATRIX(Csr<double, std::int64_t>)
APSVM_FOR_MATRIX(Csr<float, std::int32_t>)
APSVM_FOR_MATRIX(Csr<float, std::int64_t>)
APSVM_FOR_MATRIX(Dense<double>)
APSVM_FOR_MATRIX(Dense<float>)

}  // namespace apsvm
