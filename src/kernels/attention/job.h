/* What the kernels of attention share: operands and sizes of a call, and which keys a query sees. */
#ifndef AN_KERNELS_ATTENTION_JOB_H
#define AN_KERNELS_ATTENTION_JOB_H

#include "base/philox.h"
#include "kernels/attention/attention.h"
#include "kernels/common/row.h"

/* Compiled once a level. */
#define an_attention_job_make AN_LEVELED(an_attention_job_make)
#define an_attention_diff_job_make AN_LEVELED(an_attention_diff_job_make)
#define an_attention_diff_job_shape AN_LEVELED(an_attention_diff_job_shape)

typedef struct an_attention_job {
    const an_call *call;
    const an_attention_attributes *attributes;
    const an_tensor *q, *k, *v, *dst, *log_sum;           /* log_sum: log-sum-exp of a query's scores */
    const an_tensor *diff_dst, *diff_q, *diff_k, *diff_v; /* of attention_diff */
    const an_tensor *documents, *mask, *samples;          /* NULL: absent */
    int64_t mask_strides[4];                              /* over (batch, heads, queries, keys), 0 where it repeats */
    int64_t batch, heads, kv_heads, queries, keys, size, offset;
    bool has_dropout;
    uint32_t threshold;
    an_philox_key key; /* without its sample */
    /* Set by the kernel: how it cuts the work, and the bytes of scratch of one thread. */
    int64_t query_tiles, key_tiles;
    size_t thread_bytes;
} an_attention_job;

/* How a kernel of attention runs forward, for kernels of other ops: tasks are tiles of queries of heads of samples. */
typedef struct an_attention_forward {
    void (*task)(void *job, int64_t index, int thread);
    int64_t query_tile;
    size_t thread_bytes;
} an_attention_forward;
#define an_attention_portable_forward AN_LEVELED(an_attention_portable_forward)
#define an_attention_tiled_forward AN_LEVELED(an_attention_tiled_forward)
#define an_attention_amx_forward AN_LEVELED(an_attention_amx_forward)
an_attention_forward an_attention_portable_forward(const an_call *call);

/* The kernels besides the portable one: tiled.c and amx.c. */
#define an_attention_tiled_scratch AN_LEVELED(an_attention_tiled_scratch)
#define an_attention_tiled_run AN_LEVELED(an_attention_tiled_run)
#define an_attention_diff_tiled_scratch AN_LEVELED(an_attention_diff_tiled_scratch)
#define an_attention_diff_tiled_run AN_LEVELED(an_attention_diff_tiled_run)
#define an_attention_amx_applies AN_LEVELED(an_attention_amx_applies)
#define an_attention_diff_amx_applies AN_LEVELED(an_attention_diff_amx_applies)
#define an_attention_amx_scratch AN_LEVELED(an_attention_amx_scratch)
#define an_attention_amx_run AN_LEVELED(an_attention_amx_run)
#define an_attention_diff_amx_scratch AN_LEVELED(an_attention_diff_amx_scratch)
#define an_attention_diff_amx_run AN_LEVELED(an_attention_diff_amx_run)
#ifdef __FMA__
an_attention_forward an_attention_tiled_forward(const an_call *call);
size_t an_attention_tiled_scratch(const an_call *call);
an_status an_attention_tiled_run(const an_call *call);
size_t an_attention_diff_tiled_scratch(const an_call *call);
an_status an_attention_diff_tiled_run(const an_call *call);
#endif
#ifdef __AVX512F__
an_attention_forward an_attention_amx_forward(const an_call *call);
bool an_attention_amx_applies(const an_call *call);
bool an_attention_diff_amx_applies(const an_call *call);
size_t an_attention_amx_scratch(const an_call *call);
an_status an_attention_amx_run(const an_call *call);
size_t an_attention_diff_amx_scratch(const an_call *call);
an_status an_attention_diff_amx_run(const an_call *call);
#endif

/* Fails if the query offset is out of its range. */
an_status an_attention_job_make(an_attention_job *job, const an_call *call);
an_status an_attention_diff_job_make(an_attention_job *job, const an_call *call);
void an_attention_diff_job_shape(an_attention_job *job, const an_call *call); /* only what a call without data has */

/* A head of one sample. */
typedef struct an_head {
    int64_t batch, head;
} an_head;

/* The head of keys and values that a head of queries looks at. */
static inline an_head an_key_head(const an_attention_job *j, an_head at) {
    return (an_head){at.batch, at.head / (j->heads / j->kv_heads)};
}

