/* The host as a device, and what is asked of any device. */
#include "base/device.h"

#include <string.h>

#include "base/context.h"
#include "base/memory.h"

static an_status host_allocate(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    (void)device;
    return an_alloc_raw(ctx, memory, bytes);
}

static void host_release(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    (void)device, (void)bytes;
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

static const an_kernel *host_kernels(const an_device *device, const an_context *ctx, const char *op) {
    (void)device;
    return ctx->host_kernels ? ctx->host_kernels(ctx, op) : NULL;
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
    .kernels = host_kernels,
};

/* ---- any device ---- */

const char *an_device_mistake(const an_device *device) {
    const struct {
        bool is_missing;
        const char *what;
    } rows[] = {
        {device->size != sizeof *device,
         "has another size than this version's: compile it anew, and set size to sizeof(an_device)"},
        {!device->name || !*device->name, "has no name"},
        {!device->allocate || !device->release, "lacks allocate or release"},
        {!device->copy || !device->fill, "lacks copy or fill"},
        {!device->synchronize || !device->launch, "lacks synchronize or launch"},
        {!device->kernels, "lacks kernels: it is asked for the kernels of every op"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) /* size first: of another size, the rest means nothing */
        if (rows[i].is_missing) return rows[i].what;
    return NULL;
}

an_status an_device_kernel(an_context *ctx, const char *op, const an_call *call, const an_kernel **kernel) {
    const an_device *device = ctx->device;
    *kernel = NULL;
    for (const an_kernel *k = device->kernels(device, ctx, op); k && k->name; k++) {
        if ((k->applies && !k->applies(call)) || (k->scratch && k->scratch(call))) continue;
        *kernel = k;
        return AN_OK;
    }
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "device '%s' has no kernel for %s that can do this without scratch",
                    device->name, op);
}
