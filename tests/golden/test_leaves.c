/* Steps that are cut into leaves, compared with PyTorch: the summed gradients of every case of data/ whose batch is a
 * symbol.
 *
 *     test_golden_leaves                 every such case
 *     test_golden_leaves leaves. gpt2.   those whose names begin so
 *     test_golden_leaves --refuse [...]  every expected number changed a little: everything must fail
 *
 * The number of leaves goes from 1 to 64: even, uneven, and more of them than samples. For each, micro-batches of one
 * leaf, of four and of all leaves, fused and not, on one to three threads, with kernels that add by leaves and without,
 * must have the same bits; PyTorch's gradients must be met by these, and by leaves that are cut into micro-batches.
 * Levels of instructions take turns.
 *
 * The limits are those of test_golden. In f64 that is 1e-12 of a gradient's norm: sums of the 67 × 3 rows of the
 * largest cases are off by a few roundings of 1.1e-16, whatever their order, while one row that is left out, or taken
 * twice, is about 1e-2.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/experimental.h"
#include "base/isa.h"
#include "golden/parity.h"
#include "ops/ops.h"
#include "step/step.h"
#include "support/leaf_cut.h"

/* How a step runs. */
typedef enum { BY_LEAVES, LOSS_LEAF_BY_LEAF, ALL_LEAF_BY_LEAF } kernel_choice;
typedef struct way {
    int64_t together; /* leaves in a micro-batch */
    int threads;
    bool fused;
    int64_t part; /* samples of a micro-batch, where these are parts of a leaf; 0: they are not */
    kernel_choice kernels;
} way;

enum { ALL = 64 };
/* The others must have the bits of the first, but for those in parts. Kernels without `by_leaves` are the portable
 * ones, so they are compared in f64, where no others apply. */
static const way ways[] = {
    {.together = 1, .threads = 1},
    {.together = 4, .threads = 2, .fused = true},
    {.together = ALL, .threads = 3, .fused = true},
    {.together = ALL, .threads = 1},
    {.together = ALL, .threads = 2, .fused = true, .kernels = LOSS_LEAF_BY_LEAF},
    {.together = ALL, .threads = 1, .kernels = ALL_LEAF_BY_LEAF},
    {.together = 1, .threads = 2, .fused = true, .part = 3},
};

/* How the samples are cut: evenly without a seed. Sanitizers and emulators take ten times as long, so they run some
 * of these. */
static const struct {
    int64_t leaves;
    uint64_t seed;
} cuts[] = {
    {3, 0}, {17, 0}, {64, 0}, {17, 2},
#if !defined(ANNEAL_SANITIZED) && !defined(ANNEAL_EMULATED)
    {1, 0}, {2, 0},  {8, 0},  {8, 1},  {64, 3},
#endif
};

static const an_isa levels[] = {AN_ISA_BASE, AN_ISA_AVX2, AN_ISA_AVX512, AN_ISA_AMX};
enum { LEVELS = sizeof levels / sizeof levels[0] };

/* What a step comes to; gradients lie at their arrays' places. */
typedef struct outcome {
    an_array gradients[GOLDEN_ARRAYS];
    double loss, norm;
} outcome;

/* One way to run one cut of a case. */
typedef struct step {
    test *t;
    const way *way;
    const an_leaf_cut *cut;
    an_array inputs[GOLDEN_ARRAYS]; /* at their arrays' places; data NULL: it is no input */
    an_groups *groups;
    an_optimizer *optimizer;
    an_stepper *stepper;
} step;

/* ---- ops that add over samples ---- */

enum { MOST_OPS = 1 << 10 };
static bool seen[MOST_OPS]; /* by place in an_op_table: it has added several leaves in one micro-batch, in f64 */

static void see_sums(const test *t) {
    const an_graph *g = t->program->forms[AN_FORM_TRAIN_FIRST].graph;
    for (const an_node *n = g->first; n; n = n->next)
        for (int i = 0; n->leaf_sum && an_op_table[i]; i++)
            seen[i] = seen[i] || (an_op_table[i] == n->op && t->precision == IN_F64);
}

static bool adds_by_leaves(const an_op *op) {
    const an_kernel *kernel = op->kernels[0];
    while (kernel && kernel->name && !kernel->by_leaves) kernel++;
    return kernel && kernel->name;
}

/* ---- kernels without leaves ---- */

/* Gives every op that adds by leaves its portable kernel once more, which says nothing of leaves, so that
 * it runs once for each. A program's kernel is not fused with others: where products have one, nothing
 * is a product with its loss. */
