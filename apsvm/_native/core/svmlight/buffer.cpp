#include "svmlight/buffer.hpp"

#include <cstdint>
#include <cstdlib>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace apsvm::svmlight {

#ifdef __linux__

namespace {

// Pages of 2 MB, which the system gives and clears much faster than as many bytes of small ones. A run has them if it
// begins at a multiple of their size; realloc would not see to that, and tear them up where it moves.
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t least_mapped = huge_page;

std::size_t rounded_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

// n bytes of address space from a multiple of huge_page on.
char *map_aligned(std::size_t n, int protection) {
    void *const found = mmap(nullptr, n + huge_page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) throw std::bad_alloc();
    char *const begin = static_cast<char *>(found);
    const std::size_t before = rounded_up(reinterpret_cast<std::uintptr_t>(begin), huge_page) -
                               reinterpret_cast<std::uintptr_t>(begin);
    if (before > 0) munmap(begin, before);
    munmap(begin + before + n, huge_page - before);
    return begin + before;
}

}  // namespace

void Buffer::remap(std::size_t capacity) {
    if (is_mapped_ && capacity <= capacity_) {
        capacity = rounded_up(capacity, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
        if (capacity < capacity_) munmap(as<char>() + capacity, capacity_ - capacity);
        capacity_ = capacity;
        return;
    }
    capacity = rounded_up(capacity, huge_page);
    if (!is_mapped_) {
        char *const begin = map_aligned(capacity, PROT_READ | PROT_WRITE);
        madvise(begin, capacity, MADV_HUGEPAGE);  // before it is touched; it stays advised when it grows
        if (bytes_ > 0) std::memcpy(begin, data_, bytes_);
        std::free(data_);
        data_ = begin;
        is_mapped_ = true;
    } else if (mremap(data_, capacity_, capacity, 0) == MAP_FAILED) {
        char *const begin = map_aligned(capacity, PROT_NONE);
        if (mremap(data_, capacity_, capacity, MREMAP_MAYMOVE | MREMAP_FIXED, begin) == MAP_FAILED) {
            munmap(begin, capacity);
            throw std::bad_alloc();
        }
        data_ = begin;
    }
    capacity_ = capacity;
}

#endif

void Buffer::reallocate(std::size_t capacity) {
#ifdef __linux__
    if (is_mapped_ || capacity >= least_mapped) return remap(capacity);
#endif
    void *const moved = std::realloc(data_, capacity);
    if (moved == nullptr) throw std::bad_alloc();
    data_ = moved;
    capacity_ = capacity;
}

void Buffer::free() {
#ifdef __linux__
    if (is_mapped_) {
        munmap(data_, capacity_);
        return;
    }
#endif
    std::free(data_);
}

}  // namespace apsvm::svmlight
