/* anneal bench: how fast a model runs here, and where the time goes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "cli/bench/profile.h"
#include "cli/plan/report.h"

enum { PASSES = CLI_PLAN_OPTIONS, PROFILE, JSON };
static const cli_option options[] = {
    CLI_PLAN_TABLE,
    [PASSES] = {.name = "passes",
                .argument = "N",
                .help = "number of passes to time, after one warm-up pass (default 10)"},
    [PROFILE] = {.name = "profile",
                 .argument = "FILE",
                 .help = "time every node; write a trace for chrome://tracing or ui.perfetto.dev to FILE and a table "
                         "by op and kernel to standard output"},
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

typedef struct bench {
    cli_report report;
    an_params *params;
    an_program *program;
    FILE *trace;   /* NULL: no profile, or it is written */
    bool profiles; /* every node is timed */
    cli_profile profile;
    int64_t passes;
    double *seconds;            /* of each pass, sorted after the last */
    an_param_info changed_info; /* of a small weight, */
    an_array changed;           /* and what is written to it before every pass; without data: there is none */
    const char *unit;
    double units; /* in one pass */
} bench;

static int out_of_memory(const cli_call *call) {
    return cli_fail(call, "out of memory");
}

/* ---- inputs ---- */

/* A generator that needs no quality, only no pattern that a kernel could profit from (splitmix64). */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Element `i` of an array: numbers in (-1, 1), integers below the limit. */
static void fill_element(const an_input_info *info, void *data, int64_t i, uint64_t random) {
    const double real = (double)(random >> 11) * 0x1p-52 - 1;
    const int64_t integer = info->limit > 0 ? (int64_t)(random % (uint64_t)info->limit) : 0;
    const float single = (float)real;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    switch (info->dtype) {
    case AN_DTYPE_F32: ((float *)data)[i] = single; break;
    case AN_DTYPE_F64: ((double *)data)[i] = real; break;
    case AN_DTYPE_BF16: ((uint16_t *)data)[i] = (uint16_t)(bits >> 16); break;
    case AN_DTYPE_F16: ((uint16_t *)data)[i] = (uint16_t)(0x3800 | (random >> 63) << 15); break; /* ±0.5 */
    case AN_DTYPE_I32: ((int32_t *)data)[i] = (int32_t)integer; break;
    case AN_DTYPE_I64: ((int64_t *)data)[i] = integer; break;
    case AN_DTYPE_U8: ((uint8_t *)data)[i] = (uint8_t)random; break;
    case AN_DTYPE_Q8_0: /* has no element of its own */
    case AN_DTYPE_NONE:
    case AN_DTYPE_LIMIT: break;
    }
}

static int fill_inputs(const cli_call *call, const bench *b) {
    uint64_t state = 1;
    for (int64_t i = 0; i < an_program_input_count(b->program); i++) {
        an_input_info info;
        an_input_info_init(&info, sizeof info);
        an_array array = {0};
        int64_t elements = 1;
        an_status status = an_program_input(b->program, i, &info);
        if (status != AN_OK) return cli_failure(call, b->report.ctx, status);
        array.dtype = info.dtype;
        array.ndims = info.ndims;
        for (int d = 0; d < info.ndims; d++)
            elements *= array.dims[d] = info.dims[d]; /* the plan has counted its bytes */
        array.data = malloc((size_t)elements * an_dtype_size(info.dtype));
        if (!array.data) return out_of_memory(call);
        for (int64_t k = 0; k < elements; k++) fill_element(&info, array.data, k, next_random(&state));
        status = an_program_set_input(b->program, info.name, &array);
        free(array.data);
        if (status != AN_OK) return cli_failure(call, b->report.ctx, status);
    }
    return CLI_DONE;
}

/* ---- the program ---- */

/* What a pass is counted in: the sizes that a user thinks in, as far as the model has them. */
static void choose_unit(bench *b) {
    const int64_t batch = cli_symbol(&b->report, "batch"), tokens = cli_symbol(&b->report, "tokens");
    b->unit = tokens ? "tokens" : batch ? "samples" : "passes";
    b->units = (double)(tokens ? tokens : 1) * (double)(batch ? batch : 1);
}

