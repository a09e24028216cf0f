/* Products of rounded rows with weights of q8_0 on tiles of 8-bit integers. The weights are read where they are, as
 * tiles of 16 columns of dst × 32 k: nothing is widened or copied. A number of 15 bits is high · 128 + low, so each
 * tile is multiplied twice. What they give is whole: the sums of 32 products of each column and row. One row has both
 * parts in one tile of two lanes, and its sums lie along the columns. The bits are those of rounded.c.
 */
#include "kernels/product/rounded.h"

#ifdef __AVX512F__
#include "base/context.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "base/unroll.h"
#include "kernels/common/tiles.h"

enum {
    LANES = AN_ROUNDED_ROWS,             /* rows of a in a tile, and columns of dst */
    FOURS = AN_Q8_0_ELEMENTS / 4,        /* of k: rows of a tile of a */
    LINE = 64,                           /* bytes of a cache line, and of a row of a tile of sums */
    GROUP_BYTES = LANES * AN_Q8_0_BYTES, /* of the blocks of a tile */
    ONE_ROW_LANES = 2,                   /* high and low */
    ONE_ROW_BYTES = ONE_ROW_LANES * 4,
    DEPTH_MOST = 1 << 24 /* so that distances between columns fit in 32 bits */
};

/* Bytes of b that a task multiplies, at least: some µs with one row. */
static const int64_t task_bytes = 64 << 10;

/* 32 k of 16 rows: for each four of k and each row, four numbers of 8 bits. */
typedef struct {
    _Alignas(LINE) uint32_t high[FOURS][LANES];
    uint32_t low[FOURS][LANES];
    float scales[LANES];
} many_rows;

/* And of one. */
typedef struct {
    uint32_t numbers[FOURS][ONE_ROW_LANES];
} one_row;

typedef struct {
    an_rounded_job job;
    int64_t blocks_a_task; /* of AN_ROUNDED_COLUMNS columns */
    bool is_one_row;
    many_rows *many; /* all of k of the first 16 rows, then of the next; or */
    one_row *one;
    float *one_scales;
} rounded;

/* ---- the rows ---- */

/* high · 128 + low, high in ±127 and low in −64 … 63. */
static void split(const int16_t *numbers, uint32_t *high, uint32_t *low) {
    enum { HALF = 64, SHIFT = 7 };
    int8_t parts[2][AN_Q8_0_ELEMENTS];
    for (int i = 0; i < AN_Q8_0_ELEMENTS; i++) {
        const int upper = (numbers[i] + HALF) >> SHIFT;
        parts[0][i] = (int8_t)upper;
        parts[1][i] = (int8_t)(numbers[i] - upper * (1 << SHIFT));
    }
    memcpy(high, parts[0], sizeof parts[0]);
    memcpy(low, parts[1], sizeof parts[1]);
}

static float round_one(const rounded *r, int64_t offset, int64_t block, uint32_t *high, uint32_t *low) {
    float buffer[AN_Q8_0_ELEMENTS];
    int16_t numbers[AN_Q8_0_ELEMENTS];
    const float scale = an_round_block(an_rounded_load(&r->job, offset, block, buffer), numbers);
    split(numbers, high, low);
    return scale;
}

static void round_task(void *user, int64_t index, int thread) {
    const rounded *r = user;
    const int64_t blocks = r->job.blocks, first = index * LANES, rows = an_smaller(LANES, r->job.rows - first);
    many_rows *to = r->many + index * blocks;
    (void)thread;
    if (rows < LANES) memset(to, 0, (size_t)blocks * sizeof *to);
    for (int64_t lane = 0; lane < rows; lane++) {
        const int64_t offset = an_rounded_row(&r->job, first + lane);
        for (int64_t block = 0; block < blocks; block++) {
            uint32_t high[FOURS], low[FOURS];
            to[block].scales[lane] = round_one(r, offset, block, high, low);
            for (int i = 0; i < FOURS; i++) to[block].high[i][lane] = high[i], to[block].low[i][lane] = low[i];
        }
    }
}

static void round_row(const rounded *r) {
    const int64_t offset = an_rounded_row(&r->job, 0);
    for (int64_t block = 0; block < r->job.blocks; block++) {
        uint32_t high[FOURS], low[FOURS];
        r->one_scales[block] = round_one(r, offset, block, high, low);
        for (int i = 0; i < FOURS; i++) r->one[block].numbers[i][0] = high[i], r->one[block].numbers[i][1] = low[i];
    }
}

/* ---- the weights ---- */

/* 16 columns of dst, at a step of 32 k. */
typedef struct {
    const unsigned char *from;
    int64_t stride, columns; /* columns: how many there are */
    __m512i apart;
} weights;