static bool hide_leaves(test *t, kernel_choice choice) {
    for (int i = 0; an_op_table[i]; i++) {
        const an_op *op = an_op_table[i];
        const bool is_part = op == &an_op_matmul || op == &an_op_cross_entropy;
        if (!op->kernels[0] || (is_part && choice == LOSS_LEAF_BY_LEAF)) continue;
        const an_kernel *last = an_op_kernels(op, an_context_isa(t->ctx));
        while (last[1].name) last++;
        if (!last->by_leaves) continue;
        const an_kernel simple = {
            .name = "simple", .applies = last->applies, .scratch = last->scratch, .run = last->run};
        TRY(t, an_context_add_kernel(t->ctx, op->name, &simple));
    }
    return true;
}

/* ---- a step ---- */

/* Samples `first` … of an input. */
static an_array part_of(const an_array *input, int64_t first, int64_t samples) {
    an_array part = *input;
    int64_t row = 1;
    for (int i = 1; i < input->ndims; i++) row *= input->dims[i];
    part.dims[0] = samples;
    part.data = (char *)input->data + (size_t)(first * row) * an_dtype_size(input->dtype);
    return part;
}

/* Leaves leaf … leaf + count - 1, whose samples are `first` …; ends[i] counts from there. */
static bool run_micro_batch(const step *s, int64_t leaf, int64_t count, int64_t first, const int64_t *ends) {
    const test *t = s->t;
    TRY(t, an_program_bind(t->program, "batch", ends[count - 1]));
    for (int i = 0; i < t->gold->count; i++) {
        if (!s->inputs[i].data) continue;
        const an_array part = part_of(&s->inputs[i], first, ends[count - 1]);
        TRY(t, an_program_set_input(t->program, t->gold->arrays[i].name, &part));
    }
    TRY(t, an_step_run_leaves(s->stepper, leaf, count, ends));
    return true;
}

static bool run_micro_batches(const step *s) {
    const an_leaf_cut *cut = s->cut;
    int64_t ends[ALL];
    for (int64_t leaf = 0; leaf < cut->count; leaf += s->way->together) {
        const int64_t rest = cut->count - leaf, count = rest < s->way->together ? rest : s->way->together;
        const int64_t begin = leaf ? cut->ends[leaf - 1] : 0, end = cut->ends[leaf + count - 1];
        for (int64_t i = 0; i < count; i++) ends[i] = cut->ends[leaf + i] - begin;
        for (int64_t at = begin; at < end && s->way->part; at += s->way->part) {
            const int64_t samples = end - at < s->way->part ? end - at : s->way->part;
            if (!run_micro_batch(s, leaf, 1, at, &samples)) return false;
        }
        if (begin < end && !s->way->part && !run_micro_batch(s, leaf, count, begin, ends)) return false;
    }
    return true;
}

static bool make_step(step *s) {
    test *t = s->t;
    const bool simple = s->way->kernels != BY_LEAVES;
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.programs = AN_PROGRAM_TRAINING;
    options.fused = s->way->fused;
    options.leaves = s->cut->count;
    options.run_leaves = s->way->together;
    options.samples = "batch";
    if ((simple && !hide_leaves(t, s->way->kernels)) || !parity_make_graph(t) || !parity_make_program(t, &options) ||
        !parity_give_arrays(t, false))
        return false;
    for (int i = 0; i < t->gold->count; i++)
        if (!strcmp(t->gold->arrays[i].role, "input")) s->inputs[i] = golden_convert(&t->gold->arrays[i], t->dtype);
    an_stepper_options stepping;
    an_stepper_options_init(&stepping, sizeof stepping);
    stepping.leaves = s->cut->count;
    stepping.rate = 0;
    TRY(t, an_groups_create(&s->groups, t->graph, NULL));
    TRY(t, an_optimizer_create(&s->optimizer, t->params, s->groups, NULL));
    TRY(t, an_stepper_create(&s->stepper, t->program, s->optimizer, NULL, &stepping));
    return true;
}

static bool run_step(const step *s, outcome *o) {
    const test *t = s->t;
    an_step_metrics metrics;
    an_step_metrics_init(&metrics, sizeof metrics);
    TRY(t, an_step_begin(s->stepper, t->targets));
    if (!run_micro_batches(s)) return false;
    TRY(t, an_step_reduce(s->stepper));
    TRY(t, an_step_unscale(s->stepper));
    if (!parity_get_gradients(t, o->gradients)) return false;
    TRY(t, an_step_update(s->stepper));
    TRY(t, an_step_schedule(s->stepper));
    TRY(t, an_step_end(s->stepper, &metrics));
    o->loss = metrics.loss;
    o->norm = metrics.norm;
    return true;
}

