/* Own ops, kernels and devices. May change at any release. docs/howto says how each is added. */
#ifndef ANNEAL_EXPERIMENTAL_H
#define ANNEAL_EXPERIMENTAL_H

#include "anneal/experimental.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor as a kernel sees it: strides in elements, any of them may be 0 (broadcast). */
typedef struct an_tensor {
    void *data;
    an_dtype dtype;
    int ndims;
    int64_t dims[AN_MAX_DIMS];
    int64_t strides[AN_MAX_DIMS];
} an_tensor;

enum { AN_MAX_INPUTS = 32, AN_MAX_OUTPUTS = 32 };

/* All that a kernel gets. An absent optional input has data NULL and ndims 0 and dtype NONE. */
typedef struct an_call {
    an_context *ctx;
    const void *attributes; /* of the op's own struct */
    int src_count, dst_count;
    const an_tensor *src;
    const an_tensor *dst;
    void *scratch;    /* as many bytes as the kernel's `scratch` said, aligned to 64 */
    an_status failed; /* for communication ops: what already went wrong in this run, or AN_OK */
    void *kept;       /* what the kernel's `keep` made of operand 1, if the program keeps such things; else NULL */
} an_call;

#define AN_SCRATCH_FAILED SIZE_MAX

typedef struct an_kernel {
    const char *name;
    /* Whether it can do this call (dtypes, strides, sizes); data pointers are not set yet. NULL: always. */
    bool (*applies)(const an_call *call);
    /* Scratch in bytes for this call at these (largest) sizes, or AN_SCRATCH_FAILED with the context's error set. A kernel
     * that keeps something for its runs makes it here. NULL: none. */
    size_t (*scratch)(const an_call *call);
    an_status (*run)(const an_call *call);
    /* Elementwise kernels: n elements of dst from as many of each input, dense and of the compute type, so that a chain of
     * them makes one pass over memory. dst may be one of the rows of src. NULL: not elementwise. */
    void (*row_f32)(int64_t n, const float *const *src, float *dst, const void *attributes);
    void (*row_f64)(int64_t n, const double *const *src, double *dst, const void *attributes);
    /* Bytes that the kernel would keep from run to run where operand 1 is a parameter, aligned to 64; 0: none. `keep` fills
     * call->kept when the weights have changed, and `run` then finds it there. NULL: it keeps nothing. */
    size_t (*kept)(const an_call *call);
    an_status (*keep)(const an_call *call);
} an_kernel;

/* Who owns tensor memory. Only kernels dereference it; everything else goes through this record. */
typedef enum an_copy_direction { AN_COPY_TO_DEVICE, AN_COPY_FROM_DEVICE, AN_COPY_ON_DEVICE } an_copy_direction;
struct an_device {
    size_t size;
    const char *name;
    an_status (*allocate)(const an_device *device, an_context *ctx, void **memory, size_t bytes);
    void (*release)(const an_device *device, an_context *ctx, void **memory, size_t bytes);
    an_status (*copy)(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                      an_copy_direction direction);
    an_status (*fill)(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes);
    an_status (*synchronize)(const an_device *device, an_context *ctx);
    an_status (*launch)(const an_device *device, const an_kernel *kernel, const an_call *call);
    void *user;
};

#ifdef __cplusplus
}
#endif
#endif
