/* A device whose memory only its own kernels can touch.
 *
 * Addresses that it gives out lie in a range that nobody may read or write; the bytes are in a second range, as far
 * behind them as the first is long. Its copies and its kernels know that distance. Whoever else dereferences an address
 * of the device dies, a kernel of the host that is launched here too. The memory starts as noise, because that of a
 * device does.
 *
 * Its kernels are plain loops over f32 in the orders that the headers of the host's kernels promise for the base level
 * of instructions (kernels/product/core.h, kernels/common/reduce_order.h, kernels/update/update.h), so their bits are
 * the host's. They are those of a small MLP and of AdamW, and no others: nothing is fused here. */
#ifndef TESTS_RUN_APART_DEVICE_H
#define TESTS_RUN_APART_DEVICE_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "anneal/experimental.h"
#include "anneal/plan.h"
#include "kernels/common/reduce_order.h"
#include "kernels/elementwise/binary.h"
#include "kernels/product/core.h"
#include "kernels/product/product.h"
#include "kernels/reduce/reduce.h"
#include "kernels/sink/sink.h"
#include "kernels/update/average.h"
#include "kernels/update/update.h"
#include "support/support.h"

enum { APART_NOISE = 0xa5, APART_ALIGNMENT = 64 };
static const size_t apart_range = (size_t)1 << 30; /* of addresses; pages that nobody writes cost nothing */

typedef struct apart_memory {
    char *addresses; /* apart_range bytes that cannot be touched, and as many behind them that can */
    size_t used;
    int pieces;
    long launches, copies;
    const char *without; /* this op has no kernel; NULL: all of them have one */
    bool lends_host;     /* hands out the host's kernel of `without` instead: a mistake of a device */
} apart_memory;

static size_t apart_rounded(size_t bytes) {
    return (bytes + APART_ALIGNMENT - 1) / APART_ALIGNMENT * APART_ALIGNMENT;
}

/* ---- memory ---- */

static inline void apart_begin(apart_memory *m) {
    *m = (apart_memory){0};
    m->addresses = mmap(NULL, 2 * apart_range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->addresses == MAP_FAILED) fail_msg("mmap failed");
    if (mprotect(m->addresses + apart_range, apart_range, PROT_READ | PROT_WRITE)) fail_msg("mprotect failed");
}

static inline void apart_end(apart_memory *m) {
    munmap(m->addresses, 2 * apart_range);
}

/* Where the bytes behind an address of the device are. */
static void *apart_bytes(const void *address) {
    return (char *)(uintptr_t)address + apart_range;
}

static bool apart_holds(const apart_memory *m, const void *address, size_t bytes) {
    const char *a = address;
    return a >= m->addresses && bytes <= m->used && a + bytes <= m->addresses + m->used;
}

static an_status apart_allocate(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    apart_memory *m = device->user;
    (void)ctx;
    if (bytes > apart_range - m->used - APART_ALIGNMENT) return AN_ERR_MEMORY;
    *memory = m->addresses + m->used;
    m->used += apart_rounded(bytes);
    m->pieces++;
    memset(apart_bytes(*memory), APART_NOISE, apart_rounded(bytes));
    return AN_OK;
}

static void apart_release(const an_device *device, an_context *ctx, void **memory, size_t bytes) {
    apart_memory *m = device->user;
    (void)ctx;
    if (!*memory) return;
    memset(apart_bytes(*memory), APART_NOISE, apart_rounded(bytes));
    if (--m->pieces == 0) m->used = 0;
    *memory = NULL;
}

/* Each side must be what the direction says it is. */
static an_status apart_copy(const an_device *device, an_context *ctx, void *dst, const void *src, size_t bytes,
                            an_copy_direction direction) {
    apart_memory *m = device->user;
    const bool to = apart_holds(m, dst, bytes), from = apart_holds(m, src, bytes);
    (void)ctx;
    if (to != (direction != AN_COPY_FROM_DEVICE) || from != (direction != AN_COPY_TO_DEVICE))
        fail_msg("a copy of %zu bytes in direction %d: dst is %s, src is %s", bytes, (int)direction,
                 to ? "the device's" : "the host's", from ? "the device's" : "the host's");
    m->copies++;
    memmove(to ? apart_bytes(dst) : dst, from ? apart_bytes(src) : src, bytes);
    return AN_OK;
}

static an_status apart_fill(const an_device *device, an_context *ctx, void *dst, int byte, size_t bytes) {
    (void)ctx;
    if (!apart_holds(device->user, dst, bytes)) fail_msg("a fill of %zu bytes that are not the device's", bytes);
    memset(apart_bytes(dst), byte, bytes);
    return AN_OK;
}

static an_status apart_synchronize(const an_device *device, an_context *ctx) {
    (void)device, (void)ctx;
    return AN_OK;
}

static an_status apart_launch(const an_device *device, const an_kernel *kernel, const an_call *call) {
    ((apart_memory *)device->user)->launches++;
    return kernel->run(call);
}

/* ---- kernels ---- */

static int64_t apart_elements(const an_tensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->ndims; i++) n *= t->dims[i];
    return n;
}

