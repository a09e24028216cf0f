/* Portable kernel of rotary position embedding. Pair i of a head, elements i and i + rotated / 2, turns by
 * position · base^(-2 i / rotated). Angles are made in f64, once for each token of a call, or for each of each sample
 * where every token has its own position, and rounded: they depend on the position alone. */
#include "base/elementary/elementary.h"
#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/row.h"
#include "kernels/rotary/rotary.h"

enum { TASK_ELEMENTS = 1 << 14, ANGLES_AT_ONCE = 64 };

/* Scratch is the frequencies (f64), the angles (a row of cosines and sines for each token), and the threads'
 * buffers. */
typedef struct {
    const an_call *call;
    const an_rotary_attributes *attributes;
    int64_t position;           /* of token 0 */
    const an_tensor *positions; /* of each token of each sample; NULL: the same in all samples */
    int64_t tokens_a_task;      /* of all samples */
    size_t angles_at, buffers_at, thread_bytes;
} rotary_job;

/* The position of row `index` of angles. */
static double position_of(const rotary_job *j, int64_t index) {
    const an_tensor *t = j->positions;
    if (!t) return (double)j->position + (double)index;
    return (double)an_load_index(t, index / t->dims[1] * t->strides[0] + index % t->dims[1] * t->strides[1]);
}

#define AN_TEMPLATE "kernels/rotary/template.h"
#include "kernels/common/instantiate.h"

/* llama3's scaling: waves that fit often into the original context stay, long ones are stretched, between is
 * blended. */
static double scaled_frequency(const an_rotary_attributes *attributes, double frequency) {
    const double two_pi = 6.28318530717958647693, wave = two_pi / frequency;
    const double context = (double)attributes->original_context;
    if (attributes->factor == 0 || wave < context / attributes->high_factor) return frequency;
    if (wave > context / attributes->low_factor) return frequency / attributes->factor;
    const double share = (context / wave - attributes->low_factor) / (attributes->high_factor - attributes->low_factor);
    return (1 - share) * frequency / attributes->factor + share * frequency;
}

static void frequencies_task(void *user, int64_t index, int thread) {
    const rotary_job *j = user;
    const an_rotary_attributes *attributes = j->attributes;
    double *frequencies = j->call->scratch;
    (void)index, (void)thread;
    for (int64_t i = 0; i < attributes->rotated / 2; i++) {
        const double exponent = -2 * (double)i / (double)attributes->rotated;
        frequencies[i] = scaled_frequency(attributes, an_pow_f64(attributes->base, exponent));
    }
}

static rotary_job make_job(const an_call *call) {
    const an_tensor *src = &call->src[0];
    const size_t element = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    rotary_job j = {.call = call, .attributes = call->attributes};
    const size_t rotated = (size_t)j.attributes->rotated, size = (size_t)src->dims[3];
    if (call->src_count > 1 && call->src[1].ndims > 0) j.positions = &call->src[1];
    const size_t tokens = (size_t)(j.positions ? src->dims[0] * src->dims[2] : src->dims[2]);
    j.angles_at = an_round_up(rotated / 2 * sizeof(double), AN_ALIGNMENT);
    j.buffers_at = j.angles_at + an_round_up(tokens * rotated * element, AN_ALIGNMENT);
    j.thread_bytes = an_round_up(2 * size * element, AN_ALIGNMENT);
    return j;
}

static size_t rotary_scratch(const an_call *call) {
    const rotary_job j = make_job(call);
    return j.buffers_at + (size_t)an_context_threads(call->ctx) * j.thread_bytes;
}

/* (src, position, positions or absent) */
static an_status run_rotary(const an_call *call) {
    const an_tensor *src = &call->src[0];
    const bool is_f64 = an_call_is_f64(call);
    rotary_job j = make_job(call);
    if (call->src_count > 1 && call->src[1].data && !j.positions) j.position = an_load_index(&call->src[1], 0);
    j.tokens_a_task = an_larger(1, TASK_ELEMENTS / an_larger(1, src->dims[1] * src->dims[3]));
    an_parallel(call->ctx, 1, frequencies_task, &j); /* as a task, for the floating-point environment */
    an_parallel(call->ctx, j.positions ? src->dims[0] * src->dims[2] : src->dims[2],
                is_f64 ? angles_task_f64 : angles_task_f32, &j);
    an_parallel(call->ctx, an_divide_up(src->dims[0] * src->dims[2], j.tokens_a_task),
                is_f64 ? rotate_task_f64 : rotate_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(rotary) = {{.name = "portable", .scratch = rotary_scratch, .run = run_rotary}, {0}};
