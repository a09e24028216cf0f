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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/plan.h"
#include "golden/golden.h"
#include "golden/model.h"
#include "ir/graph.h"
#include "ops/ops.h"

enum { PATH_BYTES = 1024 };
static const char folder[] = ANNEAL_SOURCE_DIR "/tests/golden/data/";

/* What parity means: the loss relative to itself; a gradient by its L2 norm, relative to the larger of its norm and a
 * small part of all gradients' norm. Outputs and statistics are held to the gradients' numbers. PyTorch's are those of
 * f64; in bf16 the limits are a few roundings to 8 bits. */
typedef enum kind { LOSS, GRADIENT, OUTPUT, KINDS } kind;
static const char *const kind_names[] = {"loss", "gradient", "output"};
typedef enum precision { IN_F32, IN_F64, IN_BF16, PRECISIONS } precision;
static const char *const precision_names[] = {"f32", "f64", "bf16"};
static const double limits[PRECISIONS][KINDS] = {{1e-6, 1e-5, 1e-5}, {1e-12, 1e-12, 1e-12}, {1e-2, 5e-2, 2e-2}};
static const double part_of_all = 1e-4;
/* A gradient whose terms cancel is the rounding of its terms: a bias of keys shifts all scores of a query alike, so its gradient is 0. */
static const double cancelled = 1e-12, part_if_cancelled = 1e-2;

/* The largest error of a kind, in one dtype, and where it was. */
typedef struct worst {
    double error;
    char where[2 * GOLDEN_NAME_BYTES];
} worst;

typedef struct session {
    const char *program;
    bool refuse;
    int runs, comparisons, failures;
    worst worst[PRECISIONS][KINDS];
    bool *seen; /* by place in an_op_table: some case is about the op */
} session;

typedef struct test {
    session *s;
    const golden_case *gold;
    precision precision;
    an_dtype dtype; /* of parameters, inputs and outputs */
    an_context *ctx;
    an_graph *graph;
    an_params *params;
    an_plan *plan;
    an_program *program;
    int64_t targets; /* the loss is a sum; this divides it */
    double all_gradients;
    an_array once[GOLDEN_ARRAYS], twice[GOLDEN_ARRAYS]; /* gradients after one and two runs, at their arrays' places */
} test;

static void fail(const test *t, const char *format, ...) AN_PRINTF(2, 3);
static void fail(const test *t, const char *format, ...) {
    va_list arguments;
    t->s->failures++;
    printf("FAILED %s in %s: ", t->gold->name, precision_names[t->precision]);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n    again: %s%s %s\n", t->s->program, t->s->refuse ? " --refuse" : "", t->gold->name);
}

