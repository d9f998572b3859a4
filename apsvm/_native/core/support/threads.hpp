// A parallel loop over a few tasks; the caller's thread works too.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <thread>

namespace apsvm {

// Tasks that several threads take one after another, kept until the last of these threads has looked.
class SharedTasks {
public:
    explicit SharedTasks(std::size_t tasks) : tasks_(tasks), left_(tasks) {}

    // Runs tasks while there are any.
    template <class Body>
    void run(const Body &body) noexcept {
        for (std::size_t t = next_.fetch_add(1); t < tasks_; t = next_.fetch_add(1)) {
            try {
                body(t);
            } catch (...) {
                if (!failed_.exchange(true)) error_ = std::current_exception();
            }
            if (left_.fetch_sub(1) == 1) left_.notify_all();
        }
    }

    // Returns once all tasks are done; throws the first of what they threw.
    void wait() const {
        for (std::size_t left = left_.load(); left > 0; left = left_.load()) left_.wait(left);
        if (error_) std::rethrow_exception(error_);
    }

private:
    std::size_t tasks_;
    std::atomic<std::size_t> next_{0}, left_;
    std::atomic<bool> failed_{false};
    std::exception_ptr error_;
};

// Runs body(0) … body(tasks − 1) on at most `threads` threads, the first of what they throw is thrown once all are done.
// On a busy machine a thread may wait for a core longer than all tasks take: nobody waits for one that has not begun, and
// when it begins it finds no task left and does not touch `body`.
template <class Body>
void in_threads(std::size_t tasks, std::size_t threads, const Body &body) {
    threads = std::min(threads, tasks);
    if (threads <= 1) {
        for (std::size_t t = 0; t < tasks; ++t) body(t);
        return;
    }
    const auto shared = std::make_shared<SharedTasks>(tasks);
    try {
        for (std::size_t i = 1; i < threads; ++i) std::thread([shared, &body] { shared->run(body); }).detach();
    } catch (const std::exception &) {
        // No thread, or no memory, is left for us: the threads there are do what there is.
    }
    shared->run(body);
    shared->wait();
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
