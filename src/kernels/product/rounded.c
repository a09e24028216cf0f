/* Products of rounded rows with weights of q8_0 on any machine, and what the kernel for tiles needs too. */
#include "kernels/product/rounded.h"

#include "base/context.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "kernels/common/row.h"

/* Multiplications of a task, at least: some ten µs. */
static const int64_t task_products = 128 << 10;

/* ---- what both kernels do ---- */

an_rounded_job an_rounded_job_make(const an_call *call) {
    const an_tensor *b = &call->src[1], *dst = &call->dst[0];
    const int64_t columns = b->dims[0], depth = b->dims[1];
    return (an_rounded_job){.call = call,
                            .rows = columns > 0 ? an_tensor_elements(dst) / columns : 0,
                            .columns = columns,
                            .blocks = depth / AN_Q8_0_ELEMENTS,
                            .b = b->data,
                            .row_bytes = depth / AN_Q8_0_ELEMENTS * AN_Q8_0_BYTES};
}

int64_t an_rounded_row(const an_rounded_job *job, int64_t row) {
    const an_tensor *a = &job->call->src[0];
    return an_row_offset(a, a->ndims - 1, row);
}

const float *an_rounded_load(const an_rounded_job *job, int64_t offset, int64_t block, float *buffer) {
    const an_tensor *a = &job->call->src[0];
    const int64_t stride = a->strides[a->ndims - 1];
    return an_row_load_f32(a, offset + block * AN_Q8_0_ELEMENTS * stride, stride, AN_Q8_0_ELEMENTS, buffer);
}

void an_rounded_store(const an_rounded_job *job, int64_t row, int64_t rows, int64_t column, int64_t columns,
                      float *sums) {
    const an_product_attributes *attributes = job->call->attributes;
    const an_tensor *dst = &job->call->dst[0];
    const int last = dst->ndims - 1;
    if (attributes->finish) {
        const an_product_block block = {
            .row = row, .column = column, .rows = rows, .columns = columns, .stride = AN_ROUNDED_COLUMNS};
        attributes->finish->f32(attributes->finish->user, &block, sums);
    }
    for (int64_t i = 0; i < rows; i++)
        an_row_store_f32(dst, an_row_offset(dst, last, row + i) + column * dst->strides[last], dst->strides[last],
                         columns, sums + i * AN_ROUNDED_COLUMNS);
}

/* ---- the kernel ---- */

typedef struct {
    an_rounded_job job;
    int64_t blocks_a_task; /* of AN_ROUNDED_COLUMNS columns */
    int16_t *numbers;      /* of all rows, */
    float *scales;         /* and the scales of each 32 of them */
} rounded;

static void round_task(void *user, int64_t row, int thread) {
    const rounded *r = user;
    const int64_t blocks = r->job.blocks, offset = an_rounded_row(&r->job, row);
    float buffer[AN_Q8_0_ELEMENTS];
    (void)thread;
    for (int64_t i = row * blocks; i < (row + 1) * blocks; i++)
        r->scales[i] = an_round_block(an_rounded_load(&r->job, offset, i - row * blocks, buffer),
                                      r->numbers + i * AN_Q8_0_ELEMENTS);
}

static inline int32_t add_products(const int16_t *restrict a, const int8_t *restrict b) {
    int32_t total = 0;
    for (int i = 0; i < AN_Q8_0_ELEMENTS; i++) total += a[i] * b[i];
    return total;
}

/* One column of dst, of some rows: their sums are AN_ROUNDED_COLUMNS apart. */
static void multiply_column(const rounded *r, int64_t row, int64_t rows, int64_t column, float *sums) {
    const int64_t blocks = r->job.blocks, depth = blocks * AN_Q8_0_ELEMENTS;
    const unsigned char *b = r->job.b + column * r->job.row_bytes;
    const int16_t *numbers = r->numbers + row * depth;
    const float *scales = r->scales + row * blocks;
    float totals[AN_ROUNDED_ROWS] = {0};
    for (int64_t k = 0; k < blocks; k++, b += AN_Q8_0_BYTES, numbers += AN_Q8_0_ELEMENTS, scales++) {
        const int8_t *weights = (const int8_t *)b + AN_Q8_0_SCALE_BYTES;
        const float scale = an_q8_0_scale(b);
        for (int64_t i = 0; i < rows; i++) {
            const int32_t total = add_products(numbers + i * depth, weights);
            totals[i] = an_multiply_add((float)total, scale * scales[i * blocks], totals[i]);
        }
    }
    for (int64_t i = 0; i < rows; i++) sums[i * AN_ROUNDED_COLUMNS] = totals[i];
}

static void multiply_task(void *user, int64_t index, int thread) {
    const rounded *r = user;
    const an_rounded_job *job = &r->job;
    const int64_t first = index * r->blocks_a_task * AN_ROUNDED_COLUMNS;
    const int64_t end = an_smaller(job->columns, first + r->blocks_a_task * AN_ROUNDED_COLUMNS);
    (void)thread;
    for (int64_t column = first; column < end; column += AN_ROUNDED_COLUMNS)
        for (int64_t row = 0; row < job->rows; row += AN_ROUNDED_ROWS) {
            float sums[AN_ROUNDED_ROWS * AN_ROUNDED_COLUMNS];
            const int64_t rows = an_smaller(AN_ROUNDED_ROWS, job->rows - row);
            const int64_t columns = an_smaller(AN_ROUNDED_COLUMNS, end - column);
            for (int64_t i = 0; i < columns; i++) multiply_column(r, row, rows, column + i, sums + i);
            an_rounded_store(job, row, rows, column, columns, sums);
        }
}

static size_t numbers_bytes(const an_rounded_job *job) {
    return (size_t)(job->rows * job->blocks * AN_Q8_0_ELEMENTS) * sizeof(int16_t);
}

size_t an_product_rounded_scratch(const an_call *call) {
    const an_rounded_job job = an_rounded_job_make(call);
    return numbers_bytes(&job) + (size_t)(job.rows * job.blocks) * sizeof(float);
}

an_status an_product_rounded_run(const an_call *call) {
    rounded r = {.job = an_rounded_job_make(call), .numbers = call->scratch};
    const an_rounded_job *job = &r.job;
    if (job->rows < 1 || job->columns < 1) return AN_OK;
    r.scales = (float *)(void *)((char *)call->scratch + numbers_bytes(job));
    const int64_t products = AN_ROUNDED_COLUMNS * job->rows * an_larger(1, job->blocks) * AN_Q8_0_ELEMENTS;
    r.blocks_a_task = an_divide_up(task_products, products);
    an_parallel(call->ctx, job->rows, round_task, &r);
    an_parallel(call->ctx, an_divide_up(job->columns, r.blocks_a_task * AN_ROUNDED_COLUMNS), multiply_task, &r);
    return AN_OK;
}
