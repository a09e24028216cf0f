#include "golden/parity.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "golden/model.h"

enum { PATH_BYTES = 1024 };
static const char folder[] = ANNEAL_SOURCE_DIR "/tests/golden/data/";

/* What parity means: the loss relative to itself; a gradient by its L2 norm, relative to the larger of its norm and a
 * small part of all gradients' norm. Outputs and statistics are held to the gradients' numbers. PyTorch's are those of
 * f64; in bf16 the limits are a few roundings to 8 bits. */
static const char *const kind_names[] = {"loss", "gradient", "output"};
static const char *const precision_names[] = {"f32", "f64", "bf16"};
static const double limits[PRECISIONS][KINDS] = {{1e-6, 1e-5, 1e-5}, {1e-12, 1e-12, 1e-12}, {1e-2, 5e-2, 2e-2}};
static const double part_of_all = 1e-4;
/* A gradient whose terms cancel is the rounding of its terms: a bias of keys shifts all scores of a query
 * alike, so its gradient is 0. */
static const double cancelled = 1e-12, part_if_cancelled = 1e-2;

void parity_fail(const test *t, const char *format, ...) {
    va_list arguments;
    t->s->failures++;
    printf("FAILED %s in %s%s: ", t->gold->name, precision_names[t->precision], t->way);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\n    again: %s%s %s\n", t->s->program, t->s->refuse ? " --refuse" : "", t->gold->name);
}

bool parity_succeeds(const test *t, an_status status, const char *call) {
    if (status != AN_OK) parity_fail(t, "%s: %s: %s", call, an_status_name(status), an_last_error(t->ctx));
    return status == AN_OK;
}

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
    parity_fail(t, "%s %s has a relative error of %.3g, the limit is %.0e%s", kind_names[k], name, error,
                limit_of(t, k), t->s->refuse ? "; it was changed and must be refused" : "");
}

/* What is expected; with --refuse, changed by three times what is allowed. */
static double expect(const test *t, kind k, double value) {
    return t->s->refuse ? value * (1 + 3 * limit_of(t, k)) : value;
}

void parity_compare(test *t, kind k, const golden_array *expected, double times, const an_array *got, double minimum) {
    double norm = norm_of(expected), sum = 0;
    if (t->s->refuse && (norm == 0 || norm < minimum)) return; /* the change would be nothing, or drown */
    for (int64_t i = 0; i < expected->count; i++) {
        double difference = golden_element(got, i) - expect(t, k, times * expected->values[i]);
        sum += difference * difference;
    }
    judge(t, k, expected->name, sum == 0 ? 0 : sqrt(sum) / (times * fmax(norm, minimum)));
}

void parity_compare_number(test *t, kind k, const char *name, double expected, double got) {
    const double value = expect(t, k, expected);
    judge(t, k, name, fabs(got - value) / fabs(value));
}

double parity_least_norm(const test *t, const golden_array *expected) {
    const bool is_cancelled = norm_of(expected) < cancelled * t->all_gradients;
    return (is_cancelled ? part_if_cancelled : part_of_all) * t->all_gradients;
}

/* ---- from files to a program ---- */

bool parity_make_graph(test *t) {
    const char *graph = t->gold->graph;
    if (!graph) {
        TRY(t, golden_model(&t->graph, t->ctx, t->gold, t->dtype));
        return true;
    }
    char *text = strdup(graph);
    if (!text) return parity_succeeds(t, AN_ERR_MEMORY, "strdup");
    if (t->dtype == AN_DTYPE_F32) /* the texts are of f64, and have the word nowhere else */
        for (char *at = text; (at = strstr(at, "f64"));) at[1] = '3', at[2] = '2';
    an_status status = an_graph_parse(&t->graph, t->ctx, text, strlen(text));
    free(text);
    TRY(t, status);
    TRY(t, an_graph_verify(t->graph));
    return true;
}