/* Element `index` of `like`, counted in C order, in a tensor that is broadcast to it. */
static float *apart_at(const an_tensor *t, const an_tensor *like, int64_t index) {
    int64_t offset = 0;
    for (int i = like->ndims - 1; i >= 0; i--) {
        const int own = i - (like->ndims - t->ndims);
        if (own >= 0 && t->dims[own] > 1) offset += index % like->dims[i] * t->strides[own];
        index /= like->dims[i];
    }
    return (float *)apart_bytes(t->data) + offset;
}

#define APART_ELEMENTWISE(name, expression)                                                      \
    static an_status apart_##name(const an_call *call) {                                         \
        const an_tensor *dst = &call->dst[0], *src = call->src;                                  \
        for (int64_t i = 0; i < apart_elements(dst); i++) *apart_at(dst, dst, i) = (expression); \
        return AN_OK;                                                                            \
    }
#define S(k) (*apart_at(&src[k], dst, i))
APART_ELEMENTWISE(add, S(0) + S(1))
APART_ELEMENTWISE(relu, S(0) < 0 ? 0 : S(0))
APART_ELEMENTWISE(relu_diff, S(1) <= 0 ? 0 : S(0))
APART_ELEMENTWISE(squared_error_diff, S(0) * (2 * (S(1) - S(2))))
#undef S

static bool apart_bias_applies(const an_call *call) {
    return ((const an_bias_attributes *)call->attributes)->axis == call->dst[0].ndims - 1; /* then it broadcasts */
}

static an_status apart_grad(const an_call *call) {
    const an_grad_attributes *attributes = call->attributes;
    const an_tensor *dst = &call->dst[0];
    for (int64_t i = 0; i < apart_elements(dst); i++) {
        float *to = apart_at(dst, dst, i), from = *apart_at(&call->src[0], dst, i);
        *to = attributes->add ? *to + from : from;
    }
    return AN_OK;
}

static bool apart_product_applies(const an_call *call) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *a = &call->src[0];
    return a->ndims == 2 && call->src[1].ndims == 2 && a->dims[!attributes->transpose_a] <= AN_PRODUCT_PIECE;
}

static an_status apart_product(const an_call *call) {
    const an_product_attributes *attributes = call->attributes;
    const an_tensor *a = &call->src[0], *b = &call->src[1], *dst = &call->dst[0];
    const int row = attributes->transpose_a, column = !attributes->transpose_b; /* the dimensions of a and b in dst */
    for (int64_t i = 0; i < dst->dims[0]; i++)
        for (int64_t j = 0; j < dst->dims[1]; j++) {
            const float *x = (float *)apart_bytes(a->data) + i * a->strides[row];
            const float *y = (float *)apart_bytes(b->data) + j * b->strides[column];
            float sum = 0;
            for (int64_t k = 0; k < a->dims[!row]; k++) sum += x[k * a->strides[!row]] * y[k * b->strides[!column]];
            ((float *)apart_bytes(dst->data))[i * dst->strides[0] + j * dst->strides[1]] = sum;
        }
    return AN_OK;
}

static float apart_lanes_sum(const float *lanes) {
    float sum = lanes[0];
    for (int i = 1; i < AN_SUM_LANES; i++) sum += lanes[i];
    return sum;
}

static bool apart_squared_error_applies(const an_call *call) {
    const bool is_weighted = call->src_count > 2 && call->src[2].dtype != AN_DTYPE_NONE;
    return apart_elements(&call->src[0]) <= AN_SUM_CHUNK && !is_weighted;
}

static an_status apart_squared_error(const an_call *call) {
    const an_tensor *x = &call->src[0], *t = &call->src[1];
    float lanes[AN_SUM_LANES] = {0};
    for (int64_t i = 0; i < apart_elements(x); i++) {
        const float e = *apart_at(x, x, i) - *apart_at(t, x, i);
        lanes[i % AN_SUM_LANES] += e * e;
    }
    *(float *)apart_bytes(call->dst[0].data) = apart_lanes_sum(lanes);
    return AN_OK;
}

/* Down the columns of a matrix: what a bias needs. */
static bool apart_reduce_sum_applies(const an_call *call) {
    const an_reduce_attributes *attributes = call->attributes;
    const an_tensor *src = &call->src[0];
    return src->ndims == 2 && attributes->axes.count == 1 && attributes->axes.values[0] == 0 &&
           src->dims[0] <= AN_SUM_CHUNK && call->dst[0].dtype == AN_DTYPE_F32;
}

static an_status apart_reduce_sum(const an_call *call) {
    const an_tensor *src = &call->src[0], *dst = &call->dst[0];
    for (int64_t j = 0; j < src->dims[1]; j++) {
        float lanes[AN_SUM_LANES] = {0};
        for (int64_t i = 0; i < src->dims[0]; i++)
            lanes[i % AN_SUM_LANES] += ((float *)apart_bytes(src->data))[i * src->strides[0] + j * src->strides[1]];
        *apart_at(dst, dst, j) = apart_lanes_sum(lanes);
    }
    return AN_OK;
}

