#include "support/cut_files.hpp"

#ifdef _WIN32

namespace apsvm {

// There is no SIGBUS, and a file that is mapped cannot be cut off.
int guard_mapping(const void *, std::size_t, std::string_view, int) { return -1; }

void forget_mapping(int) {}

}  // namespace apsvm

#else

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace apsvm {

namespace {

constexpr int kMost = 512;
constexpr std::uintptr_t kPage = 4096;

// The handler reads what is complete: `end` is written last, and is 0 where there is nothing.
struct Mapping {
    std::uintptr_t begin = 0;
    std::atomic<std::uintptr_t> end{0};
    int exit_code = 0;
    std::size_t length = 0;
    char words[512];
};

Mapping mappings[kMost];
struct sigaction before;
bool installed = false;

// Only what a signal handler may call.
void on_bus_error(int number, siginfo_t *info, void *context) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (const Mapping &mapping : mappings) {
        const std::uintptr_t end = mapping.end.load(std::memory_order_acquire);
        if (end == 0 || address < mapping.begin || address >= end) continue;
        const char *words = mapping.words;
        std::size_t left = mapping.length;
        while (left > 0) {
            const ssize_t written = ::write(STDERR_FILENO, words, left);
            if (written <= 0) break;
            words += written;
            left -= static_cast<std::size_t>(written);
        }
        ::_exit(mapping.exit_code);
    }
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else {
        ::sigaction(SIGBUS, &before, nullptr);  // and the access is tried again
    }
}

void install() {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    installed = ::sigaction(SIGBUS, &action, &before) == 0;
}

}  // namespace

int guard_mapping(const void *begin, std::size_t n_bytes, std::string_view words, int exit_code) {
    if (!installed) install();
    for (int number = 0; number < kMost; ++number) {
        Mapping &mapping = mappings[number];
        if (mapping.end.load(std::memory_order_relaxed) != 0) continue;
        const auto address = reinterpret_cast<std::uintptr_t>(begin);
        mapping.begin = address & ~(kPage - 1);
        mapping.exit_code = exit_code;
        mapping.length = std::min(words.size(), sizeof mapping.words - 1);
        std::memcpy(mapping.words, words.data(), mapping.length);
        mapping.end.store(address + n_bytes, std::memory_order_release);
        return number;
    }
    return -1;
}

void forget_mapping(int number) {
    if (number >= 0 && number < kMost) mappings[number].end.store(0, std::memory_order_release);
}

}  // namespace apsvm

#endif
