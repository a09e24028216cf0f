/* Reference kernels of attention, by tiles of queries and keys (Dao and others, "FlashAttention", 2022).
 *
 * A task has one tile of queries and goes over the tiles of keys, with a running softmax; the gradient of keys and values
 * goes the other way round. What a query gets depends on its own row only: every sum over keys is cut at multiples of the
 * tile's size, whichever queries share the tile. Keys that causality or the window hide are not read, so a cache may hold
 * anything after the last key.
 */
#include <inttypes.h>
#include <string.h>

#include "base/elementary.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/philox.h"
#include "base/status.h"
#include "kernels/attention.h"
#include "kernels/dropout.h"
#include "kernels/reduce_order.h"
#include "kernels/row.h"

typedef struct {
    const an_call *call;
    const an_attention_attributes *attributes;
    const an_tensor *q, *k, *v, *dst, *log_sum;           /* log_sum: log-sum-exp of a query's scores */
    const an_tensor *diff_dst, *diff_q, *diff_k, *diff_v; /* of attention_diff */
    const an_tensor *documents, *mask, *samples;          /* NULL: absent */
    int64_t mask_strides[4];                              /* over (batch, heads, queries, keys), 0 where it repeats */
    int64_t heads, kv_heads, queries, keys, size, offset;
    int64_t query_tiles, key_tiles;
    size_t thread_bytes;
    bool has_avx2, has_dropout;
    uint32_t threshold;
    an_philox_key key; /* without its sample */
} attention_job;

typedef struct {
    int64_t batch, head;
} head_of;

typedef struct {
    int64_t begin, count;
} range;

/* The keys of the tile at hand, and the documents that they belong to. */
typedef struct {
    head_of at; /* the head of queries */
    range keys;
    int64_t documents[AN_ATTENTION_KEYS];
} tile_of;

/* Where the tile of a key begins. */
static int64_t tile_floor(int64_t key) {
    return key / AN_ATTENTION_KEYS * AN_ATTENTION_KEYS;
}

static range tile_range(int64_t tile, int64_t size, int64_t end) {
    return (range){tile * size, an_attention_smaller(size, end - tile * size)};
}

static head_of key_head(const attention_job *j, head_of at) {
    return (head_of){at.batch, at.head / (j->heads / j->kv_heads)};
}

/* In (batch, heads, tokens, size), and in log_sum, which has no size. */
static int64_t token_offset(const an_tensor *t, head_of at, int64_t token) {
    return at.batch * t->strides[0] + at.head * t->strides[1] + token * t->strides[2];
}

static int64_t document_at(const attention_job *j, int64_t batch, int64_t token) {
    const an_tensor *t = j->documents;
    return an_load_index(t, batch * t->strides[0] + token * t->strides[1]);
}

static void tile_set_keys(const attention_job *j, tile_of *tile, int64_t begin, int64_t end) {
    tile->keys = (range){begin, an_attention_smaller(AN_ATTENTION_KEYS, end - begin)};
    for (int64_t i = 0; j->documents && i < tile->keys.count; i++)
        tile->documents[i] = document_at(j, tile->at.batch, begin + i);
}

static an_key_range visible_keys(const attention_job *j, range queries) {
    const int64_t first = j->offset + queries.begin;
    return an_attention_visible(j->attributes, first, first + queries.count - 1, j->keys);
}

/* The keys of a tile that one query sees, counted in the tile. */
static range seen_in_tile(const attention_job *j, const tile_of *tile, int64_t query) {
    const an_key_range visible = visible_keys(j, (range){query, 1});
    const int64_t tile_end = tile->keys.begin + tile->keys.count;
    const int64_t begin = visible.begin > tile->keys.begin ? visible.begin : tile->keys.begin;
    const int64_t end = an_attention_smaller(visible.end, tile_end);
    return (range){begin - tile->keys.begin, end - begin};
}

static an_philox_key sample_key(const attention_job *j, int64_t batch) {
    an_philox_key key = j->key;
    key.sample = (uint64_t)an_load_index(j->samples, batch * j->samples->strides[0]);
    return key;
}

static void *thread_scratch(const attention_job *j, int thread) {
    return (char *)j->call->scratch + (size_t)thread * j->thread_bytes;
}

static inline float infinity_f32(void) {
    return __builtin_inff();
}
static inline double infinity_f64(void) {
    return __builtin_inf();
}

#define AN_TEMPLATE "kernels/attention_template.h"
#include "kernels/instantiate.h"

/* The larger of what the tasks of a thread lay out: three tiles of queries or two, with two to four tiles of keys and,
 * for the gradient of keys, two tiles of scores. */
static size_t bytes_of_thread(const an_call *call, bool is_diff) {
    const size_t size = (size_t)call->dst[0].dims[3], element = an_call_is_f64(call) ? sizeof(double) : sizeof(float);
    const size_t query_tile = AN_ATTENTION_QUERIES * size, key_tile = AN_ATTENTION_KEYS * size;
    const size_t score_tile = AN_ATTENTION_QUERIES * AN_ATTENTION_KEYS;
    const size_t elements = is_diff ? 3 * query_tile + 4 * key_tile + 2 * score_tile : 2 * query_tile + 2 * key_tile;
    return an_round_up(elements * element, AN_ALIGNMENT);
}

