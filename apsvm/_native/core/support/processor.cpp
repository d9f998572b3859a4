// What the resolvers of APSVM_CLONES ask of the processor, for Clang. GCC brings these two symbols in libgcc; of Clang's
// run-time libraries not all do, and zig's are a stub that finds no feature of any processor. Names, layout and bits are
// those of libgcc and compiler-rt; where they are defined here, no library's are linked.
#include "support/threads.hpp"

#if defined(APSVM_HAS_CLONES) && defined(__clang__)

#include <cpuid.h>

#define APSVM_HIDDEN extern "C" __attribute__((visibility("hidden"), used))

struct ProcessorModel {
    unsigned vendor, type, subtype;  // not used here
    unsigned features[1];
};

APSVM_HIDDEN ProcessorModel __cpu_model;
APSVM_HIDDEN unsigned __cpu_features2[4];
ProcessorModel __cpu_model = {};
unsigned __cpu_features2[4] = {};

namespace {

constexpr unsigned kAvx2 = 1u << 10, kAvx512F = 1u << 15;  // of ProcessorModel::features

// The registers that the system saves at a change of threads: XCR0.
unsigned saved_registers() {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

unsigned features() {
    constexpr unsigned kYmm = 0x06, kZmm = 0xe6;  // of XCR0: with the registers that they extend
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    const unsigned saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    unsigned result = 0;
    if ((b & bit_AVX2) && (saved & kYmm) == kYmm) result |= kAvx2;
    if ((b & bit_AVX512F) && (saved & kZmm) == kZmm) result |= kAvx512F;
    return result;
}

}  // namespace

// Called by every resolver, before anything else of this module has run.
APSVM_HIDDEN int __cpu_indicator_init() {
    __cpu_model.features[0] = features();
    return 0;
}

#endif
