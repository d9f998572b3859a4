// Threads of Python that call the same object take turns: the interpreter's lock is not held while it works.
#pragma once

#include <mutex>

#include <nanobind/nanobind.h>

class Turn {
public:
    // Who waits does so without the interpreter's lock, which the thread at work may need.
    explicit Turn(std::mutex &mutex) : lock_(mutex, std::try_to_lock) {
        if (lock_.owns_lock()) return;
        nanobind::gil_scoped_release unlocked;
        lock_.lock();
    }

private:
    std::unique_lock<std::mutex> lock_;
};

// A class of core/ as Python has it.
template <class T>
struct InTurns : T {
    using T::T;
    std::mutex mutex;
};
