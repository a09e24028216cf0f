/* Mappings with a ledger. The linker sends mmap, mprotect and munmap of the program here (-Wl,--wrap=…): they are
 * counted, and the n-th can fail. Also asks whether a page can be touched, without touching it. */
#ifndef TESTS_SUPPORT_MAPPINGS_H
#define TESTS_SUPPORT_MAPPINGS_H

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/support.h"

typedef struct mapping_ledger {
    int64_t held;        /* bytes of addresses that are mapped */
    long calls, fail_at; /* of mmap and mprotect; the call that fails, 0: none */
} mapping_ledger;

static mapping_ledger mappings;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's --wrap asks for these names */
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_mprotect(void *at, size_t bytes, int protection);
int __real_munmap(void *at, size_t bytes);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_mprotect(void *at, size_t bytes, int protection);
int __wrap_munmap(void *at, size_t bytes);

static bool mapping_fails(void) {
    if (++mappings.calls != mappings.fail_at) return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (mapping_fails()) return MAP_FAILED;
    void *memory = __real_mmap(at, bytes, protection, flags, file, offset);
    if (memory != MAP_FAILED) mappings.held += (int64_t)bytes;
    return memory;
}

int __wrap_mprotect(void *at, size_t bytes, int protection) {
    return mapping_fails() ? -1 : __real_mprotect(at, bytes, protection);
}

int __wrap_munmap(void *at, size_t bytes) {
    mappings.held -= (int64_t)bytes;
    return __real_munmap(at, bytes);
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* Whether the byte can be read: the kernel is asked to, which returns an error where the program would get a signal. */
static inline bool is_mapped(const void *byte) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const bool there = write(ends[1], byte, 1) == 1;
    if (!there) assert_int_equal(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    return there;
}

#endif
