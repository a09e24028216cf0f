/* Cases of ops/attention.c. The oracles go over all pairs of query and key, one at a time. */
#include <math.h>

#include "checkops/cases_dropout.h"
#include "kernels/attention/attention.h"

enum { LOW = 1 << AN_DTYPE_BF16 | 1 << AN_DTYPE_F16 };

/* The sizes of a case; q is input `first`, the optional inputs begin at `optional`. */
typedef struct {
    int first, optional;
    int64_t batch, heads, kv_heads, queries, keys, size;
} shape;

static shape shape_of(const check_array *src, int first, int optional) {
    const int64_t *q = src[first].dims, *k = src[first + 1].dims;
    return (shape){first, optional, q[0], q[1], k[1], q[2], k[2], q[3]};
}

/* ---- making ---- */

static check_input make_mask(check_random *r, shape s) {
    const int64_t full[] = {s.batch, s.heads, s.queries, s.keys};
    check_input mask = {.fill = CHECK_NORMAL, .ndims = (int)check_between(r, 0, 4), .no_gradient = true};
    mask.compute_dtype = check_chance(r, 50);
    for (int i = 0; i < mask.ndims; i++) mask.dims[i] = check_chance(r, 30) ? 1 : full[4 - mask.ndims + i];
    return mask;
}

static void make_options(check_random *r, check_case *c, shape s) {
    an_attention_attributes *attributes = (an_attention_attributes *)c->attributes;
    check_input *offset = &c->inputs[s.optional];
    attributes->causal = check_chance(r, 60);
    attributes->scale = (check_chance(r, 50) ? 1 : 0.3) / sqrt((double)s.size);
    attributes->window = check_chance(r, 30) ? check_between(r, 1, s.keys) : 0;
    c->input_count = s.optional;
    if (check_chance(r, 30)) return; /* no optional inputs at all */
    c->input_count = s.optional + 3;
    if (check_chance(r, 60)) /* past the last key, a window hides everything */
        *offset = (check_input){.fill = CHECK_NUMBER, .dtype = AN_DTYPE_I64, .low = check_between(r, 0, 2 * s.keys)};
    if (s.queries == s.keys && check_chance(r, 70)) {
        check_input *documents = &c->inputs[s.optional + 1];
        *documents = (check_input){.fill = CHECK_INDEX, .ndims = 2, .dims = {s.batch, s.keys}};
        documents->dtype = check_chance(r, 50) ? AN_DTYPE_I64 : AN_DTYPE_I32;
        documents->high = check_between(r, 1, 4);
    }
    if (check_chance(r, 40)) c->inputs[s.optional + 2] = make_mask(r, s);
    if (check_chance(r, 60)) return;
    c->input_count = s.optional + 6;
    check_random_inputs(r, c, s.optional + 3, s.batch);
    attributes->dropout = (double)check_between(r, 1, 90) / 100;
    attributes->site = check_between(r, 0, INT64_MAX / 2);
    if (check_chance(r, 50)) attributes->site = -attributes->site; /* the bits of a hash */
}

static shape make_operands(check_random *r, check_case *c, int first, int optional) {
    shape s = {.first = first, .optional = optional};
    const bool is_wide = check_chance(r, 10); /* wide heads are few, and have few tokens */
    s.batch = is_wide ? 1 : check_between(r, 1, 2);
    s.kv_heads = is_wide ? 1 : check_between(r, 1, 2);
    s.heads = s.kv_heads * check_between(r, 1, 3);
    s.size = is_wide ? check_between(r, 60, AN_ATTENTION_HEAD) : check_between(r, 1, 20);
    s.queries = check_size(r, is_wide || check_chance(r, 50) ? 40 : 80);
    s.keys = check_chance(r, 50) ? s.queries : check_size(r, is_wide || check_chance(r, 50) ? 70 : 150);
    c->inputs[first] = (check_input){.fill = CHECK_NORMAL, .ndims = 4, .dims = {s.batch, s.heads, s.queries, s.size}};
    c->inputs[first + 1] =
        (check_input){.fill = CHECK_NORMAL, .ndims = 4, .dims = {s.batch, s.kv_heads, s.keys, s.size}};
    c->inputs[first + 2] = c->inputs[first + 1];
    return s;
}

