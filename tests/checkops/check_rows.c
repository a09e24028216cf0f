/* --mode=rows: a sample alone has the bits that it has in any batch.
 *
 * A case is made with many samples and with fewer, which are the first of the many. Where the oracle computes the same
 * for them, kernels must have the same bits. A program chooses kernels for its largest sizes, so a kernel that applies
 * to many samples is run with fewer without being asked again; and as another program may be made for fewer, the kernel
 * that it would choose must have these bits too.
 */
#include "checkops/nodes.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHAPES = 6,       /* of each dtype */
    CANDIDATES = 100, /* among which they are looked for */
    MANY = 64,        /* samples of random cases */
    MOST_ELEMENTS = 1 << 17
};
static const double most_flops = 2e7;

static const int64_t few[] = {1, 2, 3, 7};
static const an_dtype dtypes[] = {AN_DTYPE_F32, AN_DTYPE_F64, AN_DTYPE_BF16, AN_DTYPE_F16};
enum { FEW = sizeof few / sizeof few[0], DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Whether the elements of `part` are those that `whole` begins with, as bits. */
static bool begins_with(const an_tensor *whole, const an_tensor *part) {
    const size_t size = an_dtype_size(part->dtype);
    int64_t count = 1;
    for (int i = 0; i < part->ndims; i++) count *= part->dims[i];
    for (int64_t i = 0; i < count; i++)
        if (memcmp(check_element(whole, i), check_element(part, i), size) != 0) return false;
    return true;
}

/* ---- random cases ---- */

typedef struct {
    check_run whole, parts[FEW]; /* of many samples, and of the first few of them */
    uint32_t by_rows;            /* outputs that are one for each sample, a mask */
} rows_case;

/* To the oracle, output i of `part` is the beginning of that of `whole`, and both are one for each sample. */
static bool is_by_rows(const check_run *whole, const check_run *part, int i) {
    const check_array *a = &whole->dst[i].array, *b = &part->dst[i].array;
    if (a->ndims == 0 || a->dims[0] != MANY || a->count / a->dims[0] != b->count / b->dims[0]) return false;
    return !memcmp(a->data, b->data, (size_t)b->count * sizeof *b->data);
}

static void take_samples(check_run *part, const check_run *whole) {
    check_run_fill(part, 0);
    for (int i = 0; i < part->src_count; i++)
        if (part->src[i].array.data)
            memcpy(part->src[i].array.data, whole->src[i].array.data,
                   (size_t)part->src[i].array.count * sizeof(long double));
    check_run_oracle(part);
}

/* False if the case has no samples, or is too large for the oracle. */
static bool prepare(rows_case *c, const check_options *options, const check_family *family, an_dtype dtype,
                    int64_t number) {
    memset(c, 0, sizeof *c);
    if (!check_run_create_rows(&c->whole, options, family, dtype, number, MANY)) return false;
    if (check_run_elements(&c->whole) > MOST_ELEMENTS || check_run_cost(&c->whole).flops > most_flops) return false;
    check_run_fill(&c->whole, 0);
    check_run_oracle(&c->whole);
    c->by_rows = ~0u;
    for (int k = 0; k < FEW; k++) {
        if (!check_run_create_rows(&c->parts[k], options, family, dtype, number, few[k])) return false;
        take_samples(&c->parts[k], &c->whole);
        for (int i = 0; i < c->whole.dst_count; i++)
            if (!is_by_rows(&c->whole, &c->parts[k], i)) c->by_rows &= ~(1u << i);
    }
    return c->by_rows << (32 - c->whole.dst_count);
}

static void destroy(rows_case *c) {
    check_run_destroy(&c->whole);
    for (int k = 0; k < FEW; k++) check_run_destroy(&c->parts[k]);
}

static void place(rows_case *c, check_layout layout) {
    check_run_place(&c->whole, layout, false);
    for (int k = 0; k < FEW; k++) check_run_place(&c->parts[k], layout, false);
}

/* Runs a kernel on the k-th part and compares it with what lies in the outputs of the whole. */
static void compare(rows_case *c, int k, const an_kernel *kernel) {
    check_run *whole = &c->whole, *part = &c->parts[k];
    const char *wrong = check_run_call(part, kernel, part->ctx, -1, 0);
    if (!wrong && check_run_scratch(part, kernel, part->ctx) > check_run_scratch(whole, kernel, whole->ctx))
        wrong = "more scratch than for many, which is all that a program has";
    check_count();
    if (wrong) check_fail(whole, kernel->name, "%d samples: %s", (int)few[k], wrong);
    for (int i = 0; i < part->dst_count && !wrong; i++)
        if (c->by_rows >> i & 1 && !begins_with(&whole->dst[i].tensor, &part->dst[i].tensor))
            check_fail(whole, kernel->name, "output %d: of %d samples alone it has other bits than among %d", i,
                       (int)few[k], MANY);
}

static bool run_whole(rows_case *c, const an_kernel *kernel) {
    const char *wrong = check_run_call(&c->whole, kernel, c->whole.ctx, -1, 0);
    if (wrong) check_fail(&c->whole, kernel->name, "%d samples: %s", MANY, wrong);
    return !wrong;
}

/* The one that a plan would choose for this call; NULL: none applies. */
static const an_kernel *chosen(const check_run *run) {
    const an_kernel *kernel = check_kernels(run->options, run->op);
    while (kernel->name && !check_applies(run, kernel)) kernel++;
    return kernel->name ? kernel : NULL;
}

static void run_case(rows_case *c) {
    const check_options *options = c->whole.options;
    for (const an_kernel *kernel = check_kernels(options, c->whole.op); kernel->name; kernel++) {
        if (!check_wants_kernel(options, kernel)) continue;
        place(c, CHECK_DENSE);
        if (!check_applies(&c->whole, kernel)) place(c, CHECK_PERMUTED);
        if (!check_applies(&c->whole, kernel) || !run_whole(c, kernel)) continue;
        for (int k = 0; k < FEW; k++) compare(c, k, kernel);
    }
    place(c, CHECK_DENSE);
    const an_kernel *first = chosen(&c->whole);
    for (int k = 0; k < FEW && first && !options->kernel; k++) {
        const an_kernel *other = chosen(&c->parts[k]);
        if (other && other != first && run_whole(c, first)) compare(c, k, other);
    }
}

static int run_dtype(const check_options *options, const check_family *family, an_dtype dtype) {
    const int shapes = options->shapes ? (int)options->shapes : SHAPES;
    rows_case *c = check_allocate(1, sizeof *c);
    int count = 0;
    for (int64_t n = 0; n < CANDIDATES && count < shapes; n++) {
        if (options->only >= 0 && options->only != n) continue;
        if (prepare(c, options, family, dtype, n)) {
            run_case(c);
            count++;
        }
        destroy(c);
    }
    free(c);
    return count;
}

/* ---- nodes of real models ---- */

/* The call of a node when the batch is bound to fewer samples. */
static bool make_part(const node_case *c, int64_t samples, node_call *part) {
    an_symbol *batch = c->graph->dimensions.symbols;
    while (strcmp(batch->name, "batch") != 0) batch++;
    memset(part, 0, sizeof *part);
    batch->value = samples;
    bool good = an_node_resolve_attributes(c->graph, c->node, part->at.attributes) == AN_OK;
    for (int i = 0; i < c->node->input_count; i++) {
        const an_result *r = an_node_input(c->node, i);
        if (r) good = good && an_result_tensor(c->graph, r, &part->at.src[i]);
    }
    for (int i = 0; i < c->node->output_count; i++)
        good = good && an_result_tensor(c->graph, &c->node->outputs[i], &part->at.dst[i]);
    batch->value = batch->maximum;
    part->at.call = c->whole.at.call;
    part->at.call.src = part->at.src;
    part->at.call.dst = part->at.dst;
    part->at.call.attributes = part->at.attributes;
    return good;
}

/* Outputs whose dimension 0 is the batch, a mask. */
static uint32_t outputs_by_rows(const node_case *c) {
    const an_dim batch = an_symbol_dim(c->graph, "batch");
    uint32_t mask = 0;
    for (int i = 0; i < c->node->output_count; i++)
        if (c->node->outputs[i].ndims > 0 && c->node->outputs[i].dims[0] == batch) mask |= 1u << i;
    return mask;
}

/* `largest` is what the program was made for: it has that much scratch. */
static void compare_node(node_case *c, node_call *part, const node_call *largest, int64_t samples,
                         const an_kernel *kernel) {
    an_context *ctx = c->graph->ctx;
    const char *wrong = node_run(c, part, kernel, ctx, largest);
    if (wrong) node_fail(c, kernel, "%d samples: %s", (int)samples, wrong);
    for (int i = 0; i < c->node->output_count && !wrong; i++)
        if (outputs_by_rows(c) >> i & 1 && !begins_with(&c->whole.at.dst[i], &part->at.dst[i]))
            node_fail(c, kernel, "output %d: of %d samples alone it has other bits than in the batch", i, (int)samples);
}

static void visit_kernel(node_case *c, const an_kernel *kernel, const int64_t *samples, int count) {
    an_context *ctx = c->graph->ctx;
    const char *wrong = node_run(c, &c->whole, kernel, ctx, &c->whole);
    if (wrong) node_fail(c, kernel, "%s", wrong);
    for (int k = 0; k < count && !wrong; k++) {
        node_call part;
        if (!make_part(c, samples[k], &part)) continue;
        node_call_fill(&part, c->options->seed);
        compare_node(c, &part, &c->whole, samples[k], kernel);
        node_call_release(&part);
    }
}

/* Where a program for a few samples would choose another kernel, that one against the one chosen for many. */
static void visit_chosen(node_case *c, const int64_t *samples, int count) {
    an_context *ctx = c->graph->ctx;
    const an_kernel *kernels = check_kernels(c->options, c->node->op), *first = kernels;
    while (first->name && !node_call_applies(&c->whole, first, ctx)) first++;
    for (int k = 0; k < count && first->name; k++) {
        const an_kernel *other = kernels;
        node_call part;
        if (!make_part(c, samples[k], &part)) continue;
        while (other->name && !node_call_applies(&part, other, ctx)) other++;
        if (other == first || !other->name) continue;
        node_run(c, &c->whole, first, ctx, &c->whole);
        node_call_fill(&part, c->options->seed);
        compare_node(c, &part, &part, samples[k], other);
        node_call_release(&part);
    }
}

static void visit_node(node_case *c) {
    static const int64_t samples[] = {1, 2, 3, 7, MANY};
    int64_t batch = 0;
    int count = 0;
    if (!outputs_by_rows(c) || !an_dimensions_value(&c->graph->dimensions, an_symbol_dim(c->graph, "batch"), &batch))
        return;
    while (count < (int)(sizeof samples / sizeof samples[0]) && samples[count] < batch) count++;
    for (const an_kernel *kernel = check_kernels(c->options, c->node->op); kernel->name; kernel++)
        if (check_wants_kernel(c->options, kernel) && node_call_applies(&c->whole, kernel, c->graph->ctx))
            visit_kernel(c, kernel, samples, count);
    if (!c->options->kernel) visit_chosen(c, samples, count);
}

/* ---- all of it ---- */

void check_rows(const check_options *options, const check_family *family, const an_op *op) {
    int count = 0;
    if (!family->rows) return;
    for (int d = 0; d < DTYPES && !options->model; d++)
        if (check_wants_dtype(options, family, dtypes[d])) count += run_dtype(options, family, dtypes[d]);
    if (count == 0 && options->only < 0 && !options->model)
        check_fail_plain("%s: no random case has a result for each sample", op->name);
    if (options->only < 0) nodes_visit(options, op, true, visit_node);
}
