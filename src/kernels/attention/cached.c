/* Attention over a cache of keys and values, for decoding.
 *
 * The keys and values of the call's tokens are first written into the cache. Every sample has a slot of it, and
 * positions of its own; its queries then see all positions up to their own. The tasks are those of attention's kernels,
 * on a job of one sample, whose keys are those of its slot: so a query has the bits that it has in attention over the
 * whole sequence, whichever samples share the call and however the sequence was cut into calls.
 */
#include <inttypes.h>
#include <string.h>

#include "base/context.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/status.h"
#include "kernels/attention/job.h"

typedef struct {
    an_attention_job job; /* keys and values are the caches */
    an_attention_attributes attributes;
    const an_tensor *k, *v, *positions, *slots; /* k and v: of this call */
    an_attention_forward forward;
    /* One token for each sample: heads that share their keys are queries of one head, so that these are read once. */
    bool is_grouped;
    an_tensor grouped_q, grouped_dst, grouped_sum;
} cached_job;

static int64_t position_of(const cached_job *c, int64_t sample, int64_t token) {
    return an_load_index(c->positions, sample * c->positions->strides[0] + token * c->positions->strides[1]);
}

static int64_t slot_of(const cached_job *c, int64_t sample) {
    return an_load_index(c->slots, sample * c->slots->strides[0]);
}

/* A sample's positions follow one another and are in the cache; no two samples have the same slot. */
static an_status check(const cached_job *c) {
    const an_attention_job *j = &c->job;
    an_context *ctx = j->call->ctx;
    for (int64_t b = 0; b < j->batch; b++) {
        const int64_t slot = slot_of(c, b), first = position_of(c, b, 0);
        if (slot < 0 || slot >= j->k->dims[0])
            return AN_ERROR(ctx, AN_ERR_KERNEL,
                            "sample %" PRId64 " has slot %" PRId64 ", but the cache has 0 to %" PRId64, b, slot,
                            j->k->dims[0] - 1);
        if (first < 0 || first > j->keys - j->queries)
            return AN_ERROR(ctx, AN_ERR_KERNEL,
                            "%" PRId64 " tokens of sample %" PRId64 " begin at position %" PRId64
                            ", but the cache has positions 0 to %" PRId64,
                            j->queries, b, first, j->keys - 1);
        for (int64_t t = 1; t < j->queries; t++)
            if (position_of(c, b, t) != first + t)
                return AN_ERROR(ctx, AN_ERR_KERNEL, "the positions of sample %" PRId64 " do not follow one another", b);
        for (int64_t other = 0; other < b; other++)
            if (slot_of(c, other) == slot)
                return AN_ERROR(ctx, AN_ERR_KERNEL, "samples %" PRId64 " and %" PRId64 " both have slot %" PRId64,
                                other, b, slot);
    }
    return AN_OK;
}

/* ---- writing ---- */

static void write_row(const an_tensor *from, int64_t source, const an_tensor *to, int64_t target, int64_t size) {
    if (from->dtype == to->dtype && from->strides[3] == 1 && to->strides[3] == 1) {
        const size_t bytes = an_dtype_size(to->dtype);
        memcpy((char *)to->data + (size_t)target * bytes, (const char *)from->data + (size_t)source * bytes,
               (size_t)size * bytes);
    } else if (to->dtype == AN_DTYPE_F64) {
        double buffer[AN_ATTENTION_HEAD];
        an_row_store_f64(to, target, to->strides[3], size,
                         an_row_load_f64(from, source, from->strides[3], size, buffer));
    } else {
        float buffer[AN_ATTENTION_HEAD];
        an_row_store_f32(to, target, to->strides[3], size,
                         an_row_load_f32(from, source, from->strides[3], size, buffer));
    }
}

/* All tokens of one head of one sample. */
static void write_task(void *user, int64_t index, int thread) {
    const cached_job *c = user;
    const an_attention_job *j = &c->job;
    const an_head from = {index / j->kv_heads, index % j->kv_heads}, to = {slot_of(c, from.batch), from.head};
    const int64_t first = position_of(c, from.batch, 0);
    (void)thread;
    for (int64_t t = 0; t < j->queries; t++) {
        write_row(c->k, an_token_offset(c->k, from, t), j->k, an_token_offset(j->k, to, first + t), j->size);
        write_row(c->v, an_token_offset(c->v, from, t), j->v, an_token_offset(j->v, to, first + t), j->size);
    }
}

/* ---- attention ---- */

/* The cache of one slot, as every sample of a job sees it. */
static an_tensor slot_tensor(const an_tensor *cache, int64_t slot) {
    an_tensor t = *cache;
    t.data = (char *)t.data + (size_t)(slot * t.strides[0]) * an_dtype_size(t.dtype);
    t.strides[0] = 0;
    return t;
}