/* How far from each other 16 columns are. */
static inline __m512i distances(int64_t stride) {
    const __m512i count = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_mullo_epi32(count, _mm512_set1_epi32((int)stride));
}

/* Where there are fewer than 16 they are copied beside zeros. */
static inline weights weights_at(const weights *first, int64_t step, unsigned char *buffer) {
    weights at = {first->from + step * AN_Q8_0_BYTES, first->stride, LANES, first->apart};
    if (first->columns >= LANES) return at;
    memset(buffer, 0, GROUP_BYTES);
    for (int64_t i = 0; i < first->columns; i++)
        memcpy(buffer + i * AN_Q8_0_BYTES, at.from + i * at.stride, AN_Q8_0_BYTES);
    return (weights){buffer, AN_Q8_0_BYTES, LANES, distances(AN_Q8_0_BYTES)};
}

/* Their scales. Two bytes more than each has are read with it, and dropped. */
static inline __m512 load_scales(const weights *w) {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_i32gather_epi32(w->apart, w->from, 1)));
}

/* As much as some tiles of blocks have, into the second-level cache. Behind the end of memory it does nothing. */
static inline __attribute__((always_inline)) void fetch(const char *from, const int tiles) {
    for (int k = 0; k < tiles; k++, from += GROUP_BYTES)
        AN_UNROLL for (int i = 0; i < GROUP_BYTES; i += LINE) _mm_prefetch(from + i, _MM_HINT_T1);
}

/* ---- products ---- */

/* Tiles 0 to 3 are sums, 4 and 5 are weights, 6 and 7 are rows of a. As many sums are under way at a time as there
 * are tiles for: one alone would wait for itself. */
#define OF_SUMS(bytes) bytes, bytes, bytes, bytes
static const an_tile_sizes many_tiles = {.palette = 1,
                                         .row_bytes = {OF_SUMS(LINE), AN_Q8_0_ELEMENTS, AN_Q8_0_ELEMENTS, LINE, LINE},
                                         .rows = {OF_SUMS(LANES), LANES, LANES, FOURS, FOURS}};
static const an_tile_sizes one_tiles = {
    .palette = 1,
    .row_bytes = {OF_SUMS(ONE_ROW_BYTES), AN_Q8_0_ELEMENTS, AN_Q8_0_ELEMENTS, ONE_ROW_BYTES},
    .rows = {OF_SUMS(LANES), LANES, LANES, FOURS}};

/* What a step of 32 k leaves for the next one to add, while its own tiles are multiplied: of groups of 16 columns. */
enum { GROUPS = AN_ROUNDED_COLUMNS / LANES, MANY_GROUPS = 2, ONE_GROUPS = GROUPS };
typedef struct {
    _Alignas(LINE) int32_t high[LANES][LANES], low[LANES][LANES]; /* [column][row] */
    float scales[LANES];
} many_sums;
typedef struct {
    _Alignas(LINE) int32_t both[LANES][ONE_ROW_LANES];
    __m512 scales;
} one_sums;

/* gcc's intrinsics do not say that they read and write memory. */
#define MEMORY __asm__ volatile("" : : : "memory")

#define MULTIPLY(sums, weights, rows)               \
    do {                                            \
        an_tile_zero(sums);                         \
        an_tile_multiply_int8(sums, weights, rows); \
    } while (0)

AN_TILES_INLINE void multiply_many(const many_rows *a, const weights *w, many_sums *sums) {
    MEMORY;
    an_tile_load(4, w[0].from + AN_Q8_0_SCALE_BYTES, w[0].stride);
    an_tile_load(6, a->high, LINE);
    MULTIPLY(0, 4, 6);
    an_tile_load(7, a->low, LINE);
    MULTIPLY(1, 4, 7);
    an_tile_load(5, w[1].from + AN_Q8_0_SCALE_BYTES, w[1].stride);
    MULTIPLY(2, 5, 6);
    MULTIPLY(3, 5, 7);
    an_tile_store(0, sums[0].high, LINE);
    an_tile_store(1, sums[0].low, LINE);
    an_tile_store(2, sums[1].high, LINE);
    an_tile_store(3, sums[1].low, LINE);
    AN_UNROLL for (int i = 0; i < MANY_GROUPS; i++) _mm512_store_ps(sums[i].scales, load_scales(&w[i]));
    MEMORY;
}