static void attention_make(check_random *r, check_case *c) {
    make_options(r, c, make_operands(r, c, AN_ATTENTION_Q, AN_ATTENTION_QUERY_OFFSET));
    c->no_gradient_outputs = 1 << 1;
}

static void attention_diff_make(check_random *r, check_case *c) {
    const shape s = make_operands(r, c, AN_ATTENTION_DIFF_OF_Q, AN_ATTENTION_DIFF_OPTIONAL);
    c->inputs[AN_ATTENTION_DIFF_DST] = c->inputs[AN_ATTENTION_DIFF_OF_DST] = c->inputs[AN_ATTENTION_DIFF_OF_Q];
    c->inputs[AN_ATTENTION_DIFF_OF_SUM] = (check_input){
        .fill = CHECK_NORMAL,
        .ndims = 3,
        .dims = {s.batch, s.heads, s.queries},
        .compute_dtype = true,
    };
    make_options(r, c, s);
    c->tolerance_factor =
        4; /* a sum that is not the scores' own makes huge probabilities of scores and of their errors */
}

/* ---- oracles ---- */

/* A pair of query and key: what is asked of it. */
typedef struct {
    int64_t batch, head, query, key;
} pair;

static bool is_there(const check_case *c, int input) {
    return input < c->input_count && c->inputs[input].fill != CHECK_ABSENT;
}

static bool sees(const check_case *c, const check_array *src, shape s, pair p) {
    const an_attention_attributes *attributes = (const an_attention_attributes *)c->attributes;
    const check_array *documents = &src[s.optional + 1];
    const int64_t position = p.query + (is_there(c, s.optional) ? (int64_t)src[s.optional].data[0] : 0);
    if (attributes->causal && p.key > position) return false;
    if (attributes->window && p.key <= position - attributes->window) return false;
    return !is_there(c, s.optional + 1) ||
           documents->data[p.batch * s.keys + p.key] == documents->data[p.batch * s.keys + p.query];
}

static const long double *query_row(const check_array *array, shape s, pair p) {
    return array->data + ((p.batch * s.heads + p.head) * s.queries + p.query) * s.size;
}

static int64_t key_row(shape s, pair p) {
    return ((p.batch * s.kv_heads + p.head * s.kv_heads / s.heads) * s.keys + p.key) * s.size;
}

static long double dot(const long double *a, const long double *b, int64_t n) {
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static long double score(const check_case *c, const check_array *src, shape s, pair p) {
    const an_attention_attributes *attributes = (const an_attention_attributes *)c->attributes;
    const check_array *mask = &src[s.optional + 2];
    const int64_t full[] = {p.batch, p.head, p.query, p.key};
    int64_t at = 0;
    long double product = dot(query_row(&src[s.first], s, p), src[s.first + 1].data + key_row(s, p), s.size);
    if (!is_there(c, s.optional + 2)) return product * attributes->scale;
    for (int i = 0; i < mask->ndims; i++)
        at = at * mask->dims[i] + (mask->dims[i] == 1 ? 0 : full[4 - mask->ndims + i]);
    return product * attributes->scale + mask->data[at];
}

/* What dropout multiplies a probability with. */
static long double kept(const check_case *c, const check_array *src, shape s, pair p) {
    const an_attention_attributes *attributes = (const an_attention_attributes *)c->attributes;
    if (attributes->dropout == 0) return 1;
    const check_draw draw = {
        .seed = (uint64_t)(int64_t)src[s.optional + 4].data[0],
        .step = (uint64_t)(int64_t)src[s.optional + 5].data[0],
        .sample = (uint64_t)(int64_t)src[s.optional + 3].data[p.batch],
        .site = (uint64_t)attributes->site,
        .element = (uint64_t)((p.head * s.queries + p.query) * s.keys + p.key),
    };
    return check_keeps(draw, attributes->dropout) ? 1 / (1 - (long double)attributes->dropout) : 0;
}

static void attention_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const shape s = shape_of(src, AN_ATTENTION_Q, AN_ATTENTION_QUERY_OFFSET);
    for (int64_t row = 0; row < s.batch * s.heads * s.queries; row++) {
        pair p = {row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries, 0};
        long double sum = 0;
        for (p.key = 0; p.key < s.keys; p.key++)
            if (sees(c, src, s, p)) sum += expl(score(c, src, s, p));
        dst[1].data[row] = logl(sum); /* -inf if it sees nothing */
        for (p.key = 0; p.key < s.keys; p.key++) {
            if (!sees(c, src, s, p)) continue;
            const long double probability = expl(score(c, src, s, p)) / sum * kept(c, src, s, p);
            for (int64_t d = 0; d < s.size; d++)
                dst[0].data[row * s.size + d] += probability * src[AN_ATTENTION_V].data[key_row(s, p) + d];
        }
    }
}