/* Returns false after a failed call of the library. */
static bool succeeds(const test *t, an_status status, const char *call) {
    if (status != AN_OK) fail(t, "%s: %s: %s", call, an_status_name(status), an_last_error(t->ctx));
    return status == AN_OK;
}
#define TRY(t, call)                                     \
    do {                                                 \
        if (!succeeds((t), (call), #call)) return false; \
    } while (0)

/* ---- comparing ---- */

static double norm_of(const golden_array *array) {
    double sum = 0;
    for (int64_t i = 0; i < array->count; i++) sum += array->values[i] * array->values[i];
    return sqrt(sum);
}

static double limit_of(const test *t, kind k) {
    return limits[t->precision][k];
}

/* Compares an error with its limit and notes it. */
static void judge(test *t, kind k, const char *name, double error) {
    worst *w = &t->s->worst[t->precision][k];
    t->s->comparisons++;
    if (!(error <= w->error)) {
        w->error = error;
        snprintf(w->where, sizeof w->where, "%s, %s", t->gold->name, name);
    }
    if (t->s->refuse ? error > limit_of(t, k) : error <= limit_of(t, k)) return; /* a NaN is never fine */
    fail(t, "%s %s has a relative error of %.3g, the limit is %.0e%s", kind_names[k], name, error, limit_of(t, k),
         t->s->refuse ? "; it was changed and must be refused" : "");
}

/* What is expected; with --refuse, changed by three times what is allowed. */
static double expect(const test *t, kind k, double value) {
    return t->s->refuse ? value * (1 + 3 * limit_of(t, k)) : value;
}

/* Compares with `times` the expected array, relative to its norm, which counts as `least` if it is less. */
static void compare(test *t, kind k, const golden_array *expected, double times, const an_array *got, double least) {
    double norm = norm_of(expected), sum = 0;
    if (t->s->refuse && (norm == 0 || norm < least)) return; /* the change would be nothing, or drown */
    for (int64_t i = 0; i < expected->count; i++) {
        double difference = golden_element(got, i) - expect(t, k, times * expected->values[i]);
        sum += difference * difference;
    }
    judge(t, k, expected->name, sum == 0 ? 0 : sqrt(sum) / (times * fmax(norm, least)));
}

static bool compare_loss(test *t, const golden_array *expected) {
    double loss = NAN, value = expect(t, LOSS, expected->values[0]);
    TRY(t, an_program_loss(t->program, &loss));
    judge(t, LOSS, expected->role, fabs(loss / (double)t->targets - value) / fabs(value));
    return true;
}

static bool compare_output(test *t, const golden_array *expected) {
    an_array got = golden_room(expected, t->dtype);
    an_status status = an_program_get_output(t->program, expected->name, &got);
    if (status == AN_OK) compare(t, OUTPUT, expected, 1, &got, 0);
    free(got.data);
    TRY(t, status);
    return true;
}

/* ---- gradients ---- */

/* What the norm of a gradient counts as, if it is less. */
static double least_norm(const test *t, const golden_array *expected) {
    const bool is_cancelled = norm_of(expected) < cancelled * t->all_gradients;
    return (is_cancelled ? part_if_cancelled : part_of_all) * t->all_gradients;
}

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
        compare(t, GRADIENT, expected, 2, twice, least_norm(t, expected));
        return;
    }
    for (int64_t i = 0; i < expected->count && !t->s->refuse; i++)
        if (golden_element(twice, i) != 2 * golden_element(once, i)) {
            fail(t, "gradient %s: element %lld is %.17g after the first run and %.17g, not twice that, after the next",
                 expected->name, (long long)i, golden_element(once, i), golden_element(twice, i));
            return;
        }
}

static bool get_gradients(const test *t, an_array *gradients) {
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *expected = &t->gold->arrays[i];
        if (strcmp(expected->role, "gradient") != 0) continue;
        gradients[i] = golden_room(expected, t->dtype);
        TRY(t, an_params_get(t->params, expected->name, AN_PART_GRADIENT, &gradients[i]));
    }
    return true;
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