static void destroy_step(step *s) {
    an_stepper_destroy(&s->stepper);
    an_optimizer_destroy(&s->optimizer);
    an_groups_destroy(&s->groups);
    for (int i = 0; i < s->t->gold->count; i++) free(s->inputs[i].data);
    parity_destroy(s->t);
}

/* ---- comparing ---- */

static void compare_with_golden(test *t, const outcome *o) {
    parity_compare_number(t, LOSS, "loss", golden_find(t->gold, "loss", NULL)->values[0], o->loss);
    parity_compare_number(t, GRADIENT, "norm", t->all_gradients, o->norm);
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *expected = &t->gold->arrays[i];
        if (o->gradients[i].data)
            parity_compare(t, GRADIENT, expected, 1, &o->gradients[i], parity_least_norm(t, expected));
    }
}

static void compare_bits(const test *t, const outcome *a, const outcome *b) {
    if (a->loss != b->loss || a->norm != b->norm)
        parity_fail(t, "loss %a and norm %a, but %a and %a in micro-batches of one leaf", b->loss, b->norm, a->loss,
                    a->norm);
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *array = &t->gold->arrays[i];
        const size_t bytes = (size_t)array->count * an_dtype_size(t->dtype);
        if (a->gradients[i].data && memcmp(a->gradients[i].data, b->gradients[i].data, bytes) != 0)
            parity_fail(t, "gradient %s has other bits than in micro-batches of one leaf", array->name);
    }
}

static void release(const test *t, outcome *o) {
    for (int i = 0; i < t->gold->count; i++) {
        free(o->gradients[i].data);
        o->gradients[i].data = NULL;
    }
}

/* ---- a case ---- */

static int levels_here(void) {
    int count = 1;
    while (count < LEVELS && levels[count] <= an_isa_highest()) count++;
    return count;
}

/* Runs one way; false: it failed. */
static bool run_way(test *t, const an_leaf_cut *cut, const way *w, an_isa isa, outcome *o) {
    step s = {.t = t, .way = w, .cut = cut};
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = w->threads;
    options.isa = isa;
    bool runs = parity_succeeds(t, an_context_create(&t->ctx, &options), "an_context_create") && make_step(&s);
    if (runs && w->together > 1 && an_plan_one_leaf(t->plan)) {
        parity_fail(t, "one leaf at a time: %s", an_plan_one_leaf(t->plan));
        runs = false;
    }
    runs = runs && run_step(&s, o);
    if (runs && w->together > 1) see_sums(t);
    destroy_step(&s);
    return runs;
}

static void run_cut(test *t, const an_leaf_cut *cut, uint64_t seed, an_isa isa) {
    outcome first = {.loss = 0};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const way *w = &ways[i];
        outcome other = {.loss = 0}, *o = i ? &other : &first;
        if (w->kernels != BY_LEAVES && t->precision != IN_F64) continue;
        snprintf(t->way, sizeof t->way, ", level %s, %d leaves%s, way %d", an_isa_name(isa), (int)cut->count,
                 seed ? " of random sizes" : "", (int)i);
        if (run_way(t, cut, w, isa, o)) {
            if (i == 0 || w->part)
                compare_with_golden(t, o);
            else
                compare_bits(t, &first, o);
        }
        release(t, &other);
    }
    release(t, &first);
}

/* Batch norm computes with the samples of a micro-batch: such a model has no gradient of a step. */
static void run_case(test *t) {
    const golden_array *batch = golden_find(t->gold, "symbol", "batch");
    if (!batch || golden_find(t->gold, "state", NULL)) return;
    const size_t turn = (size_t)(t->s->runs++ / PRECISIONS) + (size_t)t->precision;
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        an_leaf_cut cut = leaf_cut_make(cuts[i].leaves, (int64_t)batch->values[0], cuts[i].seed);
        run_cut(t, &cut, cuts[i].seed, levels[(turn + i) % (size_t)levels_here()]);
        leaf_cut_free(&cut);
    }
}

/* Every op whose kernels add by leaves must have done so in some case. Losses of each target are not added: the kernel
 * is that of their sum. */
static void check_ops(session *s, bool all) {
    for (int i = 0; all && an_op_table[i]; i++) {
        const an_op *op = an_op_table[i];
        const bool is_sum = op != &an_op_cross_entropy_each && op != &an_op_matmul_cross_entropy_each;
        assert(i < MOST_OPS);
        if (seen[i] || !is_sum || !adds_by_leaves(op)) continue;
        s->failures++;
        printf("FAILED: no case adds leaves by %s\n", op->name);
    }
}

int main(int count, char **arguments) {
    return parity_main(count, arguments, run_case, check_ops);
}