bool parity_make_program(test *t, const an_plan_options *given) {
    enum { MOST_SYMBOLS = 8 };
    const char *symbols[MOST_SYMBOLS];
    int64_t maxima[MOST_SYMBOLS];
    an_plan_options options = *given;
    if (t->precision == IN_BF16) options.precision = AN_DTYPE_BF16;
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

bool parity_give_arrays(test *t, bool inputs) {
    const golden_array *count = golden_find(t->gold, "targets", NULL);
    int64_t params = an_params_count(t->params);
    t->targets = count ? (int64_t)count->values[0] : 1;
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *array = &t->gold->arrays[i];
        params -= !strcmp(array->role, "param");
        an_array converted = golden_convert(array, t->dtype);
        int64_t counted = t->targets;
        const bool is_given = inputs || strcmp(array->role, "input") != 0;
        an_status status = is_given ? give(t, array, &converted) : AN_OK;
        if (status == AN_OK && count && array == golden_find(t->gold, "input", "targets"))
            status = an_program_count_targets(t->program, &converted, &counted);
        free(converted.data);
        if (!parity_succeeds(t, status, array->name)) return false;
        if (counted != t->targets)
            parity_fail(t, "%lld targets were counted, not %lld", (long long)counted, (long long)t->targets);
    }
    if (params != 0) parity_fail(t, "the graph has %lld parameters too many", (long long)params);
    TRY(t, an_program_set_scalar(t->program, "loss_gradient", 1.0 / (double)t->targets));
    return true;
}

void parity_destroy(test *t) {
    an_program_destroy(&t->program);
    an_plan_destroy(&t->plan);
    an_params_destroy(&t->params);
    an_graph_destroy(&t->graph);
    an_context_destroy(&t->ctx);
}

bool parity_get_gradients(const test *t, an_array *gradients) {
    for (int i = 0; i < t->gold->count; i++) {
        const golden_array *expected = &t->gold->arrays[i];
        if (strcmp(expected->role, "gradient") != 0) continue;
        gradients[i] = golden_room(expected, t->dtype);
        TRY(t, an_params_get(t->params, expected->name, AN_PART_GRADIENT, &gradients[i]));
    }
    return true;
}

/* ---- all cases ---- */

static void run_case(session *s, const golden_case *gold, precision p, void (*run)(test *t)) {
    test t = {.s = s, .gold = gold, .precision = p, .dtype = p == IN_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32};
    for (int i = 0; i < gold->count; i++)
        if (!strcmp(gold->arrays[i].role, "gradient"))
            t.all_gradients = hypot(t.all_gradients, norm_of(&gold->arrays[i]));
    run(&t);
}

static bool is_wanted(const char *name, int count, char **prefixes) {
    for (int i = 0; i < count; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
    return count == 0;
}

static void run_family(session *s, const char *family, int count, char **prefixes, void (*run)(test *t)) {
    static golden_case gold;
    char path[PATH_BYTES];
    const char *wrong = "it cannot be opened, or begins otherwise";
    snprintf(path, sizeof path, "%s%s.golden", folder, family);
    FILE *file = golden_open(path);
    while (file && golden_read(&gold, file, &wrong)) {
        if (is_wanted(gold.name, count, prefixes)) {
            run_case(s, &gold, IN_F64, run);
            run_case(s, &gold, IN_F32, run);
            run_case(s, &gold, IN_BF16, run);
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

int parity_main(int count, char **arguments, void (*run)(test *t), void (*end)(session *s, bool all)) {
    session s = {.program = arguments[0]};
    char path[PATH_BYTES];
    size_t length = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* a crash must not swallow what was said before it */
    s.refuse = count > 1 && !strcmp(arguments[1], "--refuse");
    int first = s.refuse ? 2 : 1;
    snprintf(path, sizeof path, "%sfamilies.txt", folder);
    char *families = golden_read_text(path, &length);
    if (!families) {
        printf("FAILED: %s cannot be read\n", path);
        return EXIT_FAILURE;
    }
    for (char *family = strtok(families, "\n"); family; family = strtok(NULL, "\n"))
        run_family(&s, family, count - first, arguments + first, run);
    end(&s, count == 1);
    if (s.runs == 0) {
        s.failures++;
        printf("FAILED: no case is called so\n");
    }
    report(&s);
    free(families);
    return s.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