static bool run_training(test *t) {
    if (!spoil_gradients(t)) return false;
    TRY(t, an_program_run(t->program, AN_FORM_TRAIN_FIRST));
    if (!compare_loss(t, golden_find(t->gold, "loss", NULL))) return false;
    for (int i = 0; i < t->gold->count; i++)
        if (!strcmp(t->gold->arrays[i].role, "statistic") && !compare_output(t, &t->gold->arrays[i])) return false;
    if (!get_gradients(t, t->once)) return false;
    TRY(t, an_program_run(t->program, AN_FORM_TRAIN_NEXT));
    if (!get_gradients(t, t->twice)) return false;
    for (int i = 0; i < t->gold->count; i++) {
        if (!t->once[i].data) continue;
        compare(t, GRADIENT, &t->gold->arrays[i], 1, &t->once[i], least_norm(t, &t->gold->arrays[i]));
        compare_doubled(t, &t->gold->arrays[i], &t->once[i], &t->twice[i]);
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

/* ---- from files to a program ---- */

static bool make_graph(test *t) {
    const char *graph = t->gold->graph;
    if (!graph) {
        TRY(t, golden_model(&t->graph, t->ctx, t->gold, t->dtype));
        return true;
    }
    char *text = strdup(graph);
    if (!text) return succeeds(t, AN_ERR_MEMORY, "strdup");
    if (t->dtype == AN_DTYPE_F32) /* the texts are of f64, and have the word nowhere else */
        for (char *at = text; (at = strstr(at, "f64"));) at[1] = '3', at[2] = '2';
    an_status status = an_graph_parse(&t->graph, t->ctx, text, strlen(text));
    free(text);
    TRY(t, status);
    TRY(t, an_graph_verify(t->graph));
    return true;
}

static bool make_program(test *t) {
    enum { MOST_SYMBOLS = 8 };
    const char *symbols[MOST_SYMBOLS];
    int64_t maxima[MOST_SYMBOLS];
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.programs = AN_PROGRAM_TRAINING | AN_PROGRAM_EVALUATION | AN_PROGRAM_PREDICTION;
    if (t->precision == IN_BF16) options.precision = AN_DTYPE_BF16;
    options.fused = t->dtype != AN_DTYPE_F64; /* so that every op runs by itself once, and fused once */
    options.symbols = symbols;
    options.maxima = maxima;
    for (int i = 0; i < t->gold->count && options.symbol_count < MOST_SYMBOLS; i++) {
        const golden_array *array = &t->gold->arrays[i];
        if (strcmp(array->role, "symbol") != 0) continue;
        symbols[options.symbol_count] = array->name;
        maxima[options.symbol_count++] = (int64_t)array->values[1];
    }
    TRY(t, an_params_create(&t->params, t->ctx, t->graph, NULL));
    TRY(t, an_plan_create(&t->plan, t->ctx, t->graph, &options));
    TRY(t, an_program_create(&t->program, t->plan, t->params));
    for (int i = 0; i < options.symbol_count; i++) {
        const golden_array *array = golden_find(t->gold, "symbol", symbols[i]);
        TRY(t, an_program_bind(t->program, array->name, (int64_t)array->values[0]));
    }
    return true;
}

/* Gives the program one array, if it is one that programs are given. */
static an_status give(test *t, const golden_array *array, const an_array *converted) {
    if (!strcmp(array->role, "param") || !strcmp(array->role, "state"))
        return an_params_set(t->params, array->name, AN_PART_WEIGHT, converted);
    if (!strcmp(array->role, "input")) return an_program_set_input(t->program, array->name, converted);
    if (!strcmp(array->role, "scalar"))
        return an_program_set_scalar_i64(t->program, array->name, (int64_t)array->values[0]);
    return AN_OK;
}

static bool give_arrays(test *t) {
    const golden_array *count = golden_find(t->gold, "targets", NULL);
    int64_t params = an_params_count(t->params);
    t->targets = count ? (int64_t)count->values[0] : 1;
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *array = &t->gold->arrays[i];
        params -= !strcmp(array->role, "param");
        an_array converted = golden_convert(array, t->dtype);
        int64_t counted = t->targets;
        an_status status = give(t, array, &converted);
        if (status == AN_OK && count && array == golden_find(t->gold, "input", "targets"))
            status = an_program_count_targets(t->program, &converted, &counted);
        free(converted.data);
        if (!succeeds(t, status, array->name)) return false;
        if (counted != t->targets)
            fail(t, "%lld targets were counted, not %lld", (long long)counted, (long long)t->targets);
    }
    if (params != 0) fail(t, "the graph has %lld parameters too many", (long long)params);
    TRY(t, an_program_set_scalar(t->program, "loss_gradient", 1.0 / (double)t->targets));
    return true;
}

/* ---- which ops have run ---- */

/* An op with a gradient must stand in a case's own graph, so that its gradient is compared too; that it serves the
 * gradient of another is not enough. */
static void see(session *s, const char *op, bool in_graph) {
    for (int i = 0; an_op_table[i]; i++)
        if (!strcmp(an_op_table[i]->name, op) && (in_graph || !an_op_table[i]->grad)) s->seen[i] = true;
}

static void see_all(const test *t) {
    for (const an_node *node = t->graph->first; node; node = node->next) see(t->s, node->op->name, true);
    for (int form = AN_FORM_TRAIN_FIRST; form <= AN_FORM_EVALUATE; form++) {
        int64_t count = an_program_profile_count(t->program, (an_form)form);
        for (int64_t i = 0; i < count; i++) {
            an_profile_entry entry;
            an_profile_entry_init(&entry, sizeof entry);
            if (an_profile_entry_get(t->program, (an_form)form, i, &entry) == AN_OK) see(t->s, entry.op, false);
        }
    }
}

/* Ops that have no golden case, and why. */
static const char *const exceptions[][2] = {
    {"dropout", "no two libraries draw the same random numbers"},
    {"adapt", "it has the kernels and the gradient of add, and stands in graphs of generators in q8_0 only"},
    {"product_sum", "tests/open/test_lora.c compares adapters with those of peft"},
    {"stretch", "the same, and it has the kernels of multiply"},
    {"row_factors", "the same: no function of PyTorch has this gradient"},
    {"program_state", "it is memory between runs, not a function"},
    {"cached_attention", "tests/predict/test_decoding.c compares it with attention, bit for bit"},
    {"cross_entropy_each", "tests/open/test_dpo.c compares losses and gradients of preferences with those of PyTorch"},
    {"product_cross_entropy_each", "the same"},
    {"exchange", "it computes nothing: tests/ranks compares what ranks exchange with one process"},
    {"gather_weights", "tests/exec/test_gathered.c compares programs that have these with programs that do not"},
    {"arrive_weights", "the same"},
    {"collect_gradients", "the same"},
    {"unit_grad", "the same"},
    {"scatter_gradients", "the same"},
    {"scattered_gradients", "the same"},
};

static void check_ops(session *s) {
    for (int i = 0; an_op_table[i]; i++) {
        const char *op = an_op_table[i]->name, *reason = NULL;
        for (size_t k = 0; k < sizeof exceptions / sizeof exceptions[0]; k++)
            if (!strcmp(exceptions[k][0], op)) reason = exceptions[k][1];
        if (reason && !s->seen[i]) printf("op %s has no case: %s\n", op, reason);
        if (s->seen[i] == !reason) continue;
        s->failures++;
        printf("FAILED: %s op %s\n", reason ? "an exception is made, but a case runs" : "no case runs", op);
    }
}

/* ---- cases ---- */

static void run_case(session *s, const golden_case *gold, precision p) {
    test t = {.s = s, .gold = gold, .precision = p, .dtype = p == IN_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32};
    s->runs++;
    for (int i = 0; i < gold->count; i++)
        if (!strcmp(gold->arrays[i].role, "gradient"))
            t.all_gradients = hypot(t.all_gradients, norm_of(&gold->arrays[i]));
    if (succeeds(&t, an_context_create(&t.ctx, NULL), "an_context_create") && make_graph(&t) && make_program(&t) &&
        give_arrays(&t) && run_training(&t) && run_evaluation(&t))
        see_all(&t);
    for (int i = 0; i < gold->count; i++) {
        free(t.once[i].data);
        free(t.twice[i].data);
    }
    an_program_destroy(&t.program);
    an_plan_destroy(&t.plan);
    an_params_destroy(&t.params);
    an_graph_destroy(&t.graph);
    an_context_destroy(&t.ctx);
}

static bool is_wanted(const char *name, int count, char **prefixes) {
    for (int i = 0; i < count; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return count == 0;
}

static void run_family(session *s, const char *family, int count, char **prefixes) {
    static golden_case gold;
    char path[PATH_BYTES];
    const char *wrong = "it cannot be opened, or begins otherwise";
    snprintf(path, sizeof path, "%s%s.golden", folder, family);
    FILE *file = golden_open(path);
    while (file && golden_read(&gold, file, &wrong)) {
        if (is_wanted(gold.name, count, prefixes)) {
            run_case(s, &gold, IN_F64);
            run_case(s, &gold, IN_F32);
            run_case(s, &gold, IN_BF16);
        }
        golden_release(&gold);
    }
    if (file) fclose(file);
    if (!wrong) return;
    s->failures++;
    printf("FAILED: %s: %s\n", path, wrong);
}

static void report(const session *s) {
    for (int d = 0; d < PRECISIONS; d++)
        for (int k = 0; k < KINDS; k++)
            printf("%-4s %-8s worst error %.2e (%s)\n", precision_names[d], kind_names[k], s->worst[d][k].error,
                   s->worst[d][k].where);
    printf("%d runs of cases, %d comparisons, %d failures\n", s->runs, s->comparisons, s->failures);
}

int main(int count, char **arguments) {
    session s = {.program = arguments[0]};
    char path[PATH_BYTES];
    size_t length = 0, ops = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow what was said before it */
    s.refuse = count > 1 && !strcmp(arguments[1], "--refuse");
    int first = s.refuse ? 2 : 1;
    while (an_op_table[ops]) ops++;
    s.seen = calloc(ops, sizeof *s.seen);
    snprintf(path, sizeof path, "%sfamilies.txt", folder);
    char *families = golden_read_text(path, &length);
    if (!families || !s.seen) {
        printf("FAILED: %s cannot be read\n", path);
        return EXIT_FAILURE;
    }
    for (char *family = strtok(families, "\n"); family; family = strtok(NULL, "\n"))
        run_family(&s, family, count - first, arguments + first);
    if (count == 1) check_ops(&s);
    if (s.runs == 0) {
        s.failures++;
        printf("FAILED: no case is called so\n");
    }
    report(&s);
    free(families);
    free(s.seen);
    return s.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
