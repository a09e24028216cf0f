/* Compares the library with PyTorch, case by case, in f64, in f32 and in bf16.
 *
 *     test_golden                        every case of data/; then every op must have run in one of them
 *     test_golden softmax.axis_1 llama.  cases whose names begin so
 *     test_golden --refuse [name...]     the same with every expected number changed a little: everything must fail
 *
 * A case is a graph in the text form, or a model, and the arrays that case.py describes. It is planned for training and
 * evaluation and run: `first` must overwrite gradients and give PyTorch's, `next` must add the same again, evaluation
 * must give PyTorch's outputs.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "golden/parity.h"
#include "ir/graph.h"
#include "ops/ops.h"

static bool *seen; /* by place in an_op_table: some case is about the op */

static bool compare_loss(test *t, const golden_array *expected) {
    double loss = NAN;
    TRY(t, an_program_loss(t->program, &loss));
    parity_compare_number(t, LOSS, expected->role, expected->values[0], loss / (double)t->targets);
    return true;
}

static bool compare_output(test *t, const golden_array *expected) {
    an_array got = golden_room(expected, t->dtype);
    an_status status = an_program_get_output(t->program, expected->name, &got);
    if (status == AN_OK) parity_compare(t, OUTPUT, expected, 1, &got, 0);
    free(got.data);
    TRY(t, status);
    return true;
}

/* ---- gradients ---- */

/* A parameter that is read once gets one contribution a run, and so twice that in two runs, exactly. */
static bool is_read_once(const test *t, const char *name) {
    for (size_t i = 0; i < t->graph->parameter_count; i++) {
        const an_parameter *parameter = &t->graph->parameters[i];
        if (strcmp(parameter->name, name) != 0) continue;
        const an_result *r = &parameter->node->outputs[0];
        return r->first_use == r->last_use;
    }
    return false;
}

static void compare_doubled(test *t, const golden_array *expected, const an_array *once, const an_array *twice) {
    if (t->precision == IN_BF16 || !is_read_once(t, expected->name)) { /* tiles go on with the sums of the first run */
        parity_compare(t, GRADIENT, expected, 2, twice, parity_least_norm(t, expected));
        return;
    }
    for (int64_t i = 0; i < expected->count && !t->s->refuse; i++)
        if (golden_element(twice, i) != 2 * golden_element(once, i)) {
            parity_fail(
                t, "gradient %s: element %lld is %.17g after the first run and %.17g, not twice that, after the next",
                expected->name, (long long)i, golden_element(once, i), golden_element(twice, i));
            return;
        }
}

/* NaNs, of which a first run may leave nothing. */
static bool spoil_gradients(const test *t) {
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *expected = &t->gold->arrays[i];
        if (strcmp(expected->role, "gradient") != 0) continue;
        an_array nans = golden_room(expected, t->dtype);
        an_status status = an_params_set(t->params, expected->name, AN_PART_GRADIENT, &nans);
        free(nans.data);
        TRY(t, status);
    }
    return true;
}

/* `once` and `twice`: room for the gradients after one and two runs, at their arrays' places. */
static bool run_training(test *t, an_array *once, an_array *twice) {
    if (!spoil_gradients(t)) return false;
    TRY(t, an_program_run(t->program, AN_FORM_TRAIN_FIRST));
    if (!compare_loss(t, golden_find(t->gold, "loss", NULL))) return false;
    for (int i = 0; i < t->gold->count; i++)
        if (!strcmp(t->gold->arrays[i].role, "statistic") && !compare_output(t, &t->gold->arrays[i])) return false;
    if (!parity_get_gradients(t, once)) return false;
    TRY(t, an_program_run(t->program, AN_FORM_TRAIN_NEXT));
    if (!parity_get_gradients(t, twice)) return false;
    for (int i = 0; i < t->gold->count; i++) {
        if (!once[i].data) continue;
        parity_compare(t, GRADIENT, &t->gold->arrays[i], 1, &once[i], parity_least_norm(t, &t->gold->arrays[i]));
        compare_doubled(t, &t->gold->arrays[i], &once[i], &twice[i]);
    }
    return true;
}

