// Cells of a table: a number, a word, or nothing, in 64 bits.
//
// A finite double is itself. A missing cell is the quiet NaN of no payload, and word k of its column the quiet NaN of
// payload k + 1, so that a table of numbers is a matrix already and one of words needs no second one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace apsvm::table {

inline constexpr std::uint64_t missing_cell = 0x7ff8'0000'0000'0000;

inline std::uint64_t number_cell(double number) { return std::bit_cast<std::uint64_t>(number); }
inline std::uint64_t word_cell(std::size_t word) { return missing_cell + 1 + word; }

// The words of a column, numbered from 0 as they first appear.
class Dictionary {
public:
    // The number of the word; a new one beyond the most there may be is the number `most`.
    std::size_t number_of(std::string_view word, std::size_t most) {
        if (!words_.empty() && word == *words_[last_]) return last_;  // queries stand together
        const auto known = numbers_.find(word);
        if (known != numbers_.end()) return last_ = known->second;
        if (words_.size() >= most) return most;
        const auto [place, is_new] = numbers_.emplace(word, words_.size());
        words_.push_back(&place->first);
        return last_ = words_.size() - 1;
    }

    const std::vector<const std::string *> &words() const { return words_; }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
    };
    std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> numbers_;
    std::vector<const std::string *> words_;  // the map's keys stay where they are
    std::size_t last_ = 0;
};

}  // namespace apsvm::table
