#include "kernels/attention/diff.h"

#include "base/context.h"
#include "base/memory.h"
#include "base/parallel.h"

/* Heads of keys in a batch, for each thread, from which on a task is one of them: fewer would leave threads idle.
 * Otherwise scores are computed twice, which is 7 products for 5. Both ways have the same bits. */
enum { ENOUGH_HEADS = 2 };

typedef enum { BY_HEADS, BY_QUERIES, BY_KEYS } diff_cut;

typedef struct {
    const an_attention_job *job;
    const an_diff_kernel *kernel;
    diff_cut cut;
    bool slot_is_task; /* which part of the scratch a task has: with fewer tasks than threads, its own */
    int64_t query_tiles, key_tiles;
    size_t slot_bytes;
} diff_work;

static an_diff_part part_of(const diff_work *w, int64_t index) {
    const an_attention_job *j = w->job;
    const int64_t group = j->heads / j->kv_heads;
    an_diff_part part = {.queries = {0, j->queries}, .keys = {0, j->keys}};
    part.of_queries = w->cut != BY_KEYS;
    part.of_keys = w->cut != BY_QUERIES;
    if (w->cut == BY_QUERIES) {
        part.queries = an_tile_tokens(index % w->query_tiles, w->kernel->query_tile, j->queries);
        index /= w->query_tiles;
        part.heads = (an_tokens){index % j->heads, 1};
        part.batch = index / j->heads;
        return part;
    }
    if (w->cut == BY_KEYS) {
        part.keys = an_tile_tokens(index % w->key_tiles, w->kernel->key_tile, j->keys);
        index /= w->key_tiles;
    }
    part.heads = (an_tokens){index % j->kv_heads * group, group};
    part.batch = index / j->kv_heads;
    return part;
}

static void task(void *user, int64_t index, int thread) {
    const diff_work *w = user;
    const an_diff_part part = part_of(w, index);
    const size_t slot = w->slot_is_task ? (size_t)index : (size_t)thread;
    w->kernel->run(w->job, &part, (char *)w->job->call->scratch + slot * w->slot_bytes);
}

/* How many tasks there are, and the bytes of one. */
static int64_t tasks_of(const diff_work *w) {
    const an_attention_job *j = w->job;
    switch (w->cut) {
    case BY_QUERIES: return j->batch * j->heads * w->query_tiles;
    case BY_KEYS: return j->batch * j->kv_heads * w->key_tiles;
    case BY_HEADS: break;
    }
    return j->batch * j->kv_heads;
}

static diff_work make_work(const an_attention_job *j, const an_diff_kernel *kernel, diff_cut cut) {
    diff_work w = {.job = j, .kernel = kernel, .cut = cut};
    w.query_tiles = an_tiles(j->queries, kernel->query_tile);
    w.key_tiles = an_tiles(j->keys, kernel->key_tile);
    w.slot_is_task = tasks_of(&w) < an_context_threads(j->call->ctx);
    const an_diff_part largest = part_of(&w, 0);
    w.slot_bytes = an_round_up(kernel->bytes(j->size, an_diff_held(&largest, kernel->key_tile), largest.queries.count),
                               AN_ALIGNMENT);
    return w;
}

/* At smaller sizes the other way may be taken, so both must have room. */
size_t an_attention_diff_scratch(const an_call *call, const an_diff_kernel *kernel) {
    an_attention_job j;
    size_t bytes = 0;
    an_attention_diff_job_shape(&j, call);
    for (diff_cut cut = BY_HEADS; cut <= BY_KEYS; cut++) {
        const diff_work w = make_work(&j, kernel, cut);
        const size_t slots = (size_t)an_smaller(tasks_of(&w), an_context_threads(call->ctx));
        if (slots * w.slot_bytes > bytes) bytes = slots * w.slot_bytes;
    }
    return bytes;
}

an_status an_attention_diff_run(const an_call *call, const an_diff_kernel *kernel) {
    an_attention_job j;
    const an_status status = an_attention_diff_job_make(&j, call);
    if (status != AN_OK) return status;
    const bool is_whole = j.batch * j.kv_heads >= (int64_t)ENOUGH_HEADS * an_context_threads(call->ctx);
    for (diff_cut cut = is_whole ? BY_HEADS : BY_QUERIES; cut <= (is_whole ? BY_HEADS : BY_KEYS); cut++) {
        diff_work w = make_work(&j, kernel, cut);
        an_parallel(call->ctx, tasks_of(&w), task, &w);
    }
    return AN_OK;
}
