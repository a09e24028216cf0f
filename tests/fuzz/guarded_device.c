#include "guarded_device.h"

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/device.h"
#include "base/memory.h"

/* Parameters have at most six blocks, a program five; fuzzers have one of each at a time. */
enum { MOST_BLOCKS = 32 };

typedef struct span {
    char *begin, *end;
} span;

static span blocks[MOST_BLOCKS];
static int block_count;

static void die(const char *what, const an_kernel *kernel) {
    fprintf(stderr, "guarded_device: %s, kernel %s\n", what, kernel ? kernel->name : "none");
    abort();
}

/* The block around it. */
static span block_of(span s, const an_kernel *kernel) {
    for (int i = 0; i < block_count; i++)
        if (s.begin >= blocks[i].begin && s.end <= blocks[i].end && s.begin <= s.end) return blocks[i];
    die("memory outside of every block", kernel);
    return s;
}

static void allow(span s, const an_kernel *kernel) {
    block_of(s, kernel);
    ASAN_UNPOISON_MEMORY_REGION(s.begin, (size_t)(s.end - s.begin));
}

/* By whole words, since the sanitizer leaves the last bytes of a range that ends inside one. Values begin on words. */
static void forbid(span s, const an_kernel *kernel) {
    enum { WORD = 8 };
    const span block = block_of(s, kernel);
    const size_t begin = (size_t)(s.begin - block.begin) / WORD * WORD;
    const size_t end = an_round_up((size_t)(s.end - block.begin), WORD), maximum = (size_t)(block.end - block.begin);
    ASAN_POISON_MEMORY_REGION(block.begin + begin, (end < maximum ? end : maximum) - begin);
}

static an_status guarded_allocate(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    (void)device;
    if (block_count == MOST_BLOCKS) die("more blocks than expected", NULL);
    AN_TRY_RETURN(an_alloc_raw(ctx, memory, bytes));
    blocks[block_count++] = (span){*memory, (char *)*memory + bytes};
    ASAN_POISON_MEMORY_REGION(*memory, bytes);
    return AN_OK;
}

static void guarded_release(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    (void)device;
    for (int i = 0; *memory && i < block_count; i++) {
        if (blocks[i].begin != *memory) continue;
        if (blocks[i].end != blocks[i].begin + bytes) die("released with another size", NULL);
        ASAN_UNPOISON_MEMORY_REGION(*memory, bytes);
        blocks[i] = blocks[--block_count];
        break;
    }
    an_release(ctx, memory, bytes, 1);
}

static an_status guarded_copy(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                              an_copy_direction direction) {
    const span to = {dst, (char *)dst + bytes}, from = {(char *)(uintptr_t)src, (char *)(uintptr_t)src + bytes};
    (void)device, (void)ctx;
    if (direction != AN_COPY_FROM_DEVICE) allow(to, NULL);
    if (direction != AN_COPY_TO_DEVICE) allow(from, NULL);
    memmove(dst, src, bytes);
    if (direction != AN_COPY_FROM_DEVICE) forbid(to, NULL);
    if (direction != AN_COPY_TO_DEVICE) forbid(from, NULL);
    return AN_OK;
}

static an_status guarded_fill(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes) {
    const span s = {dst, (char *)dst + bytes};
    (void)device, (void)ctx;
    allow(s, NULL);
    memset(dst, byte, bytes);
    forbid(s, NULL);
    return AN_OK;
}

static an_status guarded_synchronize(const an_device *device, an_context *ctx) {
    (void)device, (void)ctx;
    return AN_OK;
}

/* From a tensor's first byte to behind its last. */
static span span_of(const an_tensor *t) {
    int64_t low = 0, high = 0, size = (int64_t)an_dtype_size(t->dtype);
    for (int i = 0; i < t->ndims; i++) *(t->strides[i] < 0 ? &low : &high) += (t->dims[i] - 1) * t->strides[i];
    return (span){(char *)t->data + low * size, (char *)t->data + (high + 1) * size};
}

/* An output lies over no other output, and over an input only if it is written in place, byte for byte. */
static void check_apart(const an_call *call, const an_kernel *kernel) {
    for (int i = 0; i < call->dst_count; i++) {
        const span out = span_of(&call->dst[i]);
        for (int k = 0; k < call->src_count + i; k++) {
            const an_tensor *other = k < call->src_count ? &call->src[k] : &call->dst[k - call->src_count];
            if (!other->data) continue;
            const span s = span_of(other);
            if (s.end <= out.begin || s.begin >= out.end) continue;
            if (k >= call->src_count || s.begin != out.begin || s.end != out.end || other->dtype != call->dst[i].dtype)
                die("an output lies over another operand", kernel);
        }
    }
}

/* All that a kernel may touch. */
static void each_operand(const an_kernel *kernel, const an_call *call, void (*action)(span, const an_kernel *)) {
    const size_t bytes = kernel->scratch ? kernel->scratch(call) : 0;
    for (int i = 0; i < call->src_count; i++)
        if (call->src[i].data) action(span_of(&call->src[i]), kernel);
    for (int i = 0; i < call->dst_count; i++) action(span_of(&call->dst[i]), kernel);
    if (bytes) action((span){call->scratch, (char *)call->scratch + bytes}, kernel);
}

static an_status guarded_launch(const an_device *device, const an_kernel *kernel, const an_call *call) {
    (void)device;
    check_apart(call, kernel);
    each_operand(kernel, call, allow);
    an_status status = kernel->run(call);
    each_operand(kernel, call, forbid);
    return status;
}

static const an_kernel *guarded_kernels(const an_device *device, const an_context *ctx, const char *op) {
    (void)device;
    return an_device_host.kernels(&an_device_host, ctx, op);
}

const an_device guarded_device = {
    .size = sizeof(an_device),
    .name = "guarded",
    .allocate = guarded_allocate,
    .release = guarded_release,
    .copy = guarded_copy,
    .fill = guarded_fill,
    .synchronize = guarded_synchronize,
    .launch = guarded_launch,
    .kernels = guarded_kernels,
};
