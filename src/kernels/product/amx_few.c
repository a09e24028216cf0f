/* Products on tiles with few rows, as when tokens are generated, or with few columns, as by the matrices of an adapter:
 * what they take is the time to read the other operand.
 *
 * b comes as weights lie, one row of memory for each column of dst, and is read once, where it is, without being
 * packed: the tiles' left side is b, and their right side the few rows of a, which are packed. So dst comes out
 * transposed. An element's sum has the same products in the same order as in amx_core.c, with the factors exchanged:
 * the bits are the same. With few columns, a is read where it is, and b packed. Jobs with leaves run in amx_core.c: the
 * operands of a weight's gradient lie across k, and these are read along it.
 */
#include "kernels/product/amx_few.h"

#ifdef __AVX512F__
#include <string.h>

#include "base/context.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "kernels/product/amx_block.h"

enum {
    TILES_AT_ONCE = 4,            /* of sums: one alone would wait for itself */
    LANES = TILES_AT_ONCE * HALF, /* of what is read, of a block */
    MOST_STEPS = 128              /* of 32 k: the small operand is packed as a whole, into what scratch has for it */
};

/* Bytes that a task reads, at least: 10 µs or so. */
static const int64_t task_bytes = 128 << 10;

typedef struct {
    const an_amx_job *job;
    bool few_columns;
    const an_amx_operand *read; /* the operand that is read where it is: b, or a if there are few columns */
    int64_t lanes;              /* of it */
    int64_t blocks, blocks_a_task;
    const char *packed; /* the other one: a tile for each step, in blocks */
} few;

bool an_amx_few_more_applies(const an_amx_job *job) {
    bool applies = an_amx_steps(job) <= MOST_STEPS;
    for (int i = 0; i < job->more_count; i++)
        applies =
            applies && !job->more[i].a.has_blocks && !job->more[i].b.has_blocks && job->more[i].b.depth_stride == 1;
    return applies;
}

static bool has_few_rows(const an_amx_job *job) {
    return job->rows <= HALF && job->b.depth_stride == 1;
}

bool an_amx_few_applies(const an_amx_job *job) {
    const bool has_few_columns = job->columns <= HALF && job->a.depth_stride == 1 && job->more_count == 0;
    return !job->a.has_blocks && !job->b.has_blocks && (has_few_rows(job) || has_few_columns) && job->items == 1 &&
           job->depth > 0 && !job->accumulate && !job->leaves && an_amx_few_more_applies(job);
}

/* One of the products of a job: what is read of it, and where its steps of the packed operand begin. */
typedef struct {
    const an_amx_operand *read;
    int64_t lanes, depth;
    const char *packed;
} product;

/* A tile that is not whole is copied into one that is, with zeros. */
static const uint16_t *whole_tile(const product *p, int64_t lane, int64_t step, uint16_t *buffer, int64_t *stride) {
    const an_amx_operand *read = p->read;
    const int64_t lanes = an_smaller(HALF, p->lanes - lane), k = step * SIDE;
    const int64_t depth = an_smaller(SIDE, p->depth - k);
    const uint16_t *from = read->data + lane * read->lane_stride + k;
    *stride = read->lane_stride;
    if (lanes == HALF && depth == SIDE) return from;
    memset(buffer, 0, AN_AMX_TILE_BYTES);
    for (int64_t i = 0; i < lanes; i++)
        memcpy(buffer + i * SIDE, from + i * read->lane_stride, (size_t)depth * sizeof *buffer);
    *stride = SIDE;
    return buffer;
}

#define STEP(sums, tile, from, stride)                                  \
    do {                                                                \
        an_tile_load(tile, from, (stride) * (int64_t)sizeof(uint16_t)); \
        an_tile_multiply_bf16(sums, tile, 7);                           \
    } while (0)

/* 64 lanes, from steps whose tiles are all whole. Meanwhile the next block is fetched. */
AN_TILES static void whole_steps(const few *f, int64_t lane, int64_t steps, bool has_next) {
    const int64_t stride = f->read->lane_stride, apart = HALF * stride;
    const uint16_t *from = f->read->data + lane * stride;
    const char *packed = f->packed, *next = (const char *)(from + LANES * stride);
    const int64_t fetched = LANES * SIDE * (int64_t)sizeof *from; /* bytes of a step */
    for (int64_t s = 0; s < steps; s++, packed += BLOCK_BYTES, from += SIDE, next += fetched) {
        an_tile_load(7, packed, LINE);
        STEP(0, 4, from, stride);
        STEP(1, 5, from + apart, stride);
        STEP(2, 6, from + 2 * apart, stride);
        STEP(3, 4, from + 3 * apart, stride);
        for (int64_t i = 0; has_next && i < fetched; i += LINE) _mm_prefetch(next + i, _MM_HINT_T1);
    }
}

