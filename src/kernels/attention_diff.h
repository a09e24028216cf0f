/* How the fast kernels cut the gradient of attention into tasks.
 *
 * The gradient of queries adds up over keys, those of keys and values over queries, and all of them need the scores. A
 * task that has a whole head of keys, and all heads of queries that look at it, computes every score once; the gradient of
 * its queries is added up in scratch. Where there are too few of these to keep the cores of a large machine busy, scores
 * are computed twice: by tiles of queries, and by tiles of keys. Both ways add in the same order and give the same bits, so
 * a sample has the same bits in any batch.
 */
#ifndef AN_KERNELS_ATTENTION_DIFF_H
#define AN_KERNELS_ATTENTION_DIFF_H

#include "kernels/attention_job.h"

/* Compiled once a level. */
#define an_attention_diff_scratch AN_LEVELED(an_attention_diff_scratch)
#define an_attention_diff_run AN_LEVELED(an_attention_diff_run)

/* What one task computes: heads of queries that look at one head of keys. */
typedef struct an_diff_part {
    int64_t batch;
    an_tokens heads, queries, keys;
    bool of_queries, of_keys; /* which gradients */
} an_diff_part;

typedef struct an_diff_kernel {
    int64_t query_tile, key_tile; /* of a task that is not a whole head */
    void (*run)(const an_attention_job *job, const an_diff_part *part, void *scratch);
    /* Scratch of a part. If several heads share the keys, all gradients of keys are kept: `held`, else a tile of them. */
    size_t (*bytes)(int64_t size, int64_t held, int64_t queries);
} an_diff_kernel;

size_t an_attention_diff_scratch(const an_call *call, const an_diff_kernel *kernel);
an_status an_attention_diff_run(const an_call *call, const an_diff_kernel *kernel);

/* Keys whose gradients a part keeps. */
static inline int64_t an_diff_held(const an_diff_part *part, int64_t key_tile) {
    return part->heads.count > 1 ? part->keys.count : key_tile;
}

/* Asks for the memory of the gradients of `count` queries, and of as many keys, while they are computed. */
static inline void an_prefetch_diff(const an_attention_job *j, const an_diff_part *part, an_head at, int64_t query,
                                    int64_t key, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (part->of_queries) an_prefetch_token(j->diff_q, at, query + i, true);
        if (part->of_keys) an_prefetch_token(j->diff_k, an_key_head(j, at), key + i, true);
        if (part->of_keys) an_prefetch_token(j->diff_v, an_key_head(j, at), key + i, true);
    }
}

#endif
