// Memory that grows while a file is read: neither copied by growing nor held twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace apsvm::svmlight {

// A growable run of trivially copyable items. Large runs are moved by remapping their pages, so growing neither copies
// nor holds the data twice, and the spare capacity is never touched.
class Buffer {
public:
    Buffer() = default;
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer &operator=(Buffer &&other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() { free(); }

    std::size_t bytes() const { return bytes_; }

    template <class T>
    T *as() const {
        return static_cast<T *>(data_);
    }
    template <class T>
    std::size_t size() const {
        return bytes_ / sizeof(T);
    }
    template <class T>
    void set_size(std::size_t n) {
        bytes_ = n * sizeof(T);
    }

    // Room for `extra` more items, so that they may be written behind the last one.
    template <class T>
    void reserve_more(std::size_t extra) {
        if (extra > (std::numeric_limits<std::size_t>::max() / 2 - bytes_) / sizeof(T)) throw std::bad_alloc();
        const std::size_t needed = bytes_ + extra * sizeof(T);
        if (needed > capacity_) reallocate(std::max(needed, capacity_ + capacity_ / 2));
    }

    template <class T>
    void push(T item) {
        reserve_more<T>(1);
        std::memcpy(static_cast<char *>(data_) + bytes_, &item, sizeof(T));
        bytes_ += sizeof(T);
    }

    void append(const char *begin, const char *end) {
        const auto n = static_cast<std::size_t>(end - begin);
        if (n == 0) return;
        reserve_more<char>(n);
        std::memcpy(static_cast<char *>(data_) + bytes_, begin, n);
        bytes_ += n;
    }

    // All items of another buffer behind the last one.
    template <class T>
    void append(const Buffer &other) {
        if (other.bytes_ == 0) return;
        reserve_more<T>(other.size<T>());
        std::memcpy(static_cast<char *>(data_) + bytes_, other.data_, other.bytes_);
        bytes_ += other.bytes_;
    }

    // n times the same item behind the last one.
    template <class T>
    void fill(std::size_t n, T item) {
        reserve_more<T>(n);
        std::fill_n(as<T>() + size<T>(), n, item);
        bytes_ += n * sizeof(T);
    }

    void clear() { bytes_ = 0; }

    // int32 items become int64 items where they stand, last one first. memcpy, because the two overlap.
    void widen() {
        const std::size_t n = size<std::int32_t>();
        reserve_more<std::int32_t>(n);
        char *const base = static_cast<char *>(data_);
        for (std::size_t i = n; i-- > 0;) {
            std::int32_t narrow;
            std::memcpy(&narrow, base + i * sizeof narrow, sizeof narrow);
            const std::int64_t wide = narrow;
            std::memcpy(base + i * sizeof wide, &wide, sizeof wide);
        }
        set_size<std::int64_t>(n);
    }

    // Gives back the spare capacity; as<T>() is not null then.
    void cut() { reallocate(std::max<std::size_t>(bytes_, 1)); }

private:
    void reallocate(std::size_t capacity);
    void free();
#ifdef __linux__
    void remap(std::size_t capacity);
#endif

    void swap(Buffer &other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(capacity_, other.capacity_);
        std::swap(is_mapped_, other.is_mapped_);
    }

    void *data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t capacity_ = 0;
    bool is_mapped_ = false;
};

}  // namespace apsvm::svmlight