AN_TILES static void other_steps(const product *p, int64_t lane, int64_t first) {
    for (int64_t s = first; s < an_divide_up(p->depth, SIDE); s++) {
        _Alignas(LINE) uint16_t buffers[TILES_AT_ONCE][HALF * SIDE];
        const uint16_t *from[TILES_AT_ONCE];
        int64_t strides[TILES_AT_ONCE];
        for (int i = 0; i < TILES_AT_ONCE; i++) {
            const int64_t at = lane + i * HALF;
            strides[i] = SIDE;
            from[i] = buffers[i];
            if (at < p->lanes)
                from[i] = whole_tile(p, at, s, buffers[i], &strides[i]);
            else
                memset(buffers[i], 0, sizeof buffers[i]);
        }
        __asm__ volatile("" : : : "memory"); /* gcc's intrinsics do not say that they read memory */
        an_tile_load(7, p->packed + s * BLOCK_BYTES, LINE);
        STEP(0, 4, from[0], strides[0]);
        STEP(1, 5, from[1], strides[1]);
        STEP(2, 6, from[2], strides[2]);
        STEP(3, 4, from[3], strides[3]);
        __asm__ volatile("" : : : "memory");
    }
}

void an_amx_few_more(const an_amx_job *job, int64_t column, const char *a) {
    for (int i = 0; i < job->more_count; i++) {
        const product p = {.read = &job->more[i].b, .lanes = job->columns, .depth = job->more[i].depth, .packed = a};
        other_steps(&p, column, 0);
        a += an_divide_up(p.depth, SIDE) * BLOCK_BYTES;
    }
}

AN_TILES static void multiply_few(const few *f, int64_t block, bool has_next) {
    const int64_t lane = block * LANES, depth = f->job->depth;
    const int64_t whole = lane + LANES <= f->lanes ? depth / SIDE : 0;
    _Alignas(LINE) float sums[LANES * HALF];
    __asm__ volatile("" : : : "memory");
    an_tile_zero(0);
    an_tile_zero(1);
    an_tile_zero(2);
    an_tile_zero(3);
    whole_steps(f, lane, whole, has_next);
    const product first = {.read = f->read, .lanes = f->lanes, .depth = depth, .packed = f->packed};
    other_steps(&first, lane, whole);
    an_amx_few_more(f->job, lane, f->packed + an_divide_up(depth, SIDE) * BLOCK_BYTES);
    an_tile_store(0, sums, LINE);
    an_tile_store(1, sums + HALF * HALF, LINE);
    an_tile_store(2, sums + 2 * HALF * HALF, LINE);
    an_tile_store(3, sums + 3 * HALF * HALF, LINE);
    __asm__ volatile("" : : : "memory");
    if (f->few_columns)
        store_rows(f->job, lane, sums);
    else
        store_columns(f->job, lane, sums);
}

AN_TILES static void few_task(void *user, int64_t index, int thread) {
    const few *f = user;
    const int64_t end = an_smaller(f->blocks, (index + 1) * f->blocks_a_task);
    (void)thread;
    an_tile_configure(&whole_tiles);
    for (int64_t block = index * f->blocks_a_task; block < end; block++)
        multiply_few(f, block, block + 1 < end && (block + 2) * LANES <= f->lanes);
    an_tile_release();
}

void an_amx_few_run(const an_amx_job *job) {
    const bool few_columns = !has_few_rows(job);
    few f = {.job = job,
             .few_columns = few_columns,
             .read = few_columns ? &job->a : &job->b,
             .lanes = few_columns ? job->rows : job->columns,
             .packed = job->scratch};
    const an_amx_range one = {0, 1}, all = {0, an_amx_steps(job)};
    an_amx_pack_operand(job, 0, few_columns, true, one, all, job->scratch, all.count * BLOCK_BYTES);
    f.blocks = an_divide_up(f.lanes, LANES);
    const int64_t block_bytes = LANES * job->depth * (int64_t)sizeof(uint16_t);
    const int64_t even = an_divide_up(f.blocks, 4 * (int64_t)job->ctx->threads);
    f.blocks_a_task = an_larger(even, an_divide_up(task_bytes, block_bytes));
    an_parallel(job->ctx, an_divide_up(f.blocks, f.blocks_a_task), few_task, &f);
}
#endif
