/* Portable kernels of attention, by tiles of queries and keys (Dao and others, "FlashAttention", 2022).
 *
 * A task has one tile of queries and goes over the tiles of keys, with a running softmax; the gradient of keys and
 * values goes the other way round. What a query gets depends on its own row only: every sum over keys is cut at
 * multiples of the tile's size, whichever queries share the tile. Keys that causality or the window hide are not read,
 * so a cache may hold anything after the last key.
 */
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/attention/job.h"
#include "kernels/common/reduce_order.h"

/* The keys of the tile at hand, and the documents that they belong to. */
typedef struct {
    an_head at; /* the head of queries */
    an_tokens keys;
    int64_t documents[AN_ATTENTION_KEYS];
} tile_of;

/* Where the tile of a key begins. */
static int64_t tile_floor(int64_t key) {
    return key / AN_ATTENTION_KEYS * AN_ATTENTION_KEYS;
}

static void tile_set_keys(const an_attention_job *j, tile_of *tile, int64_t begin, int64_t end) {
    tile->keys = (an_tokens){begin, an_smaller(AN_ATTENTION_KEYS, end - begin)};
    an_load_documents(j, tile->at.batch, tile->keys, tile->documents);
}

static inline float infinity_f32(void) {
    return __builtin_inff();
}
static inline double infinity_f64(void) {
    return __builtin_inf();
}

#define AN_TEMPLATE "kernels/attention/template.h"
#include "kernels/common/instantiate.h"

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

static void cut(an_attention_job *j, bool is_diff) {
    j->query_tiles = an_tiles(j->queries, AN_ATTENTION_QUERIES);
    j->key_tiles = an_tiles(j->keys, AN_ATTENTION_KEYS);
    j->thread_bytes = bytes_of_thread(j->call, is_diff);
}

static an_status run_attention(const an_call *call) {
    an_attention_job j;
    const an_status status = an_attention_job_make(&j, call);
    if (status != AN_OK) return status;
    cut(&j, false);
    an_parallel(call->ctx, j.batch * j.heads * j.query_tiles,
                an_call_is_f64(call) ? forward_task_f64 : forward_task_f32, &j);
    return AN_OK;
}

an_attention_forward an_attention_portable_forward(const an_call *call) {
    return (an_attention_forward){an_call_is_f64(call) ? forward_task_f64 : forward_task_f32, AN_ATTENTION_QUERIES,
                                  bytes_of_thread(call, false)};
}

static an_status run_attention_diff(const an_call *call) {
    an_attention_job j;
    const bool is_f64 = an_call_is_f64(call);
    const an_status status = an_attention_diff_job_make(&j, call);
    if (status != AN_OK) return status;
    cut(&j, true);
    an_parallel(call->ctx, j.batch * j.heads * j.query_tiles, is_f64 ? diff_q_task_f64 : diff_q_task_f32, &j);
    an_parallel(call->ctx, j.batch * j.kv_heads * j.key_tiles, is_f64 ? diff_kv_task_f64 : diff_kv_task_f32, &j);
    return AN_OK;
}

AN_KERNEL_LIST(attention) = {
#ifdef __AVX512F__
    {.name = "amx",
     .applies = an_attention_amx_applies,
     .scratch = an_attention_amx_scratch,
     .run = an_attention_amx_run},
#endif
#ifdef __FMA__
    {.name = "tiled", .scratch = an_attention_tiled_scratch, .run = an_attention_tiled_run},
#endif
    {.name = "portable", .scratch = attention_scratch, .run = run_attention},
    {0},
};
AN_KERNEL_LIST(attention_diff) = {
#ifdef __AVX512F__
    {.name = "amx",
     .applies = an_attention_diff_amx_applies,
     .scratch = an_attention_diff_amx_scratch,
     .run = an_attention_diff_amx_run},
#endif
#ifdef __FMA__
    {.name = "tiled", .scratch = an_attention_diff_tiled_scratch, .run = an_attention_diff_tiled_run},
#endif
    {.name = "portable", .scratch = attention_diff_scratch, .run = run_attention_diff},
    {0},
};
