// A parallel loop over a few tasks; the caller's thread works too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace apsvm {

// Runs body(0) … body(tasks − 1) on at most `threads` threads. The first of what they throw is thrown once all are done.
template <class Body>
void in_threads(std::size_t tasks, std::size_t threads, Body body) {
    threads = std::min(threads, tasks);
    if (threads <= 1) {
        for (std::size_t t = 0; t < tasks; ++t) body(t);
        return;
    }
    std::vector<std::thread> pool;
    std::vector<std::exception_ptr> errors(threads);
    pool.reserve(threads - 1);
    auto run = [&](std::size_t first) noexcept {
        try {
            for (std::size_t t = first; t < tasks; t += threads) body(t);
        } catch (...) {
            errors[first] = std::current_exception();
        }
    };
    try {
        for (std::size_t i = 1; i < threads; ++i) pool.emplace_back(run, i);
    } catch (const std::system_error &) {
        // The system has no thread left for us: what is missing is done below.
    }
    run(0);
    for (std::size_t i = pool.size() + 1; i < threads; ++i) run(i);
    for (auto &thread : pool) thread.join();
    for (const std::exception_ptr &error : errors)
        if (error) std::rethrow_exception(error);
}

// Runs body(item, t) for the items 0 … n − 1 on at most `threads` threads, t being the one at work: a run of
// neighbours at a time, as taking turns costs, too.
template <class Body>
void in_runs(std::size_t n, std::size_t threads, Body body) {
    const std::size_t run = std::max<std::size_t>(1, n / (16 * threads));
    std::atomic<std::size_t> next{0};
    in_threads(threads, threads, [&](std::size_t t) {
        for (std::size_t begin = next.fetch_add(run); begin < n; begin = next.fetch_add(run))
            for (std::size_t item = begin; item < std::min(begin + run, n); ++item) body(item, t);
    });
}

}  // namespace apsvm

// One source, compiled for several instruction sets, chosen when the module is loaded. Fused multiply-adds are off
// (CMakeLists.txt), so every clone gives the same bits. It takes a loader that runs resolvers: glibc's, not musl's; and
// none that ThreadSanitizer would instrument, as they run before it does.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute) && !defined(__SANITIZE_THREAD__)
#if __has_attribute(target_clones)
#define APSVM_HAS_CLONES 1
#endif
#endif

#ifdef APSVM_HAS_CLONES
#define APSVM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define APSVM_CLONES
#endif