/* dst and the log-sum-exp are inputs like others: the formula holds whatever they are. */
static void attention_diff_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const shape s = shape_of(src, AN_ATTENTION_DIFF_OF_Q, AN_ATTENTION_DIFF_OPTIONAL);
    const check_array *k = &src[AN_ATTENTION_DIFF_OF_K], *v = &src[AN_ATTENTION_DIFF_OF_V];
    for (int64_t i = 0; i < s.batch * s.heads * s.queries * s.keys; i++) {
        const int64_t row = i / s.keys;
        const pair p = {row / s.queries / s.heads, row / s.queries % s.heads, row % s.queries, i % s.keys};
        if (!sees(c, src, s, p)) continue;
        const long double *q = query_row(&src[AN_ATTENTION_DIFF_OF_Q], s, p);
        const long double *diff = query_row(&src[AN_ATTENTION_DIFF_DST], s, p);
        const long double factor = kept(c, src, s, p);
        const long double probability = expl(score(c, src, s, p) - src[AN_ATTENTION_DIFF_OF_SUM].data[row]);
        const long double through_value = factor * dot(diff, v->data + key_row(s, p), s.size);
        const long double through_sum = dot(diff, query_row(&src[AN_ATTENTION_DIFF_OF_DST], s, p), s.size);
        const long double diff_product =
            probability * (through_value - through_sum) * ((const an_attention_attributes *)c->attributes)->scale;
        for (int64_t d = 0; d < s.size; d++) {
            dst[0].data[row * s.size + d] += diff_product * k->data[key_row(s, p) + d];
            dst[1].data[key_row(s, p) + d] += diff_product * q[d];
            dst[2].data[key_row(s, p) + d] += probability * factor * diff[d];
        }
    }
}

/* ---- cached_attention: positions and slots in order, and a cache with room for them ---- */

static void cached_attention_make(check_random *r, check_case *c) {
    an_cached_attributes *attributes = (an_cached_attributes *)c->attributes;
    const int64_t batch = check_between(r, 1, 2), kv_heads = check_between(r, 1, 2), tokens = check_size(r, 20);
    const int64_t heads = kv_heads * check_between(r, 1, 3), size = check_between(r, 1, 20);
    const int64_t slot = check_between(r, 0, 2), first = check_size(r, 150) - 1, keys = first + batch * tokens + slot;
    const check_input k = {.fill = CHECK_NORMAL, .ndims = 4, .dims = {batch, kv_heads, tokens, size}};
    const check_input cache = {.fill = CHECK_NORMAL,
                               .ndims = 4,
                               .dims = {slot + batch, kv_heads, keys, size},
                               .only_dense = true,
                               .is_state = true};
    c->input_count = AN_CACHED_INPUTS;
    c->inputs[AN_ATTENTION_Q] = (check_input){.fill = CHECK_NORMAL, .ndims = 4, .dims = {batch, heads, tokens, size}};
    c->inputs[AN_ATTENTION_K] = c->inputs[AN_ATTENTION_V] = k;
    c->inputs[AN_CACHED_KEYS] = c->inputs[AN_CACHED_VALUES] = cache;
    c->inputs[AN_CACHED_POSITIONS] =
        (check_input){.fill = CHECK_ORDER, .ndims = 2, .dims = {batch, tokens}, .dtype = AN_DTYPE_I32, .low = first};
    c->inputs[AN_CACHED_SLOTS] =
        (check_input){.fill = CHECK_ORDER, .ndims = 1, .dims = {batch}, .dtype = AN_DTYPE_I64, .low = slot};
    c->inputs[AN_CACHED_POSITIONS].only_dense = c->inputs[AN_CACHED_SLOTS].only_dense = true;
    attributes->scale = (check_chance(r, 50) ? 1 : 0.3) / sqrt((double)size);
    attributes->window = check_chance(r, 30) ? check_between(r, 1, keys) : 0;
}

