/* Portable kernels of batch norm. A channel's elements are those of all other dimensions in C order; they are summed in
 * the order of reduce_order.h. */
#include "base/parallel.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"
#include "kernels/norm/batch_norm.h"

enum { TASK_ELEMENTS = 1 << 14 };

/* Channel 0 of a tensor with its dimensions merged, and how far channels are apart. */
typedef struct {
    an_tensor merged;
    int64_t stride;
} channel_tensor;

typedef struct {
    const an_call *call;
    bool is_fixed;
    double epsilon;
    channel_tensor diff_dst, src, dst;
    const an_tensor *weight, *bias, *mean, *variance, *inverse; /* NULL: the op has none */
    int64_t channels, channels_a_task, count;                   /* count: elements of a channel */
} batch_norm_job;

static channel_tensor channels_of(const an_tensor *tensor) {
    an_tensor channel = *tensor;
    channel.dims[1] = 1;
    return (channel_tensor){an_tensor_merged(&channel), tensor->strides[1]};
}

static int64_t chunk_size(const batch_norm_job *j, int64_t begin) {
    return j->count - begin < AN_SUM_CHUNK ? j->count - begin : AN_SUM_CHUNK;
}

static int64_t task_end(const batch_norm_job *j, int64_t index) {
    const int64_t end = (index + 1) * j->channels_a_task;
    return end < j->channels ? end : j->channels;
}

static inline float square_root_f32(float x) {
    return __builtin_sqrtf(x);
}
static inline double square_root_f64(double x) {
    return __builtin_sqrt(x);
}

#define AN_TEMPLATE "kernels/norm/batch_norm_template.h"
#include "kernels/common/instantiate.h"

static an_status run(batch_norm_job *j, an_task *f32, an_task *f64) {
    const an_tensor *dst = &j->call->dst[0];
    j->dst = channels_of(dst);
    j->channels = dst->dims[1];
    j->count = an_tensor_elements(dst) / j->channels;
    j->channels_a_task = j->count < TASK_ELEMENTS ? TASK_ELEMENTS / j->count : 1;
    an_parallel(j->call->ctx, (j->channels + j->channels_a_task - 1) / j->channels_a_task,
                an_call_is_f64(j->call) ? f64 : f32, j);
    return AN_OK;
}

/* (src, weight, bias, running mean, running variance): the running ones are for the op's form in evaluation. */
static an_status run_batch_norm(const an_call *call) {
    const an_tensor *src = call->src, *dst = call->dst;
    batch_norm_job j = {
        .call = call,
        .src = channels_of(&src[0]),
        .weight = &src[1],
        .bias = &src[2],
        .mean = &dst[1],
        .variance = &dst[2],
        .inverse = &dst[3],
        .epsilon = ((const an_batch_norm_attributes *)call->attributes)->epsilon,
    };
    return run(&j, forward_task_f32, forward_task_f64);
}

static an_status run_batch_norm_fixed(const an_call *call) {
    const an_tensor *src = call->src;
    batch_norm_job j = {
        .call = call,
        .is_fixed = true,
        .src = channels_of(&src[0]),
        .weight = &src[1],
        .bias = &src[2],
        .mean = &src[3],
        .variance = &src[4],
        .epsilon = ((const an_batch_norm_fixed_attributes *)call->attributes)->epsilon,
    };
    return run(&j, forward_task_f32, forward_task_f64);
}

static an_status run_batch_norm_diff(const an_call *call) {
    const an_tensor *src = call->src;
    batch_norm_job j = {
        .call = call,
        .diff_dst = channels_of(&src[0]),
        .src = channels_of(&src[1]),
        .weight = &src[2],
        .mean = &src[3],
        .inverse = &src[4],
    };
    return run(&j, diff_task_f32, diff_task_f64);
}

static an_status run_batch_norm_fixed_diff(const an_call *call) {
    const an_tensor *src = call->src;
    batch_norm_job j = {
        .call = call,
        .is_fixed = true,
        .diff_dst = channels_of(&src[0]),
        .src = channels_of(&src[1]),
        .weight = &src[2],
        .mean = &src[3],
        .variance = &src[4],
        .epsilon = ((const an_batch_norm_fixed_attributes *)call->attributes)->epsilon,
    };
    return run(&j, diff_task_f32, diff_task_f64);
}

#define KERNEL(op) AN_KERNEL_LIST(op) = {{.name = "portable", .run = run_##op}, {0}};
KERNEL(batch_norm)
KERNEL(batch_norm_diff)
KERNEL(batch_norm_fixed)
KERNEL(batch_norm_fixed_diff)
