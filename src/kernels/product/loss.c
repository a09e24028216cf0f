/* The loss with the last product. Its parts are the kernels of product and cross_entropy themselves, run on chunks of rows:
 * so the bits are those of the parts by construction. Both gradients are made where the logits are, because making the
 * logits a second time would cost a third of the head's arithmetic. */
#include "kernels/product/loss.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "kernels/common/reduce_order.h"
#include "kernels/common/row.h"

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
    bool f64, has_diff, has_diff_weights;
    bool adds; /* the losses; otherwise the loss of each row is the output */
    an_count_right_attributes counts;
    int64_t *right;     /* of a chunk */
    an_dtype real, low; /* of the logits, and of their gradient as the products read it */
    int64_t rows, depth, classes, chunk;
    const an_tensor *target_weights;                              /* NULL: none */
    int64_t each;                                                 /* targets of a weight */
    size_t logits_bytes, losses_bytes, sums_bytes, factors_bytes; /* scratch, in this order; then that of the parts */
    char *logits, *losses, *sums, *factors, *part_scratch;        /* factors: the weight of each row of a chunk */
} job;

static an_tensor matrix(void *data, an_dtype dtype, int64_t rows, int64_t columns, int64_t row_stride) {
    return (an_tensor){.data = data, .dtype = dtype, .ndims = 2, .dims = {rows, columns}, .strides = {row_stride, 1}};
}

static an_tensor vector(void *data, an_dtype dtype, int64_t elements) {
    return (an_tensor){.data = data, .dtype = dtype, .ndims = 1, .dims = {elements}, .strides = {1}};
}

