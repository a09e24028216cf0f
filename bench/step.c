/* Forward and backward of a model, timed when it is asked for.
 *
 *     step MODEL f32|f64|bf16 THREADS SYMBOL=N...      step gpt2-124m bf16 2 batch=4 tokens=256
 *
 * How it is asked: serve.h. A model without a loss runs forward only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <anneal/plan.h>

#include "models.h"
#include "serve.h"

enum { MOST_SYMBOLS = 8, MOST_TEXT = 256 };

typedef struct step {
    an_context *ctx;
    an_graph *graph;
    an_plan *plan;
    an_params *params;
    an_program *program;
    an_form form;
    an_array changed; /* a small weight, and what is written to it before every pass */
    char changed_name[MOST_TEXT];
    int symbol_count;
    const char *symbols[MOST_SYMBOLS];
    int64_t sizes[MOST_SYMBOLS];
} step;

#define TRY(call)                             \
    do {                                      \
        const an_status status_ = (call);     \
        if (status_ != AN_OK) return status_; \
    } while (0)

/* ---- making it ---- */

static an_status make_plan(step *s, an_dtype precision) {
    an_plan_cost cost;
    an_plan_cost_init(&cost, sizeof cost);
    an_plan_options options; /* training, or prediction if there is no loss */
    an_plan_options_init(&options, sizeof options);
    options.symbol_count = s->symbol_count;
    options.symbols = s->symbols;
    options.maxima = s->sizes;
    options.moments = 0; /* nothing is updated */
    options.precision = precision;
    TRY(an_plan_create(&s->plan, s->ctx, s->graph, &options));
    const bool trains = an_plan_cost_get(s->plan, AN_FORM_TRAIN_FIRST, &cost) == AN_OK;
    s->form = trains ? AN_FORM_TRAIN_FIRST : AN_FORM_PREDICT;
    return AN_OK;
}

/* Uniform numbers in (-1, 1), integers below the limit. */
static an_status fill_input(step *s, int64_t index) {
    an_input_info info;
    an_input_info_init(&info, sizeof info);
    an_array array = {0};
    int64_t elements = 1;
    TRY(an_program_input(s->program, index, &info));
    array.dtype = info.dtype;
    array.ndims = info.ndims;
    for (int d = 0; d < info.ndims; d++) elements *= array.dims[d] = info.dims[d];
    array.data = malloc((size_t)elements * an_dtype_size(info.dtype));
    if (!array.data) return AN_ERR_MEMORY;
    for (int64_t i = 0; i < elements; i++) {
        const int random = rand();
        const double real = 2.0 * random / RAND_MAX - 1;
        if (info.dtype == AN_DTYPE_F32) ((float *)array.data)[i] = (float)real;
        if (info.dtype == AN_DTYPE_F64) ((double *)array.data)[i] = real;
        if (info.dtype == AN_DTYPE_I32)
            ((int32_t *)array.data)[i] = info.limit > 0 ? (int32_t)(random % info.limit) : 0;
    }
    const an_status status = an_program_set_input(s->program, info.name, &array);
    free(array.data);
    return status;
}