static an_status make_program(bench *b) {
    cli_report *r = &b->report;
    const bool trains = r->form == AN_FORM_TRAIN_FIRST;
    an_params_options store;
    an_params_options_init(&store, sizeof store);
    store.moments = 0;
    store.gradients = trains;
    an_status status = an_params_create(&b->params, r->ctx, r->graph, &store);
    if (status == AN_OK) status = an_params_reset(b->params, 1);
    if (status == AN_OK) status = an_program_create(&b->program, r->plan, b->params);
    for (int i = 0; i < r->symbol_count && status == AN_OK; i++)
        status = an_program_bind(b->program, r->symbols[i], r->maxima[i]);
    if (status == AN_OK && trains) status = an_program_set_scalar(b->program, "loss_gradient", 1 / b->units);
    return status;
}

/* Chooses the smallest weight. */
static int choose_changed(const cli_call *call, bench *b) {
    an_param_info info;
    an_param_info_init(&info, sizeof info);
    an_status status = AN_OK;
    b->changed_info.elements = INT64_MAX;
    for (int64_t i = 0; i < an_params_count(b->params) && status == AN_OK; i++) {
        status = an_params_info(b->params, i, &info);
        if (info.elements < b->changed_info.elements) b->changed_info = info;
    }
    const an_param_info *found = &b->changed_info;
    if (status == AN_OK && found->elements < INT64_MAX) {
        b->changed = (an_array){.dtype = found->dtype, .ndims = found->ndims};
        memcpy(b->changed.dims, found->dims, sizeof found->dims);
        b->changed.data = malloc((size_t)found->elements * an_dtype_size(found->dtype));
        if (!b->changed.data) return out_of_memory(call);
        status = an_params_get(b->params, found->name, AN_PART_WEIGHT, &b->changed);
    }
    return status == AN_OK ? CLI_DONE : cli_failure(call, b->report.ctx, status);
}

/* A training step follows an update: whatever is derived from the weights (copies in bf16, packed ones) is made anew in
 * it, and timed with it. Setting one weight is enough. */
