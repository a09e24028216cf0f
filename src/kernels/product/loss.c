/* The loss with the last product. Its parts are the kernels of product and cross_entropy themselves, run on chunks of
 * rows: so the bits are those of the parts by construction. Both gradients are made where the logits are, because
 * making the logits a second time would cost a third of the head's arithmetic.
 *
 * With leaves, the losses of each leaf are added as they are without, and then the leaves in the tree. If there is a
 * gradient of the weights, chunks are those of loss_leaves.h. Everything else is row by row. */
#include "kernels/product/loss.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/leaves.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"
#include "kernels/product/loss_leaves.h"

/* A part: a kernel of another op on operands of its own. */
enum { MOST_OPERANDS = 5 };
typedef struct {
    const an_kernel *kernel;
    an_call call;
    an_tensor src[MOST_OPERANDS], dst[2];
    an_product_attributes product;
} part;

typedef struct {
    const an_call *call;
    const an_leaf_cut *leaves; /* NULL: one */
    bool f64, has_diff, has_diff_weights;
    bool adds; /* the losses; otherwise the loss of each row is the output */
    an_count_right_attributes counts;
    int64_t *right;     /* of a chunk */
    an_dtype real, low; /* of the logits, and of their gradient as the products read it */
    int64_t rows, depth, classes;
    int64_t chunk;                   /* rows of one at most */
    an_loss_cut cut;                 /* of the gradient of the weights by leaves; 0 rows: it is not by leaves */
    const an_tensor *target_weights; /* NULL: none */
    int64_t each;                    /* targets of a weight */
    /* Scratch, in this order; then that of the parts. */
    size_t logits_bytes, losses_bytes, sums_bytes, factors_bytes, ends_bytes, buffer_bytes;
    char *logits, *losses, *sums, *factors, *ends, *buffers,
        *part_scratch; /* factors: the weight of each row of a chunk */
} job;

static an_tensor matrix(void *data, an_dtype dtype, int64_t rows, int64_t columns, int64_t row_stride) {
    return (an_tensor){.data = data, .dtype = dtype, .ndims = 2, .dims = {rows, columns}, .strides = {row_stride, 1}};
}

static an_tensor vector(void *data, an_dtype dtype, int64_t elements) {
    return (an_tensor){.data = data, .dtype = dtype, .ndims = 1, .dims = {elements}, .strides = {1}};
}

/* Sums and factors are of as many rows as there are, because fewer rows may be cut into larger chunks. */
static void cut_by_leaves(job *j) {
    const size_t real = an_dtype_size(j->real);
    j->buffer_bytes = an_round_up((size_t)(j->classes * j->depth) * real, AN_ALIGNMENT);
    j->cut = an_loss_cut_choose(j->rows, j->leaves, (size_t)j->classes * real, j->buffer_bytes);
    j->chunk = an_smaller(j->cut.rows, j->rows);
    j->sums_bytes = an_round_up((size_t)j->rows * real, AN_ALIGNMENT);
    j->ends_bytes = an_round_up((size_t)j->leaves->count * sizeof(int64_t), AN_ALIGNMENT);
}

static job job_of(const an_call *call) {
    const an_tensor *src = &call->src[AN_PRODUCT_LOSS_SRC], *weights = &call->src[AN_PRODUCT_LOSS_WEIGHTS];
    job j = {.call = call, .leaves = an_call_leaves(call), .f64 = an_call_is_f64(call)};
    const size_t real = j.f64 ? sizeof(double) : sizeof(float);
    j.has_diff = an_call_has(call, AN_PRODUCT_LOSS_DIFF);
    j.has_diff_weights = j.has_diff && call->dst_count > 2;
    j.counts.ignored = ((const an_cross_entropy_attributes *)call->attributes)->ignored;
    j.real = j.f64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    j.low = src->dtype == weights->dtype || weights->dtype == AN_DTYPE_Q8_0 ? src->dtype : j.real;
    j.depth = src->dims[src->ndims - 1];
    j.rows = an_tensor_elements(src) / j.depth;
    j.classes = weights->dims[0];
    j.chunk = an_smaller(AN_PRODUCT_LOSS_ROWS, j.rows);
    j.sums_bytes = an_round_up((size_t)j.chunk * real, AN_ALIGNMENT);
    if (j.leaves && j.has_diff_weights) cut_by_leaves(&j);
    j.logits_bytes = an_round_up((size_t)(j.chunk * j.classes) * real, AN_ALIGNMENT);
    j.adds = call->dst[0].ndims == 0;
    j.losses_bytes = j.adds ? an_round_up((size_t)j.rows * real, AN_ALIGNMENT) : 0;
    if (an_call_has(call, AN_PRODUCT_LOSS_TARGET_WEIGHTS)) {
        j.target_weights = &call->src[AN_PRODUCT_LOSS_TARGET_WEIGHTS];
        j.each = j.rows / an_tensor_elements(j.target_weights);
        j.factors_bytes = j.sums_bytes;
    }
    j.logits = call->scratch;
    if (j.logits) {
        j.losses = j.adds ? j.logits + j.logits_bytes : call->dst[0].data;
        j.sums = j.logits + j.logits_bytes + j.losses_bytes;
        j.factors = j.sums + j.sums_bytes;
        j.ends = j.factors + j.factors_bytes;
        j.buffers = j.ends + j.ends_bytes;
        j.part_scratch = j.buffers + (size_t)j.cut.buffers * j.buffer_bytes;
    }
    return j;
}