/* Chooses the smallest weight. */
static an_status choose_changed(step *s) {
    int64_t smallest = INT64_MAX;
    for (int64_t i = 0; i < an_params_count(s->params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        TRY(an_params_info(s->params, i, &info));
        if (info.elements >= smallest) continue;
        smallest = info.elements;
        snprintf(s->changed_name, sizeof s->changed_name, "%s", info.name);
        s->changed = (an_array){.dtype = info.dtype, .ndims = info.ndims};
        memcpy(s->changed.dims, info.dims, sizeof info.dims);
    }
    if (smallest == INT64_MAX) return AN_OK; /* a model without weights */
    s->changed.data = calloc((size_t)smallest, an_dtype_size(s->changed.dtype));
    if (!s->changed.data) return AN_ERR_MEMORY;
    return an_params_get(s->params, s->changed_name, AN_PART_WEIGHT, &s->changed);
}

static an_status make_program(step *s) {
    double units = 1;
    an_params_options store;
    an_params_options_init(&store, sizeof store);
    store.moments = 0;
    store.gradients = s->form != AN_FORM_PREDICT;
    TRY(an_params_create(&s->params, s->ctx, s->graph, &store));
    TRY(an_params_reset(s->params, 1));
    TRY(an_program_create(&s->program, s->plan, s->params));
    for (int i = 0; i < s->symbol_count; i++) {
        TRY(an_program_bind(s->program, s->symbols[i], s->sizes[i]));
        units *= (double)s->sizes[i];
    }
    for (int64_t i = 0; i < an_program_input_count(s->program); i++) TRY(fill_input(s, i));
    if (s->form == AN_FORM_TRAIN_FIRST) TRY(an_program_set_scalar(s->program, "loss_gradient", 1 / units));
    return choose_changed(s);
}

/* ---- running it ---- */

/* A pass is that of a training step, which follows an update: whatever is derived from the weights (copies in bf16,
 * packed ones) is made anew in it, and timed with it. Setting one weight is enough to make the store's version rise. */
static an_status pass(void *user) {
    step *s = user;
    if (s->changed.data) TRY(an_params_set(s->params, s->changed_name, AN_PART_WEIGHT, &s->changed));
    return an_program_run(s->program, s->form);
}

/* Whether anything at all ran in bf16: a run that was asked for it and has none of it is no measurement. */
static an_status expect_bf16(const step *s) {
    for (int64_t i = 0; i < an_program_profile_count(s->program, s->form); i++) {
        an_profile_entry entry;
        an_profile_entry_init(&entry, sizeof entry);
        TRY(an_program_profile_entry(s->program, s->form, i, &entry));
        if (entry.dtype == AN_DTYPE_BF16) return AN_OK;
    }
    fprintf(stderr, "step: the plan was asked for bf16, but nothing in it is bf16\n");
    return AN_ERR_UNSUPPORTED;
}

static an_status run(step *s, const char *model, an_dtype dtype, an_dtype precision, int threads) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    options.threads = threads;
    TRY(an_context_create(&s->ctx, &options));
    TRY(bench_model(&s->graph, s->ctx, model, dtype));
    TRY(make_plan(s, precision));
    TRY(make_program(s));
    if (precision == AN_DTYPE_BF16) {
        TRY(pass(s));
        TRY(expect_bf16(s));
    }
    return bench_serve(pass, s);
}

static int misuse(void) {
    fprintf(stderr, "usage: step MODEL f32|f64|bf16 THREADS SYMBOL=N...\n");
    return 2;
}

int main(int argc, char **argv) {
    enum { MODEL = 1, PRECISION, THREADS, SYMBOLS };
    step s = {0};
    an_dtype dtype = AN_DTYPE_F32, precision = AN_DTYPE_NONE;
    if (argc < SYMBOLS || argc > SYMBOLS + MOST_SYMBOLS) return misuse();
    if (!strcmp(argv[PRECISION], "f64"))
        dtype = AN_DTYPE_F64;
    else if (!strcmp(argv[PRECISION], "bf16"))
        precision = AN_DTYPE_BF16;
    else if (strcmp(argv[PRECISION], "f32") != 0)
        return misuse();
    for (int i = SYMBOLS; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) return misuse();
        *equals = 0;
        s.symbols[s.symbol_count] = argv[i];
        s.sizes[s.symbol_count++] = strtoll(equals + 1, NULL, 10);
    }
    const an_status status = run(&s, argv[MODEL], dtype, precision, (int)strtol(argv[THREADS], NULL, 10));
    if (status != AN_OK) fprintf(stderr, "step: %s: %s\n", an_status_name(status), an_last_error(s.ctx));
    free(s.changed.data);
    an_program_destroy(&s.program);
    an_params_destroy(&s.params);
    an_plan_destroy(&s.plan);
    an_graph_destroy(&s.graph);
    an_context_destroy(&s.ctx);
    return status == AN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