static job job_of(const an_call *call) {
    const an_tensor *src = &call->src[AN_PRODUCT_LOSS_SRC], *weights = &call->src[AN_PRODUCT_LOSS_WEIGHTS];
    job j = {.call = call, .f64 = an_call_is_f64(call)};
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
    j.logits_bytes = an_round_up((size_t)(j.chunk * j.classes) * real, AN_ALIGNMENT);
    j.adds = call->dst[0].ndims == 0;
    j.losses_bytes = j.adds ? an_round_up((size_t)j.rows * real, AN_ALIGNMENT) : 0;
    j.sums_bytes = an_round_up((size_t)j.chunk * real, AN_ALIGNMENT);
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
        j.part_scratch = j.factors + j.factors_bytes;
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

/* The gradient of the logits takes their place: a row is written when all of it has been read, and a lower type fills the
 * front half of its row. */
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

static void part_logits(const job *j, part *p, int64_t row, int64_t rows) {
    part_product(j, p, src_rows(j, row, rows), j->call->src[AN_PRODUCT_LOSS_WEIGHTS],
                 matrix(j->logits, j->real, rows, j->classes, j->classes),
                 (an_product_attributes){.transpose_b = true});
}

static void part_loss(const job *j, part *p, int64_t row, int64_t rows) {
    const size_t real = an_dtype_size(j->real);
    part_begin(j, p, j->call->attributes, j->target_weights ? 3 : 2, 2);
    p->src[0] = matrix(j->logits, j->real, rows, j->classes, j->classes);
    p->src[1] = target_rows(j, row, rows);
    if (j->target_weights) p->src[2] = vector(j->factors, j->real, rows);
    p->dst[0] = vector(j->losses ? j->losses + (size_t)row * real : NULL, j->real, rows);
    p->dst[1] = vector(j->sums, j->real, rows);
    part_choose(p, AN_LEVELED(an_kernels_cross_entropy));
}

static void part_right(const job *j, part *p, int64_t row, int64_t rows) {
    part_begin(j, p, &j->counts, 2, 1);
    p->src[0] = matrix(j->logits, j->real, rows, j->classes, j->classes);
    p->src[1] = target_rows(j, row, rows);
    p->dst[0] = (an_tensor){.data = j->right, .dtype = AN_DTYPE_I64};
    part_choose(p, AN_LEVELED(an_kernels_count_right));
}

static void part_diff(const job *j, part *p, int64_t row, int64_t rows) {
    part_begin(j, p, j->call->attributes, j->target_weights ? MOST_OPERANDS : MOST_OPERANDS - 1, 1);
    p->src[0] = j->call->src[AN_PRODUCT_LOSS_DIFF];
    p->src[1] = matrix(j->logits, j->real, rows, j->classes, j->classes);
    p->src[2] = target_rows(j, row, rows);
    p->src[3] = vector(j->sums, j->real, rows);
    if (j->target_weights) p->src[4] = vector(j->factors, j->real, rows);
    p->dst[0] = diff_logits(j, rows);
    part_choose(p, AN_LEVELED(an_kernels_cross_entropy_diff));
}

static void part_diff_src(const job *j, part *p, int64_t row, int64_t rows) {
    const an_tensor *diff = &j->call->dst[1];
    part_product(j, p, diff_logits(j, rows), j->call->src[AN_PRODUCT_LOSS_WEIGHTS],
                 matrix(at(diff, row * j->depth), diff->dtype, rows, j->depth, j->depth), (an_product_attributes){0});
}

static void part_diff_weights(const job *j, part *p, int64_t row, int64_t rows) {
    part_product(j, p, diff_logits(j, rows), src_rows(j, row, rows), j->call->dst[2],
                 (an_product_attributes){.transpose_a = true, .accumulate = row > 0});
}

typedef void make_part(const job *j, part *p, int64_t row, int64_t rows);
static make_part *const training_parts[] = {part_logits, part_loss, part_diff, part_diff_src, part_diff_weights};
static make_part *const evaluation_parts[] = {part_logits, part_loss, part_right};

static make_part *const *parts_of(const job *j, int *count) {
    *count = j->has_diff_weights ? 5 : j->has_diff ? 4 : j->call->dst_count > AN_PRODUCT_LOSS_RIGHT ? 3 : 2;
    return j->has_diff ? training_parts : evaluation_parts;
}

/* A last chunk that is shorter needs no more than a whole one. */
static size_t scratch(const an_call *call) {
    const job j = job_of(call);
    size_t most = 0;
    int count;
    make_part *const *parts = parts_of(&j, &count);
    for (int i = 0; i < count; i++) {
        part p = {0};
        parts[i](&j, &p, 0, j.chunk);
        const size_t bytes = p.kernel->scratch ? p.kernel->scratch(&p.call) : 0;
        if (bytes > most) most = bytes;
    }
    return j.logits_bytes + j.losses_bytes + j.sums_bytes + j.factors_bytes + most;
}

/* A weight is one for each row, or for several that follow each other: a chunk may begin among them. */
static void spread_factors(const job *j, int64_t row, int64_t rows) {
    const size_t real = an_dtype_size(j->real);
    if (!j->target_weights || !j->factors) return;
    for (int64_t i = 0; i < rows; i++)
        memcpy(j->factors + (size_t)i * real, at(j->target_weights, (row + i) / j->each), real);
}

static void add_losses(void *user, int64_t index, int thread) {
    const job *j = user;
    void *loss = j->call->dst[0].data;
    (void)index, (void)thread;
    if (j->f64)
        *(double *)loss = an_row_sum_f64((const double *)(const void *)j->losses, j->rows);
    else
        *(float *)loss = an_row_sum_f32((const float *)(const void *)j->losses, j->rows);
}

static an_status run(const an_call *call) {
    an_context *ctx = call->ctx;
    const an_cross_entropy_attributes *attributes = call->attributes;
    job j = job_of(call);
    int count;
    make_part *const *parts = parts_of(&j, &count);
    int64_t right = 0, all_right = 0;
    j.right = &right;
    AN_TRY_RETURN(an_cross_entropy_check(ctx, &call->src[AN_PRODUCT_LOSS_TARGETS], j.classes, attributes->ignored));
    for (int64_t row = 0; row < j.rows; row += j.chunk) {
        spread_factors(&j, row, an_smaller(j.chunk, j.rows - row));
        for (int i = 0; i < count; i++) {
            part p = {0};
            parts[i](&j, &p, row, an_smaller(j.chunk, j.rows - row));
            AN_TRY_RETURN(p.kernel->run(&p.call));
        }
        all_right += right;
    }
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

AN_KERNEL_LIST(product_cross_entropy) = {{.name = "chunks", .applies = applies, .scratch = scratch, .run = run}, {0}};
