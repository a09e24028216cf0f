/* The device seam: who owns tensor memory and who may touch it. The record is public in experimental.h. */
#ifndef AN_BASE_DEVICE_H
#define AN_BASE_DEVICE_H

#include "anneal/experimental.h"

/* The host's own record: memory of the context's allocator, memcpy, memset, a plain call. */
extern const an_device an_device_host;

#endif
