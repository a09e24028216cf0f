/* How the fast kernels cut the gradient of attention into tasks.
 *
 * The gradient of queries adds up over keys, those of keys and values over queries, and all of them need the scores. A
 * task that has a whole head of keys, and all heads of queries that look at it, computes every score once; the gradient
 * of its queries is added up in scratch. Where there are too few of these to keep the cores of a large machine busy,
 * scores are computed twice: by tiles of queries, and by tiles of keys. Both ways add in the same order and give the
 * same bits, so a sample has the same bits in any batch.
 */
#ifndef AN_KERNELS_ATTENTION_DIFF_H
#define AN_KERNELS_ATTENTION_DIFF_H

#include "kernels/attention/job.h"

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
    /* Scratch of a part. If several heads share the keys, all gradients of keys are kept: `held`, else a tile of
     * them. */
    size_t (*bytes)(int64_t size, int64_t held, int64_t queries);
} an_diff_kernel;

size_t an_attention_diff_scratch(const an_call *call, const an_diff_kernel *kernel);
an_status an_attention_diff_run(const an_call *call, const an_diff_kernel *kernel);

/* Keys whose gradients a part keeps. */
static inline int64_t an_diff_held(const an_diff_part *part, int64_t key_tile) {
    return part->heads.count > 1 ? part->keys.count : key_tile;
}

/* Asks for the memory of gradients while they are computed: of `count` queries of a tile, from query `row` of it on, at
 * the part's first tile of keys; and of as many keys at the first tile of queries that sees them. */
static inline void an_prefetch_diff(const an_attention_job *j, const an_diff_part *part, an_head at, an_tokens queries,
                                    an_tokens keys, int64_t row, int64_t count) {
    const an_head key_at = an_key_head(j, at);
    const bool is_first = queries.begin <= an_seeing_queries(j, part->queries, keys).begin;
    for (int64_t i = row; i < row + count && part->of_queries && keys.begin == part->keys.begin; i++)
        an_prefetch_token(j->diff_q, at, queries.begin + i, true);
    for (int64_t i = row; i < row + count && part->of_keys && is_first; i++) {
        an_prefetch_token(j->diff_k, key_at, keys.begin + i, true);
        an_prefetch_token(j->diff_v, key_at, keys.begin + i, true);
    }
}

#endif