/* Of tokens; in a tile, or in the sequence. */
typedef struct an_tokens {
    int64_t begin, count;
} an_tokens;

static inline int64_t an_tiles(int64_t tokens, int64_t size) {
    return an_divide_up(tokens, size);
}

static inline an_tokens an_tile_tokens(int64_t tile, int64_t size, int64_t end) {
    return (an_tokens){tile * size, an_smaller(size, end - tile * size)};
}

/* In (batch, heads, tokens, size), and in log_sum, which has no size. */
static inline int64_t an_token_offset(const an_tensor *t, an_head at, int64_t token) {
    return at.batch * t->strides[0] + at.head * t->strides[1] + token * t->strides[2];
}

/* Asks for the memory of a token, if there is one, because tokens lie further apart than the hardware looks ahead: some
 * tokens before it is read, or while that is computed which will be written there. */
enum { AN_PREFETCH_AHEAD = 16 };
static inline void an_prefetch_token(const an_tensor *t, an_head at, int64_t token, bool is_target) {
    enum { LINE = 64, SECOND_LEVEL = 2 };
    const int64_t bytes = (int64_t)an_dtype_size(t->dtype);
    if (token >= t->dims[2]) return;
    const char *row = (const char *)t->data + an_token_offset(t, at, token) * bytes;
    for (int64_t i = 0; i < t->dims[3] * bytes; i += LINE) {
        if (is_target)
            __builtin_prefetch(row + i, 1);
        else
            __builtin_prefetch(row + i, 0, SECOND_LEVEL);
    }
}

/* The keys that any of these queries sees by causality and window. */
static inline an_key_range an_visible_keys(const an_attention_job *j, an_tokens queries) {
    const int64_t first = j->offset + queries.begin;
    return an_attention_visible(j->attributes, first, first + queries.count - 1, j->keys);
}

/* The keys of a tile that one query sees, counted in the tile; {0, 0} if there is none. */
static inline an_tokens an_seen_in_tile(const an_attention_job *j, an_tokens tile, int64_t query) {
    const an_key_range visible = an_visible_keys(j, (an_tokens){query, 1});
    const int64_t begin = visible.begin > tile.begin ? visible.begin : tile.begin;
    const int64_t end = an_smaller(visible.end, tile.begin + tile.count);
    return begin < end ? (an_tokens){begin - tile.begin, end - begin} : (an_tokens){0, 0};
}

/* Of these queries, those from the first to the last that see any of these keys by causality and window. */
static inline an_tokens an_seeing_queries(const an_attention_job *j, an_tokens queries, an_tokens keys) {
    const int64_t window = j->attributes->window, last = keys.begin + keys.count - 1;
    int64_t begin = queries.begin, end = queries.begin + queries.count;
    if (j->attributes->causal && begin < keys.begin - j->offset) begin = keys.begin - j->offset;
    if (window > 0) end = an_smaller(end, last + window - j->offset);
    return (an_tokens){begin, end - begin};
}

static inline int64_t an_document_at(const an_attention_job *j, int64_t batch, int64_t token) {
    const an_tensor *t = j->documents;
    return an_load_index(t, batch * t->strides[0] + token * t->strides[1]);
}

static inline void an_load_documents(const an_attention_job *j, int64_t batch, an_tokens tokens, int64_t *documents) {
    for (int64_t i = 0; j->documents && i < tokens.count; i++)
        documents[i] = an_document_at(j, batch, tokens.begin + i);
}

static inline void *an_thread_scratch(const an_attention_job *j, int thread) {
    return (char *)j->call->scratch + (size_t)thread * j->thread_bytes;
}

/* The random words that decide about a query's probabilities, for n keys from key `first` on. */
static inline void an_dropout_words(const an_attention_job *j, an_head at, int64_t query, int64_t first, int64_t n,
                                    uint32_t *words) {
    const uint64_t row = (uint64_t)(at.head * j->queries + query);
    an_philox_key key = j->key;
    key.sample = (uint64_t)an_load_index(j->samples, at.batch * j->samples->strides[0]);
    an_random_block_u32(key, row * (uint64_t)j->keys + (uint64_t)first, n, words);
}

/* Where the mask's element for a query and key 0 lies. */
static inline int64_t an_mask_offset(const an_attention_job *j, an_head at, int64_t query) {
    const int64_t *strides = j->mask_strides;
    return at.batch * strides[0] + at.head * strides[1] + query * strides[2];
}

#endif
