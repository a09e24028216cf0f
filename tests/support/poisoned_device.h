/* A device with the host's kernels whose memory can only be touched while one of them, or a copy of the device, runs.
 * Whoever dereferences tensor memory anywhere else dies. */
#ifndef TESTS_SUPPORT_POISONED_DEVICE_H
#define TESTS_SUPPORT_POISONED_DEVICE_H

#include <sys/mman.h>

#include "base/device.h"
#include "support/support.h"

enum { MOST_PIECES = 64 };

typedef struct {
    struct {
        void *memory;
        size_t bytes;
    } pieces[MOST_PIECES];
    int count;
    long launches, copies;
} poisoned_memory;

static void poisoned_protect(poisoned_memory *p, int protection) {
    for (int i = 0; i < p->count; i++)
        if (mprotect(p->pieces[i].memory, p->pieces[i].bytes, protection)) fail_msg("mprotect failed");
}

static size_t poisoned_pages(size_t bytes) {
    return (bytes + 4095) / 4096 * 4096;
}

static an_status poisoned_allocate(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    poisoned_memory *p = device->user;
    (void)ctx;
    if (p->count == MOST_PIECES) return AN_ERR_MEMORY;
    void *m = mmap(NULL, poisoned_pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED) return AN_ERR_MEMORY;
    p->pieces[p->count].memory = m;
    p->pieces[p->count++].bytes = poisoned_pages(bytes);
    *memory = m;
    return AN_OK;
}

static void poisoned_release(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    poisoned_memory *p = device->user;
    (void)ctx;
    if (!*memory) return;
    for (int i = 0; i < p->count; i++)
        if (p->pieces[i].memory == *memory) p->pieces[i] = p->pieces[--p->count];
    munmap(*memory, poisoned_pages(bytes));
    *memory = NULL;
}

static an_status poisoned_copy(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                               an_copy_direction direction) {
    poisoned_memory *p = device->user;
    (void)ctx, (void)direction;
    p->copies++;
    poisoned_protect(p, PROT_READ | PROT_WRITE);
    memmove(dst, src, bytes);
    poisoned_protect(p, PROT_NONE);
    return AN_OK;
}

static an_status poisoned_fill(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes) {
    poisoned_memory *p = device->user;
    (void)ctx;
    poisoned_protect(p, PROT_READ | PROT_WRITE);
    memset(dst, byte, bytes);
    poisoned_protect(p, PROT_NONE);
    return AN_OK;
}

static an_status poisoned_synchronize(const an_device *device, an_context *ctx) {
    (void)device, (void)ctx;
    return AN_OK;
}

static an_status poisoned_launch(const an_device *device, const an_kernel *kernel, const an_call *call) {
    poisoned_memory *p = device->user;
    p->launches++;
    poisoned_protect(p, PROT_READ | PROT_WRITE);
    an_status status = kernel->run(call);
    poisoned_protect(p, PROT_NONE);
    return status;
}

static const an_kernel *poisoned_kernels(const an_device *device, const an_context *ctx, const char *op) {
    (void)device;
    return an_device_host.kernels(&an_device_host, ctx, op);
}

static inline an_device poisoned_device(poisoned_memory *p) {
    return (an_device){.size = sizeof(an_device),
                       .name = "poisoned",
                       .allocate = poisoned_allocate,
                       .release = poisoned_release,
                       .copy = poisoned_copy,
                       .fill = poisoned_fill,
                       .synchronize = poisoned_synchronize,
                       .launch = poisoned_launch,
                       .kernels = poisoned_kernels,
                       .user = p};
}

#endif