/* What is ahead in memory is fetched between tiles: more at once would be in the way of their loads. */
AN_TILES_INLINE void multiply_one(const one_row *a, const weights *w, const char *ahead, one_sums *sums) {
    MEMORY;
    an_tile_load(6, a->numbers, ONE_ROW_BYTES);
    an_tile_load(4, w[0].from + AN_Q8_0_SCALE_BYTES, w[0].stride);
    MULTIPLY(0, 4, 6);
    fetch(ahead, 1);
    an_tile_load(5, w[1].from + AN_Q8_0_SCALE_BYTES, w[1].stride);
    MULTIPLY(1, 5, 6);
    fetch(ahead + GROUP_BYTES, 1);
    an_tile_load(4, w[2].from + AN_Q8_0_SCALE_BYTES, w[2].stride);
    MULTIPLY(2, 4, 6);
    fetch(ahead + 2 * GROUP_BYTES, 1);
    an_tile_load(5, w[3].from + AN_Q8_0_SCALE_BYTES, w[3].stride);
    MULTIPLY(3, 5, 6);
    fetch(ahead + 3 * GROUP_BYTES, 1);
    an_tile_store(0, sums[0].both, ONE_ROW_BYTES);
    an_tile_store(1, sums[1].both, ONE_ROW_BYTES);
    an_tile_store(2, sums[2].both, ONE_ROW_BYTES);
    an_tile_store(3, sums[3].both, ONE_ROW_BYTES);
    AN_UNROLL for (int i = 0; i < ONE_GROUPS; i++) sums[i].scales = load_scales(&w[i]);
    MEMORY;
}

AN_TILES_INLINE __m512 total_of(__m512i high, __m512i low) {
    return _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high, 7), low));
}

AN_TILES_INLINE void add_many(const many_sums *s, const float *scales, __m512 *sums) {
    const __m512 rows = _mm512_load_ps(scales);
    AN_UNROLL for (int i = 0; i < LANES; i++) {
        const __m512 total = total_of(_mm512_load_si512(s->high[i]), _mm512_load_si512(s->low[i]));
        sums[i] = _mm512_fmadd_ps(total, _mm512_mul_ps(_mm512_set1_ps(s->scales[i]), rows), sums[i]);
    }
}

AN_TILES_INLINE __m512 add_one(const one_sums *s, float scale, __m512 sum) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i first = _mm512_load_si512(s->both[0]), second = _mm512_load_si512(s->both[LANES / 2]);
    const __m512 total =
        total_of(_mm512_permutex2var_epi32(first, even, second), _mm512_permutex2var_epi32(first, odd, second));
    return _mm512_fmadd_ps(total, _mm512_mul_ps(s->scales, _mm512_set1_ps(scale)), sum);
}

/* Rows become columns: interleaving one half of 16 vectors with the other, four times. */
AN_TILES_INLINE void turn(__m512 *v) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(LANES / 2));
    AN_UNROLL for (int round = 0; round < 2; round++) {
        __m512 other[LANES];
        AN_UNROLL for (int i = 0; i < LANES / 2; i++) {
            other[2 * i] = _mm512_permutex2var_ps(v[i], low, v[i + LANES / 2]);
            other[2 * i + 1] = _mm512_permutex2var_ps(v[i], high, v[i + LANES / 2]);
        }
        AN_UNROLL for (int i = 0; i < LANES / 2; i++) {
            v[2 * i] = _mm512_permutex2var_ps(other[i], low, other[i + LANES / 2]);
            v[2 * i + 1] = _mm512_permutex2var_ps(other[i], high, other[i + LANES / 2]);
        }
    }
}

/* 32 columns of 16 rows; what is `ahead` in memory is fetched meanwhile, if anything. */
AN_TILES static void multiply_rows(const rounded *r, const many_rows *a, const weights *first, const char *ahead,
                                   float *to) {
    const int64_t blocks = r->job.blocks;
    unsigned char buffers[MANY_GROUPS][GROUP_BYTES];
    many_sums parts[2][MANY_GROUPS];
    __m512 sums[MANY_GROUPS][LANES];
    for (int i = 0; i < MANY_GROUPS; i++)
        for (int k = 0; k < LANES; k++) sums[i][k] = _mm512_setzero_ps();
    for (int64_t step = 0; step <= blocks; step++) {
        if (step < blocks) {
            weights w[MANY_GROUPS];
            for (int i = 0; i < MANY_GROUPS; i++) w[i] = weights_at(&first[i], step, buffers[i]);
            multiply_many(a + step, w, parts[step % 2]);
            if (ahead) fetch(ahead + step * MANY_GROUPS * GROUP_BYTES, MANY_GROUPS);
        }
        if (step > 0)
            for (int i = 0; i < MANY_GROUPS; i++) add_many(&parts[(step - 1) % 2][i], a[step - 1].scales, sums[i]);
    }
    for (int i = 0; i < MANY_GROUPS; i++) {
        turn(sums[i]);
        for (int k = 0; k < LANES; k++) _mm512_storeu_ps(to + i * LANES + k * AN_ROUNDED_COLUMNS, sums[i][k]);
    }
}

