/* The host as a device. */
#include "base/device.h"

#include <string.h>

#include "base/memory.h"

static an_status host_allocate(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    (void)device;
    return an_alloc_raw(ctx, memory, bytes);
}

static void host_release(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    (void)device;
    an_release(ctx, memory, bytes, 1);
}

static an_status host_copy(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                           an_copy_direction direction) {
    (void)device, (void)ctx, (void)direction;
    memmove(dst, src, bytes);
    return AN_OK;
}

static an_status host_fill(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes) {
    (void)device, (void)ctx;
    memset(dst, byte, bytes);
    return AN_OK;
}

static an_status host_synchronize(const an_device *device, an_context *ctx) {
    (void)device, (void)ctx;
    return AN_OK;
}

static an_status host_launch(const an_device *device, const an_kernel *kernel, const an_call *call) {
    (void)device;
    return kernel->run(call);
}

const an_device an_device_host = {
    .size = sizeof(an_device),
    .name = "host",
    .allocate = host_allocate,
    .release = host_release,
    .copy = host_copy,
    .fill = host_fill,
    .synchronize = host_synchronize,
    .launch = host_launch,
};
