/* Attention by tiles, with fused multiply-adds: f32 and f64, and all types that compute in f32.
 *
 * A task of the forward op has some blocks of queries of one head. It goes over the tiles of keys, which it packs for
 * all its queries, with a running softmax. diff.h says how the gradient is cut; a task goes over the tiles of keys
 * and, for each, over the tiles of queries, so that what is added up for a tile of keys stays in the cache.
 *
 * Every element of a product is one chain of fused multiply-adds over its terms in order, so that all widths of vectors
 * give the same bits. Parts of a product where nothing is seen are left out; the rest of what is hidden is multiplied
 * with a probability of 0. Keys after the last one that a query of a task sees are not read, so a cache may hold
 * anything there.
 */
#include "kernels/attention/job.h"

#ifdef __FMA__
#include <immintrin.h>
#include <string.h>

#include "base/context.h"
#include "base/parallel.h"
#include "kernels/attention/diff.h"
#include "kernels/attention/rows.h"

enum {
    ROWS = 4,     /* of a register tile */
    SQUARE = 4,   /* rows and columns that are transposed at once */
    GRANULE = 16, /* columns are computed in multiples of it: the widest vector of f32 */
    SLAB = 64,    /* keys that are packed together: a product with heads of 64 stays in a first-level cache */
    BLOCK = 32,   /* queries of the forward op's tile */
    TASK = 128,   /* queries of a task */
    TILE = 64     /* queries, and keys, of the gradient's tile */
};

/* ROWS × MOST_VECTORS sums fill half of the registers. */
#ifdef __AVX512F__
enum { MOST_VECTORS = 4 };
#else
enum { MOST_VECTORS = 2 };
#endif

/* Elements d to d + 3 of four rows become rows, SLAB apart. */
static inline void transpose_f32(const float *const rows[SQUARE], int64_t d, float *to) {
    __m128 a = _mm_loadu_ps(rows[0] + d), b = _mm_loadu_ps(rows[1] + d);
    __m128 c = _mm_loadu_ps(rows[2] + d), e = _mm_loadu_ps(rows[3] + d);
    _MM_TRANSPOSE4_PS(a, b, c, e);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + SLAB, b);
    _mm_storeu_ps(to + 2 * SLAB, c);
    _mm_storeu_ps(to + 3 * SLAB, e);
}
static inline void transpose_f64(const double *const rows[SQUARE], int64_t d, double *to) {
    enum { LOWER = 0x20, UPPER = 0x31 }; /* halves of both operands */
    const __m256d a = _mm256_loadu_pd(rows[0] + d), b = _mm256_loadu_pd(rows[1] + d);
    const __m256d c = _mm256_loadu_pd(rows[2] + d), e = _mm256_loadu_pd(rows[3] + d);
    const __m256d ab_even = _mm256_unpacklo_pd(a, b), ab_odd = _mm256_unpackhi_pd(a, b);
    const __m256d ce_even = _mm256_unpacklo_pd(c, e), ce_odd = _mm256_unpackhi_pd(c, e);
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(ab_even, ce_even, LOWER));
    _mm256_storeu_pd(to + SLAB, _mm256_permute2f128_pd(ab_odd, ce_odd, LOWER));
    _mm256_storeu_pd(to + 2 * SLAB, _mm256_permute2f128_pd(ab_even, ce_even, UPPER));
    _mm256_storeu_pd(to + 3 * SLAB, _mm256_permute2f128_pd(ab_odd, ce_odd, UPPER));
}

/* Elements of a row in scratch. */
static int64_t width_of(int64_t size) {
    return an_next_multiple(size, GRANULE);
}

/* The columns that lie in a slab, counted from there. */
static an_tokens within_slab(an_tokens columns, int64_t slab) {
    const int64_t begin = columns.begin > slab ? columns.begin - slab : 0;
    return (an_tokens){begin, an_smaller(columns.begin + columns.count - slab, SLAB) - begin};
}

#define AN_TEMPLATE "kernels/attention/tiled_template.h"
#include "kernels/common/instantiate.h"

/* ---- kernels ---- */

static size_t forward_bytes(const an_call *call) {
    const int64_t size = call->src[AN_ATTENTION_Q].dims[3];
    forward_scratch_f32 f32;
    forward_scratch_f64 f64;
    return an_call_is_f64(call) ? forward_layout_f64(NULL, size, &f64) : forward_layout_f32(NULL, size, &f32);
}

size_t an_attention_tiled_scratch(const an_call *call) {
    return (size_t)an_context_threads(call->ctx) * forward_bytes(call);
}

an_attention_forward an_attention_tiled_forward(const an_call *call) {
    return (an_attention_forward){an_call_is_f64(call) ? forward_task_f64 : forward_task_f32, TASK,
                                  forward_bytes(call)};
}

an_status an_attention_tiled_run(const an_call *call) {
    an_attention_job j;
    const an_status status = an_attention_job_make(&j, call);
    if (status != AN_OK) return status;
    j.query_tiles = an_tiles(j.queries, TASK);
    j.thread_bytes = forward_bytes(call);
    an_parallel(call->ctx, j.batch * j.heads * j.query_tiles,
                an_call_is_f64(call) ? forward_task_f64 : forward_task_f32, &j);
    return AN_OK;
}

static const an_diff_kernel diff_f32 = {TASK, TILE, diff_part_f32, diff_bytes_f32};
static const an_diff_kernel diff_f64 = {TASK, TILE, diff_part_f64, diff_bytes_f64};

size_t an_attention_diff_tiled_scratch(const an_call *call) {
    return an_attention_diff_scratch(call, an_call_is_f64(call) ? &diff_f64 : &diff_f32);
}

an_status an_attention_diff_tiled_run(const an_call *call) {
    return an_attention_diff_run(call, an_call_is_f64(call) ? &diff_f64 : &diff_f32);
}
#endif