static void part_begin(const job *j, part *p, const void *attributes, int src_count, int dst_count) {
    p->call = (an_call){.ctx = j->call->ctx,
                        .attributes = attributes,
                        .src_count = src_count,
                        .dst_count = dst_count,
                        .src = p->src,
                        .dst = p->dst,
                        .scratch = j->part_scratch};
}

static void part_choose(part *p, const an_kernel *kernels) {
    for (p->kernel = kernels; p->kernel->name; p->kernel++)
        if (!p->kernel->applies || p->kernel->applies(&p->call)) return;
}

static char *at(const an_tensor *t, int64_t elements) {
    return t->data ? (char *)t->data + (size_t)elements * an_dtype_size(t->dtype) : NULL;
}

/* Rows `row` … of src, and their labels. */
static an_tensor src_rows(const job *j, int64_t row, int64_t rows) {
    const an_tensor *src = &j->call->src[AN_PRODUCT_LOSS_SRC];
    return matrix(at(src, row * j->depth), src->dtype, rows, j->depth, j->depth);
}

static an_tensor target_rows(const job *j, int64_t row, int64_t rows) {
    const an_tensor *targets = &j->call->src[AN_PRODUCT_LOSS_TARGETS];
    return vector(at(targets, row), targets->dtype, rows);
}

/* The gradient of the logits takes their place: a row is written when all of it has been read, and a lower type fills
 * the front half of its row. */
static an_tensor diff_logits(const job *j, int64_t rows) {
    const size_t real = an_dtype_size(j->real), low = an_dtype_size(j->low);
    return matrix(j->logits, j->low, rows, j->classes, j->classes * (int64_t)(real / low));
}

static void part_product(const job *j, part *p, an_tensor a, an_tensor b, an_tensor dst, an_product_attributes how) {
    p->product = how;
    part_begin(j, p, &p->product, 2, 1);
    p->src[0] = a;
    p->src[1] = b;
    p->dst[0] = dst;
    part_choose(p, AN_LEVELED(an_kernels_product));
}

static void part_logits(const job *j, part *p, const an_loss_chunk *c) {
    part_product(j, p, src_rows(j, c->row, c->rows), j->call->src[AN_PRODUCT_LOSS_WEIGHTS],
                 matrix(j->logits, j->real, c->rows, j->classes, j->classes),
                 (an_product_attributes){.transpose_b = true});
}

static void part_loss(const job *j, part *p, const an_loss_chunk *c) {
    const size_t real = an_dtype_size(j->real);
    part_begin(j, p, j->call->attributes, j->target_weights ? 3 : 2, 2);
    p->src[0] = matrix(j->logits, j->real, c->rows, j->classes, j->classes);
    p->src[1] = target_rows(j, c->row, c->rows);
    if (j->target_weights) p->src[2] = vector(j->factors, j->real, c->rows);
    p->dst[0] = vector(j->losses ? j->losses + (size_t)c->row * real : NULL, j->real, c->rows);
    p->dst[1] = vector(j->sums, j->real, c->rows);
    part_choose(p, AN_LEVELED(an_kernels_cross_entropy));
}

static void part_right(const job *j, part *p, const an_loss_chunk *c) {
    part_begin(j, p, &j->counts, 2, 1);
    p->src[0] = matrix(j->logits, j->real, c->rows, j->classes, j->classes);
    p->src[1] = target_rows(j, c->row, c->rows);
    p->dst[0] = (an_tensor){.data = j->right, .dtype = AN_DTYPE_I64};
    part_choose(p, AN_LEVELED(an_kernels_count_right));
}