/* 64 columns of the only row. */
AN_TILES static void multiply_row(const rounded *r, const weights *first, const char *ahead, float *to) {
    enum { PARTS = 2 };
    const int64_t blocks = r->job.blocks;
    unsigned char buffers[ONE_GROUPS][GROUP_BYTES];
    one_sums parts[PARTS][ONE_GROUPS];
    __m512 sums[ONE_GROUPS];
    AN_UNROLL for (int i = 0; i < ONE_GROUPS; i++) sums[i] = _mm512_setzero_ps();
    for (int64_t step = 0; step < blocks + PARTS - 1; step++) {
        const int64_t done = step - PARTS + 1;
        if (step < blocks) {
            weights w[ONE_GROUPS];
            AN_UNROLL for (int i = 0; i < ONE_GROUPS; i++) w[i] = weights_at(&first[i], step, buffers[i]);
            multiply_one(r->one + step, w, ahead + step * ONE_GROUPS * GROUP_BYTES, parts[step % PARTS]);
        }
        AN_UNROLL for (int i = 0; done >= 0 && i < ONE_GROUPS; i++) sums[i] =
            add_one(&parts[done % PARTS][i], r->one_scales[done], sums[i]);
    }
    AN_UNROLL for (int i = 0; i < ONE_GROUPS; i++) _mm512_storeu_ps(to + i * LANES, sums[i]);
}

/* 64 columns of all rows. Weights of 32 stay in the first-level cache while rows go by. */
AN_TILES static void multiply_columns(const rounded *r, int64_t column) {
    const an_rounded_job *job = &r->job;
    const unsigned char *from = job->b + column * job->row_bytes;
    const int64_t columns = an_smaller(AN_ROUNDED_COLUMNS, job->columns - column);
    const char *next = (const char *)from + AN_ROUNDED_COLUMNS * job->row_bytes;
    _Alignas(LINE) float sums[LANES * AN_ROUNDED_COLUMNS];
    weights first[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        first[i] = (weights){from + i * LANES * job->row_bytes, job->row_bytes, columns - i * LANES,
                             distances(job->row_bytes)};
    if (r->is_one_row) {
        multiply_row(r, first, next, sums);
        an_rounded_store(job, 0, 1, column, columns, sums);
        return;
    }
    for (int i = 0; i * LANES < columns; i += MANY_GROUPS) {
        const int64_t at = i * LANES, some = an_smaller(MANY_GROUPS * LANES, columns - at);
        for (int64_t row = 0; row < job->rows; row += LANES) {
            multiply_rows(r, r->many + row / LANES * job->blocks, first + i,
                          row == 0 ? next + at * job->row_bytes : NULL, sums);
            an_rounded_store(job, row, an_smaller(LANES, job->rows - row), column + at, some, sums);
        }
    }
}

AN_TILES static void multiply_task(void *user, int64_t index, int thread) {
    const rounded *r = user;
    const int64_t first = index * r->blocks_a_task * AN_ROUNDED_COLUMNS;
    const int64_t end = an_smaller(r->job.columns, first + r->blocks_a_task * AN_ROUNDED_COLUMNS);
    (void)thread;
    an_tile_configure(r->is_one_row ? &one_tiles : &many_tiles);
    for (int64_t column = first; column < end; column += AN_ROUNDED_COLUMNS) multiply_columns(r, column);
    an_tile_release();
}

/* ---- the kernel ---- */

bool an_product_amx_rounded_applies(const an_call *call) {
    return call->src[1].dims[1] <= DEPTH_MOST;
}

size_t an_product_amx_rounded_scratch(const an_call *call) {
    const an_rounded_job job = an_rounded_job_make(call);
    return (size_t)(an_divide_up(job.rows, LANES) * job.blocks) * sizeof(many_rows); /* of one row, it is less */
}

an_status an_product_amx_rounded_run(const an_call *call) {
    rounded r = {.job = an_rounded_job_make(call)};
    const an_rounded_job *job = &r.job;
    if (job->rows < 1 || job->columns < 1) return AN_OK;
    const int64_t panels = an_divide_up(job->rows, LANES);
    if (job->rows == 1) {
        r.is_one_row = true;
        r.one = call->scratch;
        r.one_scales = (float *)(void *)(r.one + job->blocks);
        round_row(&r);
    } else {
        r.many = call->scratch;
        an_parallel(call->ctx, panels, round_task, &r);
    }
    const int64_t count = an_divide_up(job->columns, AN_ROUNDED_COLUMNS);
    const int64_t bytes = an_larger(1, AN_ROUNDED_COLUMNS * job->row_bytes * panels);
    r.blocks_a_task = an_larger(an_divide_up(count, 4 * (int64_t)call->ctx->threads), an_divide_up(task_bytes, bytes));
    an_parallel(call->ctx, an_divide_up(count, r.blocks_a_task), multiply_task, &r);
    return AN_OK;
}
#endif