static an_status apart_square_sums(const an_call *call) {
    const float *g = apart_bytes(call->src[0].data);
    double *sums = apart_bytes(call->dst[0].data);
    for (int64_t page = 0; page < call->dst[0].dims[0]; page++, g += AN_PAGE) {
        double lanes[AN_SUM_LANES] = {0};
        for (int i = 0; i < AN_PAGE; i++) lanes[i % AN_SUM_LANES] += (double)g[i] * (double)g[i];
        sums[page] = 0;
        for (int i = 0; i < AN_SUM_LANES; i++) sums[page] += lanes[i];
    }
    return AN_OK;
}

static bool apart_update_applies(const an_call *call) {
    const an_update_attributes *attributes = call->attributes;
    return !strcmp(attributes->record->name, "adamw") && call->src[0].dtype == AN_DTYPE_F32 && !call->dst[3].data;
}

static an_status apart_update(const an_call *call) {
    const an_update_attributes *a = call->attributes;
    const float *gradients = apart_bytes(call->src[0].data);
    float *w = apart_bytes(call->dst[0].data), *m = apart_bytes(call->dst[1].data), *v = apart_bytes(call->dst[2].data);
    const an_update_run *run = a->runs;
    for (int64_t i = 0; i < call->src[0].dims[0]; i++) {
        while (i / AN_PAGE >= run->end) run++;
        const float limit = (float)a->clip_value;
        float g = gradients[i] * (float)a->factor;
        if (limit > 0) g = g > limit ? limit : g < -limit ? -limit : g;
        w[i] = w[i] * (float)(1 - run->rate * run->weight_decay);
        m[i] = (float)a->beta_1 * m[i] + (float)(1 - a->beta_1) * g;
        v[i] = (float)a->beta_2 * v[i] + (float)(1 - a->beta_2) * (g * g);
        const float root = sqrtf(v[i] * (float)(1 / a->correction_2));
        w[i] = w[i] - (float)run->rate * (m[i] * (float)(1 / a->correction_1)) / (root + (float)a->epsilon);
    }
    return AN_OK;
}

static an_status apart_average(const an_call *call) {
    const an_average_attributes *a = call->attributes;
    const float *weights = apart_bytes(call->src[0].data), rest = (float)(1 - a->decay);
    float *average = apart_bytes(call->dst[0].data);
    for (int64_t i = 0; i < call->dst[0].dims[0]; i++)
        average[i] = a->first ? weights[i] : average[i] + rest * (weights[i] - average[i]);
    return AN_OK;
}

static an_status apart_swap(const an_call *call) {
    float *a = apart_bytes(call->dst[0].data), *b = apart_bytes(call->dst[1].data);
    for (int64_t i = 0; i < call->dst[0].dims[0]; i++) {
        const float kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
    return AN_OK;
}

/* ---- the record ---- */

static bool apart_is_f32(const an_call *call) {
    return call->dst[0].dtype == AN_DTYPE_F32;
}

#define APART_KERNEL(op, applies_, run_)                           \
    {                                                              \
#op, {                                                     \
            {.name = "apart", .applies = applies_, .run = run_}, { \
                0                                                  \
            }                                                      \
        }                                                          \
    }
static const struct {
    const char *op;
    an_kernel kernels[2];
} apart_kernels[] = {
    APART_KERNEL(matmul, apart_product_applies, apart_product),
    APART_KERNEL(bias, apart_bias_applies, apart_add),
    APART_KERNEL(relu, apart_is_f32, apart_relu),
    APART_KERNEL(relu_diff, apart_is_f32, apart_relu_diff),
    APART_KERNEL(squared_error, apart_squared_error_applies, apart_squared_error),
    APART_KERNEL(squared_error_diff, apart_is_f32, apart_squared_error_diff),
    APART_KERNEL(reduce_sum, apart_reduce_sum_applies, apart_reduce_sum),
    APART_KERNEL(grad, apart_is_f32, apart_grad),
    APART_KERNEL(add, apart_is_f32, apart_add),
    APART_KERNEL(update, apart_update_applies, apart_update),
    APART_KERNEL(square_sums, NULL, apart_square_sums),
    APART_KERNEL(average, apart_is_f32, apart_average),
    APART_KERNEL(swap, apart_is_f32, apart_swap),
};

static const an_kernel *apart_kernels_of(const an_device *device, const an_context *ctx, const char *op) {
    const apart_memory *m = device->user;
    if (m->without && !strcmp(op, m->without))
        return m->lends_host ? an_device_host.kernels(&an_device_host, ctx, op) : NULL;
    for (size_t i = 0; i < sizeof apart_kernels / sizeof *apart_kernels; i++)
        if (!strcmp(op, apart_kernels[i].op)) return apart_kernels[i].kernels;
    return NULL;
}

static inline an_device apart_device(apart_memory *m) {
    return (an_device){.size = sizeof(an_device),
                       .name = "apart",
                       .allocate = apart_allocate,
                       .release = apart_release,
                       .copy = apart_copy,
                       .fill = apart_fill,
                       .synchronize = apart_synchronize,
                       .launch = apart_launch,
                       .kernels = apart_kernels_of,
                       .user = m};
}

#endif