static bool run_evaluation(test *t) {
    const golden_array *loss = golden_find(t->gold, "evaluation_loss", NULL);
    TRY(t, an_program_run(t->program, AN_FORM_EVALUATE));
    if (!compare_loss(t, loss ? loss : golden_find(t->gold, "loss", NULL))) return false;
    TRY(t, an_program_run(t->program, AN_FORM_PREDICT)); /* which has every output */
    for (int i = 0; i < t->gold->count; i++)
        if (!strcmp(t->gold->arrays[i].role, "output") && !compare_output(t, &t->gold->arrays[i])) return false;
    return true;
}

/* ---- which ops have run ---- */

/* An op with a gradient must stand in a case's own graph, so that its gradient is compared too; that it serves the
 * gradient of another is not enough. */
static void see(const char *op, bool in_graph) {
    for (int i = 0; an_op_table[i]; i++)
        if (!strcmp(an_op_table[i]->name, op) && (in_graph || !an_op_table[i]->grad)) seen[i] = true;
}

static void see_all(const test *t) {
    for (const an_node *node = t->graph->first; node; node = node->next) see(node->op->name, true);
    for (int form = AN_FORM_TRAIN_FIRST; form <= AN_FORM_EVALUATE; form++) {
        int64_t count = an_program_profile_count(t->program, (an_form)form);
        for (int64_t i = 0; i < count; i++) {
            an_profile_entry entry;
            an_profile_entry_init(&entry, sizeof entry);
            if (an_program_profile_entry(t->program, (an_form)form, i, &entry) == AN_OK) see(entry.op, false);
        }
    }
}

/* Ops that have no golden case, and why. */
static const char *const exceptions[][2] = {
    {"dropout", "no two libraries draw the same random numbers"},
    {"adapt", "it has the kernels and the gradient of add, and stands in graphs of generators in q8_0 only"},
    {"program_state", "it is memory between runs, not a function"},
    {"cached_attention", "tests/predict/test_decoding.c compares it with attention, bit for bit"},
    {"cross_entropy_each", "tests/open/test_dpo.c compares losses and gradients of preferences with those of PyTorch"},
    {"matmul_cross_entropy_each", "the same"},
    {"exchange", "it computes nothing: tests/ranks compares what ranks exchange with one process"},
    {"gather_weights", "tests/exec/test_gathered.c compares programs that have these with programs that do not"},
    {"arrive_weights", "the same"},
    {"collect_gradients", "the same"},
    {"unit_grad", "the same"},
    {"scatter_gradients", "the same"},
    {"scattered_gradients", "the same"},
};

static void check_ops(session *s, bool all) {
    if (!all) return;
    for (int i = 0; an_op_table[i]; i++) {
        const char *op = an_op_table[i]->name, *reason = NULL;
        for (size_t k = 0; k < sizeof exceptions / sizeof exceptions[0]; k++)
            if (!strcmp(exceptions[k][0], op)) reason = exceptions[k][1];
        if (reason && !seen[i]) printf("op %s has no case: %s\n", op, reason);
        if (seen[i] == !reason) continue;
        s->failures++;
        printf("FAILED: %s op %s\n", reason ? "an exception is made, but a case runs" : "no case runs", op);
    }
}

/* ---- cases ---- */

static void run_case(test *t) {
    an_array once[GOLDEN_ARRAYS] = {0}, twice[GOLDEN_ARRAYS] = {0};
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.programs = AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION | AN_PROGRAM_PREDICTION;
    options.fused = t->dtype != AN_DTYPE_F64; /* so that every op runs by itself once, and fused once */
    t->s->runs++;
    if (parity_succeeds(t, an_context_create(&t->ctx, NULL), "an_context_create") && parity_make_graph(t) &&
        parity_make_program(t, &options) && parity_give_arrays(t, true) && run_training(t, once, twice) &&
        run_evaluation(t))
        see_all(t);
    for (int i = 0; i < t->gold->count; i++) {
        free(once[i].data);
        free(twice[i].data);
    }
    parity_destroy(t);
}

int main(int count, char **arguments) {
    size_t ops = 0;
    while (an_op_table[ops]) ops++;
    seen = calloc(ops, sizeof *seen);
    if (!seen) return EXIT_FAILURE;
    const int result = parity_main(count, arguments, run_case, check_ops);
    free(seen);
    return result;
}
