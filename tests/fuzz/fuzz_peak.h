/* What a run may take at most beside what was there before it: a small file that becomes large is found by its memory,
 * whoever allocates it. Needs AddressSanitizer; elsewhere nothing is counted. */
#ifndef TESTS_FUZZ_FUZZ_PEAK_H
#define TESTS_FUZZ_FUZZ_PEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUZZ_PEAK
#endif
#endif

#ifdef FUZZ_PEAK
#include <sanitizer/allocator_interface.h>

static size_t peak_live, peak_most, peak_before;

static void peak_on_allocation(const volatile void *memory, size_t bytes) {
    (void)memory;
    peak_live += bytes;
    if (peak_live > peak_most) peak_most = peak_live;
}

static void peak_on_release(const volatile void *memory) {
    const size_t bytes = memory ? __sanitizer_get_allocated_size(memory) : 0;
    peak_live -= bytes < peak_live ? bytes : peak_live; /* some were there before anything was counted */
}

static inline void peak_begin(void) {
    static bool installed;
    if (!installed && !__sanitizer_install_malloc_and_free_hooks(peak_on_allocation, peak_on_release)) abort();
    installed = true;
    peak_before = peak_most = peak_live;
}

/* So many bytes in any case, and `ratio` for each of the input's. */
static inline void peak_check(size_t minimum, size_t ratio, size_t bytes) {
    const size_t taken = peak_most - peak_before;
    if (taken <= minimum + ratio * bytes) return;
    fprintf(stderr, "fuzz_peak: %zu bytes of input took %zu bytes of memory\n", bytes, taken);
    abort();
}
#else
static inline void peak_begin(void) {}
static inline void peak_check(size_t minimum, size_t ratio, size_t bytes) {
    (void)minimum, (void)ratio, (void)bytes;
}
#endif

#endif
