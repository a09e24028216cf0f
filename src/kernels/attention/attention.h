/* Kernels of ops/attention.c: softmax(scale · q kᵀ + mask) v by tiles, so that scores never lie in memory as a
 * whole. */
#ifndef AN_KERNELS_ATTENTION_ATTENTION_H
#define AN_KERNELS_ATTENTION_ATTENTION_H

#include "base/integer.h"
#include "kernels/common/list.h"

typedef struct an_attention_attributes {
    bool causal;
    double scale;
    int64_t window; /* 0: none */
    double dropout; /* rate; 0: none */
    int64_t site;   /* of the dropout: kernels/elementwise/dropout.h */
} an_attention_attributes;

/* Inputs of attention. Those after v may be absent. */
enum {
    AN_ATTENTION_Q,
    AN_ATTENTION_K,
    AN_ATTENTION_V,
    AN_ATTENTION_QUERY_OFFSET,
    AN_ATTENTION_DOCUMENTS,
    AN_ATTENTION_MASK,
    AN_ATTENTION_SAMPLES,
    AN_ATTENTION_SEED,
    AN_ATTENTION_STEP,
    AN_ATTENTION_INPUTS
};

/* Inputs of attention_diff. The optional ones follow in the same order. */
enum {
    AN_ATTENTION_DIFF_DST,
    AN_ATTENTION_DIFF_OF_Q,
    AN_ATTENTION_DIFF_OF_K,
    AN_ATTENTION_DIFF_OF_V,
    AN_ATTENTION_DIFF_OF_DST,
    AN_ATTENTION_DIFF_OF_SUM, /* log-sum-exp */
    AN_ATTENTION_DIFF_OPTIONAL,
    AN_ATTENTION_DIFF_INPUTS = AN_ATTENTION_DIFF_OPTIONAL + AN_ATTENTION_INPUTS - AN_ATTENTION_QUERY_OFFSET
};

/* Inputs of cached_attention, which begin as those of attention. */
enum {
    AN_CACHED_KEYS = AN_ATTENTION_V + 1, /* keys and values of all positions, which the op writes */
    AN_CACHED_VALUES,
    AN_CACHED_POSITIONS,
    AN_CACHED_SLOTS,
    AN_CACHED_INPUTS
};

typedef struct an_cached_attributes {
    double scale;
    int64_t window; /* 0: none */
} an_cached_attributes;

enum {
    AN_ATTENTION_HEAD = 256,   /* largest head size */
    AN_ATTENTION_QUERIES = 32, /* of a tile */
    AN_ATTENTION_KEYS = 64,    /* of a tile: with heads of 64 all that a tile needs stays in a second-level cache */
};

/* Largest query offset and window: far over any sequence, and far from overflow. */
#define AN_ATTENTION_FARTHEST (INT64_C(1) << 40)

typedef struct an_key_range {
    int64_t begin, end;
} an_key_range;

/* The keys that queries at positions first to last may see by causality and window; begin = end if there is none. */
static inline an_key_range an_attention_visible(const an_attention_attributes *attributes, int64_t first, int64_t last,
                                                int64_t keys) {
    const int64_t back = attributes->window > 0 ? first - attributes->window + 1 : 0;
    const int64_t begin = an_smaller(back > 0 ? back : 0, keys);
    const int64_t end = attributes->causal ? an_smaller(last + 1, keys) : keys;
    return (an_key_range){begin, end > begin ? end : begin};
}

AN_DECLARE_KERNELS(attention);
AN_DECLARE_KERNELS(attention_diff);
AN_DECLARE_KERNELS(cached_attention);

#endif
