/* The device seam: who owns tensor memory and who may touch it. The record is public in experimental.h. */
#ifndef AN_BASE_DEVICE_H
#define AN_BASE_DEVICE_H

#include "anneal/experimental.h"

/* The host's own record: memory of the context's allocator, memcpy, memset, a plain call. Its kernels lie above base:
 * it asks the context for them (ctx->host_kernels). */
extern const an_device an_device_host;

/* What a device record lacks to be used; NULL: nothing. */
const char *an_device_mistake(const an_device *device);

/* The first kernel of the context's device for this op that takes the call and needs no scratch: for what is
 * launched outside of plans. */
an_status an_device_kernel(an_context *ctx, const char *op, const an_call *call, const an_kernel **kernel);

#endif