/* A row of keys or values: of this call, or from the cache. */
static const long double *cached_row(const check_array *now, const check_array *cache, int64_t batch, int64_t head,
                                     int64_t slot, int64_t first, int64_t position) {
    const int64_t *n = now->dims, *o = cache->dims;
    if (position < first) return cache->data + (((slot + batch) * o[1] + head) * o[2] + position) * o[3];
    return now->data + ((batch * n[1] + head) * n[2] + position - first) * n[3];
}

static void cached_attention_oracle(const check_case *c, const check_array *src, check_array *dst) {
    const an_cached_attributes *a = (const an_cached_attributes *)c->attributes;
    const check_array *q = &src[AN_ATTENTION_Q], *k = &src[AN_ATTENTION_K], *v = &src[AN_ATTENTION_V];
    const int64_t heads = q->dims[1], tokens = q->dims[2], size = q->dims[3], group = heads / k->dims[1];
    const int64_t slot = (int64_t)src[AN_CACHED_SLOTS].data[0];
    for (int64_t row = 0; row < q->dims[0] * heads * tokens; row++) {
        const int64_t batch = row / tokens / heads, head = row / tokens % heads / group, token = row % tokens;
        const int64_t first = (int64_t)src[AN_CACHED_POSITIONS].data[batch * tokens], last = first + token;
        const int64_t begin = a->window && last >= a->window ? last - a->window + 1 : 0;
        long double sum = 0;
        for (int64_t p = begin; p <= last; p++) {
            const long double *key = cached_row(k, &src[AN_CACHED_KEYS], batch, head, slot, first, p);
            const long double *value = cached_row(v, &src[AN_CACHED_VALUES], batch, head, slot, first, p);
            const long double weight = expl(dot(q->data + row * size, key, size) * a->scale);
            sum += weight;
            for (int64_t d = 0; d < size; d++) dst[0].data[row * size + d] += weight * value[d];
        }
        for (int64_t d = 0; d < size; d++) dst[0].data[row * size + d] /= sum;
        dst[1].data[row] = logl(sum);
    }
}

/* Inputs with a batch, but for the mask, which may have none. */
enum {
    ROWS = 1 << AN_ATTENTION_Q | 1 << AN_ATTENTION_K | 1 << AN_ATTENTION_V | 1 << AN_ATTENTION_DOCUMENTS |
           1 << AN_ATTENTION_SAMPLES,
    DIFF_MOVED = AN_ATTENTION_DIFF_OPTIONAL - AN_ATTENTION_QUERY_OFFSET, /* as the optional inputs come after others */
    DIFF_ROWS = ((1 << AN_ATTENTION_DIFF_OPTIONAL) - 1) | 1 << (AN_ATTENTION_DOCUMENTS + DIFF_MOVED) |
                1 << (AN_ATTENTION_SAMPLES + DIFF_MOVED)
};

/* On AMX, probabilities and gradients of scores are off by up to 2^-9 of themselves, one independently of the other,
 * and so are usual sums. Among thousands of them some are off by several times as much; and with a log-sum-exp that is
 * not the scores' own, gradients have sums of very different sizes. */
#define AMX_ERROR 0x1p-6
#define AMX_ERROR_DIFF 0x1p-4

const check_family check_attention[] = {
    {.op = "attention",
     .make = attention_make,
     .oracle = attention_oracle,
     .amx_error = AMX_ERROR,
     .low_dtypes = LOW,
     .rows = ROWS},
    {.op = "attention_diff",
     .make = attention_diff_make,
     .oracle = attention_diff_oracle,
     .amx_error = AMX_ERROR_DIFF,
     .low_dtypes = LOW,
     .rows = DIFF_ROWS,
     .no_grad_mode = true},
    {.op = "cached_attention",
     .make = cached_attention_make,
     .oracle = cached_attention_oracle,
     .amx_error = AMX_ERROR,
     .low_dtypes = LOW,
     .no_grad_mode = true},
    {0},
};
