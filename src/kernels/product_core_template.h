/* Lines, packing and tasks of the product core, for REAL. Included by product_core.c through instantiate.h. */

#define TILE NAME(tile_128)
#define TARGET
#define VECTOR_BYTES 16
#define ROWS 4
#define VECTORS 2
#include "kernels/product_tile.h"

#if defined(__x86_64__)
#define TILE NAME(tile_256)
#define TARGET __attribute__((target("avx2")))
#define VECTOR_BYTES 32
#define ROWS 4
#define VECTORS 2
#include "kernels/product_tile.h"

#define TILE NAME(tile_512)
#define TARGET __attribute__((target("avx512f")))
#define VECTOR_BYTES 64
#define ROWS 8
#define VECTORS 1
#include "kernels/product_tile.h"
#endif

/* A pointer and not target_clones: those need ifunc, which not every C library has and sanitizers dislike. */
static void NAME(choose_tile)(job_run *run) {
    run->NAME(tile) = NAME(tile_128);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) run->NAME(tile) = NAME(tile_256);
    if (__builtin_cpu_supports("avx512f")) run->NAME(tile) = NAME(tile_512);
#endif
}

/* ---- lines of a matrix ---- */

const REAL *NAME(an_matrix_line)(const void *source, int64_t item, int64_t line, int64_t begin, int64_t count,
                                 REAL *buffer) {
    const an_matrix *m = source;
    int64_t base = m->offset + grid_offset(&m->items, item) + grid_offset(&m->lines, line);
    int64_t n, stride = grid_inner_stride(&m->places);
    for (int64_t done = 0; done < count; done += n) {
        n = grid_run(&m->places, begin + done, count - done);
        int64_t offset = base + grid_offset(&m->places, begin + done);
        const REAL *run = NAME(an_row_load)(m->tensor, offset, stride, n, buffer + done);
        if (n == count) return run;
        if (run != buffer + done) memcpy(buffer + done, run, (size_t)n * sizeof *run);
    }
    return buffer;
}

static void NAME(store_line)(const an_matrix *m, int64_t item, int64_t line, range places, const REAL *row) {
    int64_t base = m->offset + grid_offset(&m->items, item) + grid_offset(&m->lines, line);
    int64_t n, stride = grid_inner_stride(&m->places);
    for (int64_t done = 0; done < places.count; done += n) {
        n = grid_run(&m->places, places.begin + done, places.count - done);
        NAME(an_row_store)(m->tensor, base + grid_offset(&m->places, places.begin + done), stride, n, row + done);
    }
}

/* ---- packing ---- */

/* Copies a block of an operand into panels of `width` lanes: all lanes of the first k, all lanes of the second, …
 * Lanes after the last are zero. */
static void NAME(pack)(const an_product_operand *operand, int64_t item, range lanes, range depth, int64_t width,
                       REAL *restrict panels, REAL *buffer) {
    NAME(an_line) *line = operand->NAME(line);
    int64_t whole = lanes.count / width * width;
    if (whole < lanes.count) memset(panels + whole * depth.count, 0, (size_t)(width * depth.count) * sizeof *panels);
    if (operand->along_k) {
        for (int64_t lane = 0; lane < lanes.count; lane++) {
            const REAL *from = line(operand->source, item, lanes.begin + lane, depth.begin, depth.count, buffer);
            REAL *to = panels + lane / width * width * depth.count + lane % width;
            for (int64_t p = 0; p < depth.count; p++) to[p * width] = from[p];
        }
        return;
    }
    for (int64_t p = 0; p < depth.count; p++) {
        const REAL *from = line(operand->source, item, depth.begin + p, lanes.begin, lanes.count, buffer);
        for (int64_t lane = 0; lane < lanes.count; lane += width) {
            int64_t n = smaller(width, lanes.count - lane);
            memcpy(panels + lane * depth.count + p * width, from + lane, (size_t)n * sizeof *panels);
        }
    }
}

/* ---- tasks ---- */