/* (batch, heads, 1, size) seen as (batch, heads of keys, heads that share them, size). */
static an_tensor grouped(const an_tensor *t, int64_t kv_heads) {
    an_tensor g = *t;
    g.dims[1] = kv_heads;
    g.dims[2] = t->dims[1] / kv_heads;
    g.strides[1] = t->strides[1] * g.dims[2];
    g.strides[2] = t->strides[1];
    return g;
}

/* Not where a window hides keys: it is counted from the position of a query, and those of a group
 * would have different ones. */
static void group_heads(cached_job *c) {
    an_attention_job *j = &c->job;
    c->is_grouped = j->queries == 1 && j->heads > j->kv_heads;
    for (int64_t b = 0; b < j->batch && c->attributes.window > 0; b++)
        c->is_grouped = c->is_grouped && position_of(c, b, 0) < c->attributes.window;
    if (!c->is_grouped) return;
    c->grouped_q = grouped(j->q, j->kv_heads);
    c->grouped_dst = grouped(j->dst, j->kv_heads);
    c->grouped_sum = grouped(j->log_sum, j->kv_heads);
    c->attributes.causal = false; /* all queries are at one position, and see the keys up to it, which a task counts */
    c->attributes.window = 0;
    j->q = &c->grouped_q;
    j->dst = &c->grouped_dst;
    j->log_sum = &c->grouped_sum;
    j->queries = j->heads / j->kv_heads;
    j->heads = j->kv_heads;
}

static void attend_task(void *user, int64_t index, int thread) {
    const cached_job *c = user;
    an_attention_job j = c->job;
    const int64_t sample = index / j.query_tiles / j.heads, slot = slot_of(c, sample);
    const an_tensor k = slot_tensor(j.k, slot), v = slot_tensor(j.v, slot);
    j.k = &k;
    j.v = &v;
    j.offset = position_of(c, sample, 0);
    if (c->is_grouped) {
        j.keys = j.offset + 1;
        j.offset = 0;
    }
    c->forward.task(&j, index, thread);
}

static an_status run(const an_call *call, an_attention_forward forward) {
    enum { TASK_TOKENS = 1 << 10 }; /* fewer are written by the calling thread */
    const an_cached_attributes *attributes = call->attributes;
    const an_tensor *q = &call->src[AN_ATTENTION_Q], *keys = &call->src[AN_CACHED_KEYS];
    cached_job c = {.attributes = {.causal = true, .scale = attributes->scale, .window = attributes->window},
                    .k = &call->src[AN_ATTENTION_K],
                    .v = &call->src[AN_ATTENTION_V],
                    .positions = &call->src[AN_CACHED_POSITIONS],
                    .slots = &call->src[AN_CACHED_SLOTS],
                    .forward = forward};
    c.job = (an_attention_job){.call = call,
                               .attributes = &c.attributes,
                               .q = q,
                               .k = keys,
                               .v = &call->src[AN_CACHED_VALUES],
                               .dst = &call->dst[0],
                               .log_sum = &call->dst[1],
                               .batch = q->dims[0],
                               .heads = q->dims[1],
                               .queries = q->dims[2],
                               .size = q->dims[3],
                               .kv_heads = keys->dims[1],
                               .keys = keys->dims[2],
                               .thread_bytes = forward.thread_bytes};
    const an_status status = check(&c);
    if (status != AN_OK) return status;
    const int64_t writes = c.job.batch * c.job.kv_heads;
    if (writes * c.job.queries >= TASK_TOKENS)
        an_parallel(call->ctx, writes, write_task, &c);
    else
        for (int64_t i = 0; i < writes; i++) write_task(&c, i, 0);
    group_heads(&c);
    c.job.query_tiles = an_tiles(c.job.queries, forward.query_tile);
    an_parallel(call->ctx, c.job.batch * c.job.heads * c.job.query_tiles, attend_task, &c);
    return AN_OK;
}

#define DEFINE(kernel)                                                                                     \
    static size_t kernel##_scratch(const an_call *call) {                                                  \
        return (size_t)an_context_threads(call->ctx) * an_attention_##kernel##_forward(call).thread_bytes; \
    }                                                                                                      \
    static an_status kernel##_run(const an_call *call) {                                                   \
        return run(call, an_attention_##kernel##_forward(call));                                           \
    }
DEFINE(portable)
#ifdef __FMA__
DEFINE(tiled)
#endif
#ifdef __AVX512F__
DEFINE(amx)

static bool amx_applies(const an_call *call) {
    return an_attention_amx_applies(call) && call->src[AN_CACHED_KEYS].dtype == AN_DTYPE_BF16 &&
           call->src[AN_CACHED_VALUES].dtype == AN_DTYPE_BF16;
}
#endif

AN_KERNEL_LIST(cached_attention) = {
#ifdef __AVX512F__
    {.name = "amx", .applies = amx_applies, .scratch = amx_scratch, .run = amx_run},
#endif
#ifdef __FMA__
    {.name = "tiled", .scratch = tiled_scratch, .run = tiled_run},
#endif
    {.name = "portable", .scratch = portable_scratch, .run = portable_run},
    {0},
};