static void part_diff(const job *j, part *p, const an_loss_chunk *c) {
    part_begin(j, p, j->call->attributes, j->target_weights ? MOST_OPERANDS : MOST_OPERANDS - 1, 1);
    p->src[0] = j->call->src[AN_PRODUCT_LOSS_DIFF];
    p->src[1] = matrix(j->logits, j->real, c->rows, j->classes, j->classes);
    p->src[2] = target_rows(j, c->row, c->rows);
    p->src[3] = vector(j->sums, j->real, c->rows);
    if (j->target_weights) p->src[4] = vector(j->factors, j->real, c->rows);
    p->dst[0] = diff_logits(j, c->rows);
    part_choose(p, AN_LEVELED(an_kernels_cross_entropy_diff));
}

static void part_diff_src(const job *j, part *p, const an_loss_chunk *c) {
    const an_tensor *diff = &j->call->dst[1];
    part_product(j, p, diff_logits(j, c->rows), j->call->src[AN_PRODUCT_LOSS_WEIGHTS],
                 matrix(at(diff, c->row * j->depth), diff->dtype, c->rows, j->depth, j->depth),
                 (an_product_attributes){0});
}

static void part_diff_weights(const job *j, part *p, const an_loss_chunk *c) {
    an_tensor sums = j->call->dst[2];
    sums.data = c->sums;
    part_product(j, p, diff_logits(j, c->rows), src_rows(j, c->row, c->rows), sums,
                 (an_product_attributes){
                     .transpose_a = true, .accumulate = c->continues, .add_count = c->add_count, .add_to = c->add_to});
    p->call.leaves = c->leaves;
}

typedef void make_part(const job *j, part *p, const an_loss_chunk *c);
static make_part *const training_parts[] = {part_logits, part_loss, part_diff, part_diff_src, part_diff_weights};
static make_part *const evaluation_parts[] = {part_logits, part_loss, part_right};

static make_part *const *parts_of(const job *j, int *count) {
    if (j->has_diff) {
        *count = j->has_diff_weights ? 5 : 4;
        return training_parts;
    }
    *count = j->call->dst_count > AN_PRODUCT_LOSS_RIGHT ? 3 : 2;
    return evaluation_parts;
}

/* Of all parts of a chunk. */
static size_t parts_scratch(const job *j, const an_loss_chunk *chunk) {
    size_t maximum = 0;
    int count;
    make_part *const *parts = parts_of(j, &count);
    for (int i = 0; i < count; i++) {
        part p = {0};
        parts[i](j, &p, chunk);
        const size_t bytes = p.kernel->scratch ? p.kernel->scratch(&p.call) : 0;
        if (bytes > maximum) maximum = bytes;
    }
    return maximum;
}

/* A chunk that is shorter needs no more than a whole one. With leaves, a call with fewer samples may have larger
 * chunks, and a chunk may have one leaf or several. */
static size_t scratch(const an_call *call) {
    const job j = job_of(call);
    size_t maximum = parts_scratch(&j, &(an_loss_chunk){.rows = j.chunk});
    for (int64_t rows = AN_PRODUCT_CUT, done = 0; j.cut.rows && done < j.rows; rows *= 2) {
        an_loss_chunk chunk = {.rows = done = an_smaller(rows, j.rows)};
        const an_leaf_cut leaves = {.count = j.leaves->count,
                                    .samples = an_divide_up(chunk.rows * j.leaves->samples, j.rows)};
        const size_t one = parts_scratch(&j, &chunk);
        chunk.leaves = &leaves;
        const size_t several = parts_scratch(&j, &chunk);
        if (one > maximum) maximum = one;
        if (several > maximum) maximum = several;
    }
    return j.logits_bytes + j.losses_bytes + j.sums_bytes + j.factors_bytes + j.ends_bytes +
           (size_t)j.cut.buffers * j.buffer_bytes + maximum;
}

/* A weight is one for each row, or for several that follow each other: a chunk may begin among them. */
static void spread_factors(const job *j, const an_loss_chunk *c) {
    const size_t real = an_dtype_size(j->real);
    if (!j->target_weights || !j->factors) return;
    for (int64_t i = 0; i < c->rows; i++)
        memcpy(j->factors + (size_t)i * real, at(j->target_weights, (c->row + i) / j->each), real);
}

static an_status run_chunk(void *user, const an_loss_chunk *chunk) {
    const job *j = user;
    int count;
    make_part *const *parts = parts_of(j, &count);
    spread_factors(j, chunk);
    for (int i = 0; i < count; i++) {
        part p = {0};
        parts[i](j, &p, chunk);
        AN_TRY_RETURN(p.kernel->run(&p.call));
    }
    return AN_OK;
}

static an_status run_rows(job *j, int64_t *all_right) {
    for (int64_t row = 0; row < j->rows; row += j->chunk) {
        const an_loss_chunk chunk = {.row = row,
                                     .rows = an_smaller(j->chunk, j->rows - row),
                                     .continues = row > 0,
                                     .sums = j->has_diff_weights ? j->call->dst[2].data : NULL};
        AN_TRY_RETURN(run_chunk(j, &chunk));
        *all_right += *j->right;
    }
    return AN_OK;
}