/* sum += the part of a tile's product that lies in one piece of k */
static void NAME(add_piece)(const job_run *run, const dst_tile *t, int64_t piece, int thread, REAL *sum) {
    const an_product_job *job = run->job;
    const job_plan *plan = &run->plan;
    int64_t panel_columns = PANEL_BYTES / (int64_t)sizeof(REAL);
    range depth = part_of(job->depth, piece, AN_PRODUCT_PIECE);
    char *scratch = (char *)job->scratch + (size_t)thread * plan->thread_bytes;
    REAL *a = (REAL *)scratch, *b = (REAL *)(scratch + plan->a_bytes);
    REAL *buffer = (REAL *)(scratch + plan->a_bytes + plan->b_bytes);
    NAME(pack)(&job->a, t->item, t->rows, depth, PANEL_ROWS, a, buffer);
    NAME(pack)(&job->b, t->item, t->columns, depth, panel_columns, b, buffer);
    for (int64_t column = 0; column < t->columns.count; column += panel_columns)
        for (int64_t row = 0; row < t->rows.count; row += PANEL_ROWS)
            run->NAME(tile)(depth.count, a + row * depth.count, b + column * depth.count,
                            sum + row * plan->sum_stride + column, plan->sum_stride);
}

static REAL *NAME(sum_at)(const job_run *run, int64_t index) {
    const job_plan *plan = &run->plan;
    return (REAL *)((char *)run->job->scratch + plan->sums_begin + (size_t)index * plan->sum_bytes);
}

static void NAME(store_tile)(const job_run *run, const dst_tile *t, const REAL *sum) {
    const an_matrix *dst = &run->job->dst;
    for (int64_t row = 0; row < t->rows.count; row++, sum += run->plan.sum_stride)
        NAME(store_line)(dst, t->item, t->rows.begin + row, t->columns, sum);
}

static void NAME(whole_tile)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    dst_tile t = tile_at(run->job, &run->plan, index);
    REAL *sum = NAME(sum_at)(run, thread);
    memset(sum, 0, run->plan.sum_bytes);
    for (int64_t piece = 0; piece < run->plan.pieces; piece++) NAME(add_piece)(run, &t, piece, thread, sum);
    NAME(store_tile)(run, &t, sum);
}

/* Few tiles and much k: pieces of the same tile run at once, each into a sum of its own, and are then added in order.
 * Sum 0 of a tile is its total. */
static void NAME(one_piece)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    int64_t together = run->plan.together, piece = run->first_piece + index % together;
    if (piece >= run->plan.pieces) return; /* the last ones need not be as many */
    dst_tile t = tile_at(run->job, &run->plan, index / together);
    REAL *sum = NAME(sum_at)(run, index / together * (together + 1) + 1 + index % together);
    memset(sum, 0, run->plan.sum_bytes);
    NAME(add_piece)(run, &t, piece, thread, sum);
}

static void NAME(total)(void *user, int64_t index, int thread) {
    const job_run *run = user;
    int64_t together = run->plan.together, elements = (int64_t)(run->plan.sum_bytes / sizeof(REAL));
    REAL *restrict total = NAME(sum_at)(run, index * (together + 1));
    (void)thread;
    if (run->first_piece == 0) memset(total, 0, run->plan.sum_bytes);
    for (int64_t i = 0; i < together && run->first_piece + i < run->plan.pieces; i++) {
        const REAL *restrict sum = NAME(sum_at)(run, index * (together + 1) + 1 + i);
        for (int64_t e = 0; e < elements; e++) total[e] += sum[e];
    }
    if (run->first_piece + together < run->plan.pieces) return;
    dst_tile t = tile_at(run->job, &run->plan, index);
    NAME(store_tile)(run, &t, total);
}

void NAME(an_product_run)(const an_product_job *job) {
    job_run run = {.job = job};
    NAME(choose_tile)(&run);
    run.plan = make_plan(job->ctx, sizeof(REAL), job->items, job->rows, job->columns, job->depth);
    if (run.plan.together == 1) {
        an_parallel(job->ctx, run.plan.tiles, NAME(whole_tile), &run);
        return;
    }
    for (; run.first_piece < run.plan.pieces; run.first_piece += run.plan.together) {
        an_parallel(job->ctx, run.plan.tiles * run.plan.together, NAME(one_piece), &run);
        an_parallel(job->ctx, run.plan.tiles, NAME(total), &run);
    }
}