static an_status pass(bench *b) {
    an_status status = AN_OK;
    if (b->changed.data) status = an_params_set(b->params, b->changed_info.name, AN_PART_WEIGHT, &b->changed);
    return status == AN_OK ? an_program_run(b->program, b->report.form) : status;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int run_passes(const cli_call *call, bench *b) {
    double best = 0;
    an_status status = pass(b); /* the first one meets cold pages and caches */
    an_program_profile(b->program, b->profiles);
    for (int64_t i = 0; i < b->passes && status == AN_OK; i++) {
        const double begin = an_clock_seconds();
        status = pass(b);
        b->seconds[i] = an_clock_seconds() - begin;
        if (status != AN_OK || (i > 0 && b->seconds[i] >= best)) continue;
        best = b->seconds[i];
        if (!b->profiles) continue;
        status = cli_profile_take(&b->profile, b->program, b->report.form, best);
        if (status == AN_ERR_MEMORY) return out_of_memory(call);
    }
    qsort(b->seconds, (size_t)b->passes, sizeof *b->seconds, by_value);
    return status == AN_OK ? CLI_DONE : cli_failure(call, b->report.ctx, status);
}

static int measure(const cli_call *call, bench *b) {
    const cli_report *r = &b->report;
    choose_unit(b);
    b->seconds = calloc((size_t)b->passes, sizeof *b->seconds);
    if (!b->seconds) return out_of_memory(call);
    /* before the program, while the memory for its arrays is free and no other thread is awake */
    if (b->profiles && cli_machine_measure(&b->profile.machine, r->threads, an_context_isa(r->ctx)) != AN_OK)
        return out_of_memory(call);
    const an_status status = make_program(b);
    int code = status == AN_OK ? fill_inputs(call, b) : cli_failure(call, r->ctx, status);
    if (code == CLI_DONE && r->form == AN_FORM_TRAIN_FIRST) code = choose_changed(call, b);
    if (code == CLI_DONE) code = run_passes(call, b);
    return code;
}

/* ---- results ---- */

static void print_speed(const bench *b, const char *name, double seconds) {
    enum { NAME = 10, TIME = 12, SPEED = 16, RATE = 20 }; /* columns */
    enum { WHOLE = 100 };                                 /* a fraction says nothing from here on */
    const double speed = b->units / seconds;
    cli_text digits;
    if (speed >= WHOLE)
        digits = cli_count((int64_t)speed);
    else
        snprintf(digits.text, sizeof digits.text, "%.2f", speed);
    printf("  %-*s%*.3f ms%*s %s/s%*s\n", NAME, name, TIME, seconds * 1e3, SPEED, digits.text, b->unit, RATE,
           cli_amount(b->report.cost.flops / seconds, "FLOP/s").text);
}

static void write_text(const bench *b) {
    const cli_report *r = &b->report;
    char sizes[256];
    cli_describe_sizes(r, sizes, sizeof sizes);
    printf("%s, %s%s%s; %d thread%s, %s; passes: %lld\n\n", r->model, r->program, *sizes ? ": " : "", sizes, r->threads,
           r->threads == 1 ? "" : "s", an_isa_name(an_context_isa(r->ctx)), (long long)b->passes);
    print_speed(b, "best", b->seconds[0]);
    print_speed(b, "median", b->seconds[b->passes / 2]);
    if (!b->profiles) return;
    printf("\n");
    cli_profile_print(&b->profile);
}

static void write_json(const bench *b) {
    const cli_report *r = &b->report;
    const double best = b->seconds[0], median = b->seconds[b->passes / 2];
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "model", r->model);
    an_json_write_string(&j, "program", r->program);
    if (cli_precision_name(r)) an_json_write_string(&j, "precision", cli_precision_name(r));
    an_json_write_object(&j, "symbols");
    for (int i = 0; i < r->symbol_count; i++) an_json_write_integer(&j, r->symbols[i], r->maxima[i]);
    an_json_write_end(&j);
    an_json_write_integer(&j, "threads", r->threads);
    an_json_write_string(&j, "isa", an_isa_name(an_context_isa(r->ctx)));
    an_json_write_integer(&j, "passes", b->passes);
    an_json_write_string(&j, "unit", b->unit);
    an_json_write_whole(&j, "units", b->units);
    an_json_write_rounded(&j, "best_seconds", best);
    an_json_write_rounded(&j, "median_seconds", median);
    an_json_write_rounded(&j, "best_units_per_second", b->units / best);
    an_json_write_rounded(&j, "median_units_per_second", b->units / median);
    an_json_write_whole(&j, "flops", r->cost.flops);
    an_json_write_whole(&j, "traffic_bytes", r->cost.bytes);
    if (b->profiles) cli_profile_write_json(&b->profile, &j);
    an_json_write_finish(&j);
}

static int write_trace(const cli_call *call, bench *b) {
    cli_profile_write_trace(&b->profile, b->trace);
    const bool failed = ferror(b->trace) != 0;
    const bool closed = fclose(b->trace) == 0;
    b->trace = NULL;
    return closed && !failed ? CLI_DONE : cli_fail(call, "'%s' could not be written", call->values[PROFILE]);
}

static int run(const cli_call *call) {
    bench b = {.report = CLI_REPORT, .passes = 10};
    b.report.without_moments = true;
    if (cli_number(call, PASSES, 1, &b.passes) != CLI_DONE) return CLI_MISUSED;
    int code = cli_report_begin(call, &b.report);
    const char *path = call->values[PROFILE];
    b.profiles = path != NULL;
    if (code == CLI_DONE && path && !(b.trace = fopen(path, "w"))) /* before the work, which may take minutes */
        code = cli_misuse(call, "'%s' cannot be written: %s", path, strerror(errno));
    if (code == CLI_DONE) code = measure(call, &b);
    if (code == CLI_DONE && b.profiles) code = write_trace(call, &b);
    if (code == CLI_DONE) {
        if (call->values[JSON])
            write_json(&b);
        else
            write_text(&b);
        code = cli_finish(call);
    }
    if (b.trace) fclose(b.trace);
    cli_profile_free(&b.profile);
    free(b.seconds);
    free(b.changed.data);
    an_program_destroy(&b.program);
    an_params_destroy(&b.params);
    cli_report_end(&b.report);
    return code;
}

const cli_command cli_bench = {
    .name = "bench",
    .argument = "CONFIG|PRESET|FILE.ang",
    .summary = "measure how fast a model runs here, and where the time goes",
    .text = "Runs forward and backward passes of a model on random inputs and shows their best and median time. No "
            "weights are updated and nothing is saved.",
    .options = options,
    .run = run,
};