typedef struct {
    char *to;
    const char *from;
    size_t bytes;
} copy;

enum { COPY_BYTES = 1 << 20 }; /* of a task */

static void copy_part(void *user, int64_t index, int thread) {
    const copy *c = user;
    const size_t begin = (size_t)index * COPY_BYTES, left = c->bytes - begin;
    (void)thread;
    memcpy(c->to + begin, c->from + begin, left < COPY_BYTES ? left : COPY_BYTES);
}

static an_status run_leaves(job *j) {
    an_context *ctx = j->call->ctx;
    char *diff = j->call->dst[2].data;
    an_loss_walk walk = {.ctx = ctx,
                         .leaves = j->leaves,
                         .each = j->rows / j->leaves->samples,
                         .cut = j->cut,
                         .buffers = {diff},
                         .ends = (int64_t *)(void *)j->ends,
                         .run = run_chunk,
                         .user = j};
    void *sums;
    for (int i = 0; i < j->cut.buffers; i++) walk.buffers[1 + i] = j->buffers + (size_t)i * j->buffer_bytes;
    AN_TRY_RETURN(an_loss_walk_run(&walk, &sums));
    copy c = {.to = diff, .from = sums, .bytes = (size_t)(j->classes * j->depth) * an_dtype_size(j->real)};
    if (sums != diff) an_parallel(ctx, an_divide_up((int64_t)c.bytes, COPY_BYTES), copy_part, &c);
    return AN_OK;
}

/* The sum of the losses, by leaves. */
#define LOSS_SUM(REAL, suffix)                                                                      \
    static REAL loss_sum_##suffix(const job *j) {                                                   \
        const REAL *losses = (const REAL *)(const void *)j->losses;                                 \
        REAL slots[AN_TREE_DEPTH];                                                                  \
        slots[0] = 0;                                                                               \
        if (!j->leaves) return an_row_sum_##suffix(losses, j->rows);                                \
        an_leaf_walk w = an_leaf_walk_begin(j->leaves, j->rows);                                    \
        while (an_leaf_walk_next(&w)) {                                                             \
            slots[w.slot] = an_row_sum_##suffix(losses + w.begin, w.end - w.begin);                 \
            for (int i = w.slot; i > w.slot - w.joins; i--) slots[i - 1] = slots[i - 1] + slots[i]; \
        }                                                                                           \
        return slots[0];                                                                            \
    }
LOSS_SUM(float, f32)
LOSS_SUM(double, f64)

static void add_losses(void *user, int64_t index, int thread) {
    const job *j = user;
    void *loss = j->call->dst[0].data;
    (void)index, (void)thread;
    if (j->f64)
        *(double *)loss = loss_sum_f64(j);
    else
        *(float *)loss = loss_sum_f32(j);
}

static an_status run(const an_call *call) {
    an_context *ctx = call->ctx;
    const an_cross_entropy_attributes *attributes = call->attributes;
    job j = job_of(call);
    int64_t right = 0, all_right = 0;
    j.right = &right;
    AN_TRY_RETURN(an_cross_entropy_check(ctx, &call->src[AN_PRODUCT_LOSS_TARGETS], j.classes, attributes->ignored));
    if (j.cut.rows)
        AN_TRY_RETURN(run_leaves(&j));
    else
        AN_TRY_RETURN(run_rows(&j, &all_right));
    if (!j.has_diff && call->dst_count > AN_PRODUCT_LOSS_RIGHT)
        *(int64_t *)call->dst[AN_PRODUCT_LOSS_RIGHT].data = all_right;
    if (j.adds) an_parallel(ctx, 1, add_losses, &j); /* as a task, for the floating-point environment */
    return AN_OK;
}

/* Nodes give it nothing else. */
static bool applies(const an_call *call) {
    bool dense =
        an_tensor_is_dense(&call->src[AN_PRODUCT_LOSS_SRC]) && an_tensor_is_dense(&call->src[AN_PRODUCT_LOSS_TARGETS]);
    if (an_call_has(call, AN_PRODUCT_LOSS_TARGET_WEIGHTS))
        dense = dense && an_tensor_is_dense(&call->src[AN_PRODUCT_LOSS_TARGET_WEIGHTS]);
    for (int i = 0; i < call->dst_count; i++) dense = dense && an_tensor_is_dense(&call->dst[i]);
    return dense;
}

AN_KERNEL_LIST(product_cross_entropy) = {
    {.name = "chunks", .applies = applies, .scratch = scratch, .run = run, .by_leaves = true}, {0}};
