/* As amx_few.c, for weights of q8_0: a tile of b is 16 blocks, one for each column of dst, which are widened into the
 * first-level cache and multiplied one step later. Memory is read once, 34 bytes for 32 elements. The sums are those of
 * amx_core.c, to the bit.
 */
#include "kernels/product/amx_few_blocks.h"

#ifdef __AVX512F__
#include <string.h>

#include "base/context.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "base/unroll.h"
#include "kernels/product/amx_block.h"
#include "kernels/product/amx_few.h"
#include "kernels/product/amx_widen.h"

enum {
    TILES_AT_ONCE = 4,             /* of sums: one alone would wait for itself */
    COLUMNS = TILES_AT_ONCE * HALF /* of dst, of a block */
};

/* Bytes of b that a task reads, at least: 10 µs or so. */
static const int64_t task_bytes = 128 << 10;

typedef struct {
    const an_amx_job *job;
    int64_t steps, blocks, blocks_a_task, row_bytes;
    const char *a; /* a tile for each step, in blocks */
} few;

bool an_amx_few_blocks_applies(const an_amx_job *job) {
    return job->b.has_blocks && job->rows <= HALF && job->items == 1 && job->b.depth_stride == 1 && job->depth > 0 &&
           !job->accumulate && !job->leaves && an_amx_few_more_applies(job);
}

typedef uint16_t tile_of_b[HALF * SIDE];

/* Columns behind the last are zeros. */
AN_TILES_INLINE void widen_tile(const few *f, const unsigned char *from, int64_t columns, int tile, tile_of_b *tiles) {
    uint16_t *to = tiles[tile];
    from += tile * HALF * f->row_bytes;
    columns = an_smaller(columns - tile * HALF, HALF);
    if (columns < HALF) memset(to, 0, sizeof(tile_of_b));
    for (int64_t i = 0; i < columns; i++, from += f->row_bytes, to += SIDE) an_amx_widen(from, to);
}

/* gcc's intrinsics do not say that they read memory. */
#define MULTIPLY(sums, tile, from)            \
    do {                                      \
        __asm__ volatile("" : : : "memory");  \
        an_tile_load(tile, from, LINE);       \
        an_tile_multiply_bf16(sums, tile, 7); \
    } while (0)

/* As much as 64 columns have of a step. */
AN_TILES_INLINE void fetch_step(const char *from) {
    enum { HALF_BYTES = COLUMNS * AN_Q8_0_BYTES / 2 };
    for (int half = 0; half < 2; half++, from += HALF_BYTES) {
        AN_UNROLL for (int i = 0; i < HALF_BYTES; i += LINE) _mm_prefetch(from + i, _MM_HINT_T1);
    }
}

/* Some columns of all rows: 64, a constant where this is inlined, or fewer. The tiles of a step are multiplied while
 * those of the next are widened. The next columns are fetched meanwhile, as far as there are any: fetching what is
 * behind the end does nothing. */
AN_TILES_INLINE void multiply_columns(const few *f, int64_t column, const int64_t columns) {
    _Alignas(LINE) tile_of_b tiles[2][TILES_AT_ONCE];
    const unsigned char *from = (const unsigned char *)f->job->b.data + column * f->row_bytes;
    const char *next = (const char *)from + COLUMNS * f->row_bytes;
    for (int i = 0; i < TILES_AT_ONCE; i++) widen_tile(f, from, columns, i, tiles[0]);
    for (int64_t s = 0; s < f->steps; s++, next += COLUMNS * AN_Q8_0_BYTES) {
        const tile_of_b *ready = tiles[s % 2];
        tile_of_b *made = tiles[(s + 1) % 2];
        const bool more = s + 1 < f->steps;
        from += AN_Q8_0_BYTES;
        an_tile_load(7, f->a + s * BLOCK_BYTES, LINE);
        MULTIPLY(0, 4, ready[0]);
        if (more) widen_tile(f, from, columns, 0, made);
        MULTIPLY(1, 5, ready[1]);
        if (more) widen_tile(f, from, columns, 1, made);
        MULTIPLY(2, 6, ready[2]);
        if (more) widen_tile(f, from, columns, 2, made);
        MULTIPLY(3, 4, ready[3]);
        if (more) widen_tile(f, from, columns, 3, made);
        fetch_step(next);
    }
}

AN_TILES static void few_task(void *user, int64_t index, int thread) {
    const few *f = user;
    const int64_t end = an_smaller(f->blocks, (index + 1) * f->blocks_a_task);
    (void)thread;
    an_tile_configure(&whole_tiles);
    for (int64_t block = index * f->blocks_a_task; block < end; block++) {
        const int64_t column = block * COLUMNS;
        _Alignas(LINE) float turned[COLUMNS * HALF];
        an_tile_zero(0);
        an_tile_zero(1);
        an_tile_zero(2);
        an_tile_zero(3);
        const int64_t columns = f->job->columns - column;
        if (columns >= COLUMNS)
            multiply_columns(f, column, COLUMNS);
        else
            multiply_columns(f, column, columns);
        an_amx_few_more(f->job, column, f->a + f->steps * BLOCK_BYTES);
        an_tile_store(0, turned, LINE);
        an_tile_store(1, turned + HALF * HALF, LINE);
        an_tile_store(2, turned + 2 * HALF * HALF, LINE);
        an_tile_store(3, turned + 3 * HALF * HALF, LINE);
        __asm__ volatile("" : : : "memory");
        store_columns(f->job, column, turned);
    }
    an_tile_release();
}

void an_amx_few_blocks_run(const an_amx_job *job) {
    few f = {.job = job,
             .steps = an_divide_up(job->depth, SIDE),
             .blocks = an_divide_up(job->columns, COLUMNS),
             .row_bytes = job->b.lane_stride / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES};
    const an_amx_range one = {0, 1}, all = {0, an_amx_steps(job)};
    an_amx_pack_operand(job, 0, false, true, one, all, job->scratch, all.count * BLOCK_BYTES);
    f.a = job->scratch;
    const int64_t even = an_divide_up(f.blocks, 4 * (int64_t)job->ctx->threads);
    f.blocks_a_task = an_larger(even, an_divide_up(task_bytes, COLUMNS * f.row_bytes));
    an_parallel(job->ctx, an_divide_up(f.blocks, f.blocks_a_task), few_task, &f);
}
#endif