static size_t attention_scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * bytes_of_thread(call, false);
}

static size_t attention_diff_scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * bytes_of_thread(call, true);
}

static const an_tensor *optional(const an_call *call, int input) {
    return input < call->src_count && call->src[input].dtype != AN_DTYPE_NONE ? &call->src[input] : NULL;
}

/* What both kernels need: q is input `first`, the optional inputs begin at `first_optional`. */
static an_status make_job(attention_job *j, const an_call *call, int first, int first_optional) {
    const int shift = first_optional - AN_ATTENTION_QUERY_OFFSET;
    const an_tensor *offset = optional(call, first_optional);
    *j = (attention_job){.call = call, .attributes = call->attributes};
    j->q = &call->src[first];
    j->k = &call->src[first + 1];
    j->v = &call->src[first + 2];
    j->documents = optional(call, shift + AN_ATTENTION_DOCUMENTS);
    j->mask = optional(call, shift + AN_ATTENTION_MASK);
    j->samples = optional(call, shift + AN_ATTENTION_SAMPLES);
    j->heads = j->q->dims[1];
    j->queries = j->q->dims[2];
    j->size = j->q->dims[3];
    j->kv_heads = j->k->dims[1];
    j->keys = j->k->dims[2];
    j->query_tiles = (j->queries + AN_ATTENTION_QUERIES - 1) / AN_ATTENTION_QUERIES;
    j->key_tiles = (j->keys + AN_ATTENTION_KEYS - 1) / AN_ATTENTION_KEYS;
    j->offset = offset ? an_load_index(offset, 0) : 0;
#if defined(__x86_64__)
    j->has_avx2 = __builtin_cpu_supports("avx2");
#endif
    for (int i = 0; j->mask && i < j->mask->ndims; i++)
        j->mask_strides[4 - j->mask->ndims + i] = j->mask->dims[i] == 1 ? 0 : j->mask->strides[i];
    if (j->attributes->dropout > 0) {
        j->has_dropout = true;
        j->threshold = an_dropout_threshold(j->attributes->dropout);
        j->key.seed = (uint64_t)an_load_index(&call->src[shift + AN_ATTENTION_SEED], 0);
        j->key.step = (uint64_t)an_load_index(&call->src[shift + AN_ATTENTION_STEP], 0);
        j->key.site = (uint64_t)j->attributes->site;
    }
    if (j->offset < 0 || j->offset > AN_ATTENTION_FARTHEST)
        return AN_ERROR(call->ctx, AN_ERR_KERNEL,
                        "query_offset is %" PRId64 "; it is the position of query 0, from 0 to %" PRId64, j->offset,
                        AN_ATTENTION_FARTHEST);
    return AN_OK;
}

static an_status run_attention(const an_call *call) {
    attention_job j;
    const an_status status = make_job(&j, call, AN_ATTENTION_Q, AN_ATTENTION_QUERY_OFFSET);
    if (status != AN_OK) return status;
    j.dst = &call->dst[0];
    j.log_sum = &call->dst[1];
    j.thread_bytes = bytes_of_thread(call, false);
    an_parallel(call->ctx, j.q->dims[0] * j.heads * j.query_tiles,
                an_call_is_f64(call) ? forward_task_f64 : forward_task_f32, &j);
    return AN_OK;
}

static an_status run_attention_diff(const an_call *call) {
    attention_job j;
    const bool is_f64 = an_call_is_f64(call);
    const an_status status = make_job(&j, call, AN_ATTENTION_DIFF_OF_Q, AN_ATTENTION_DIFF_OPTIONAL);
    if (status != AN_OK) return status;
    j.diff_dst = &call->src[AN_ATTENTION_DIFF_DST];
    j.dst = &call->src[AN_ATTENTION_DIFF_OF_DST];
    j.log_sum = &call->src[AN_ATTENTION_DIFF_OF_SUM];
    j.diff_q = &call->dst[0];
    j.diff_k = &call->dst[1];
    j.diff_v = &call->dst[2];
    j.thread_bytes = bytes_of_thread(call, true);
    const int64_t batch = j.q->dims[0];
    an_parallel(call->ctx, batch * j.heads * j.query_tiles, is_f64 ? diff_q_task_f64 : diff_q_task_f32, &j);
    an_parallel(call->ctx, batch * j.kv_heads * j.key_tiles, is_f64 ? diff_kv_task_f64 : diff_kv_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(attention) = {
    {.name = "reference", .scratch = attention_scratch, .run = run_attention},
    {0},
};
AN_KERNEL_LIST(attention_diff) = {
    {.name = "reference", .scratch = attention_diff_scratch, .run = run_attention_diff},
    {0},
};
