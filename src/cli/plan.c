/* anneal plan: what a step will cost, before anything is allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

enum { BATCH, SEQ, SYMBOL, PRECISION, PROGRAM, KERNEL, THREADS, JSON, SVG, POLICY, DUMP };
enum { WHAT = 1 };
static const cli_option options[] = {
    [BATCH] = {.name = "batch", .argument = "N", .help = "samples in a micro-batch, at most (default 1)"},
    [SEQ] = {.name = "seq", .argument = "N", .help = "tokens in a sample, at most (default, for presets, 1024)"},
    [SYMBOL] = {.name = "symbol", .argument = "NAME=N,...", .help = "largest values of other symbols of a graph"},
    [PRECISION] = {.name = "precision", .argument = "f32|f64", .help = "of a preset's parameters (default f32)"},
    [PROGRAM] = {.name = "program",
                 .argument = "training|evaluation|prediction",
                 .help = "what is planned (default: training, with evaluation; prediction if there is no loss)"},
    [KERNEL] = {.name = "kernel", .argument = "OP=NAME,...", .help = "take these kernels, as in attention=reference"},
    [THREADS] = {.name = "threads",
                 .argument = "N",
                 .help = "threads, for which kernels need scratch (default: all cores)"},
    [JSON] = {.name = "json", .group = WHAT, .help = "for programs: bytes are integers, peak_bytes is the sum"},
    [SVG] = {.name = "svg", .group = WHAT, .help = "a picture: what lies where in memory during the step"},
    [POLICY] = {.name = "policy",
                .group = WHAT,
                .help = "the ops: how mixed precision treats them, how often they run"},
    [DUMP] = {.name = "dump",
              .argument = "PASS",
              .group = WHAT,
              .help = "the graph after a pass (verify, program, autodiff, …, memory), as text"},
    {0},
};

/* ---- sizes ---- */

enum { PRESETS_TOKENS = 1024 }; /* the context of every preset */

/* Finds `name` in "height=32,width=32"; *number stays 0 if it is not there. */
static int find_symbol(const cli_call *call, const char *list, const char *name, int64_t *number) {
    const size_t length = strlen(name);
    for (const char *item = list; item && *item; item += strcspn(item, ","), item += *item == ',') {
        if (strncmp(item, name, length) != 0 || item[length] != '=') continue;
        char *end;
        *number = strtoll(item + length + 1, &end, 10);
        if (end == item + length + 1 || (*end && *end != ',') || *number < 1)
            return cli_misuse(call, "--symbol: '%s' takes a whole number from 1 on, not '%.*s'", name,
                              (int)strcspn(item + length + 1, ","), item + length + 1);
    }
    return CLI_DONE;
}

/* Every name of --symbol must be a symbol of the graph. */
static int check_symbol_names(const cli_call *call, const cli_report *report) {
    for (const char *item = call->values[SYMBOL]; item && *item; item += strcspn(item, ","), item += *item == ',') {
        const size_t length = strcspn(item, "=,");
        char name[64];
        const char *names[CLI_MOST_SYMBOLS + 1] = {NULL};
        bool known = false;
        snprintf(name, sizeof name, "%.*s", (int)length, item);
        if (item[length] != '=') return cli_misuse(call, "--symbol takes NAME=N, not '%s'", name);
        for (int i = 0; i < report->symbol_count; i++) {
            names[i] = report->symbols[i];
            known = known || !strcmp(names[i], name);
        }
        if (known) continue;
        const char *nearest = cli_nearest(name, names);
        return cli_misuse(call, "--symbol: '%s' has no symbol '%s'%s%s%s", report->model, name,
                          nearest ? "; the nearest is '" : "", nearest ? nearest : "", nearest ? "'" : "");
    }
    return CLI_DONE;
}

/* --batch and --seq name symbols of their own. */
static int check_option_names(const cli_call *call, const cli_report *report, int option, const char *symbol) {
    if (!call->values[option]) return CLI_DONE;
    for (int i = 0; i < report->symbol_count; i++)
        if (!strcmp(report->symbols[i], symbol)) return CLI_DONE;
    return cli_misuse(call, "--%s: '%s' has no symbol '%s'", options[option].name, report->model, symbol);
}

/* The largest value of each symbol of the graph. */
static int choose_sizes(const cli_call *call, const an_graph *graph, cli_report *report) {
    int64_t batch = 1, tokens = cli_is_file(call->argument) ? 0 : PRESETS_TOKENS;
    if (cli_number(call, BATCH, 1, &batch) != CLI_DONE || cli_number(call, SEQ, 1, &tokens) != CLI_DONE)
        return CLI_MISUSED;
    for (const char *name; (name = an_graph_symbol_name(graph, report->symbol_count)); report->symbol_count++) {
        if (report->symbol_count == CLI_MOST_SYMBOLS)
            return cli_misuse(call, "'%s' has more than %d symbols", report->model, CLI_MOST_SYMBOLS);
        int64_t maximum = 0;
        if (find_symbol(call, call->values[SYMBOL], name, &maximum) != CLI_DONE) return CLI_MISUSED;
        if (maximum == 0 && !strcmp(name, "batch")) maximum = batch;
        if (maximum == 0 && !strcmp(name, "tokens")) maximum = tokens;
        if (maximum == 0)
            return cli_misuse(call, "'%s' has a symbol '%s': give its largest value with %s%s=N", report->model, name,
                              strcmp(name, "tokens") ? "--symbol " : "--", strcmp(name, "tokens") ? name : "seq");
        report->symbols[report->symbol_count] = name;
        report->maxima[report->symbol_count] = maximum;
    }
    if (check_symbol_names(call, report) != CLI_DONE || check_option_names(call, report, BATCH, "batch") != CLI_DONE ||
        check_option_names(call, report, SEQ, "tokens") != CLI_DONE)
        return CLI_MISUSED;
    return CLI_DONE;
}

/* ---- the plan ---- */

static const struct {
    unsigned mask;
    an_form form;
} programs[] = {{AN_PROGRAM_TRAINING, AN_FORM_TRAIN_FIRST},
                {AN_PROGRAM_EVALUATION, AN_FORM_EVALUATE},
                {AN_PROGRAM_PREDICTION, AN_FORM_PREDICT}};
static const char *const program_names[] = {"training", "evaluation", "prediction", NULL};

/* Makes the plan and asks it; `program` is -1 if none was named. */
static int make_plan(const cli_call *call, an_context *ctx, const an_graph *graph, int program, cli_report *report) {
    an_plan_options plan_options = AN_INIT(plan_options);
    plan_options.programs = program >= 0 ? programs[program].mask : 0;
    plan_options.symbol_count = report->symbol_count;
    plan_options.symbols = report->symbols;
    plan_options.maxima = report->maxima;
    plan_options.kernels = call->values[KERNEL];
    an_status status = an_plan_create(&report->plan, ctx, graph, &plan_options);
    if (status == AN_OK) status = an_plan_memory_get(report->plan, &report->memory);
    if (status != AN_OK) return cli_failure(call, ctx, status);
    /* Where no program was named, the first that the plan has is its main one. */
    for (int i = program >= 0 ? program : 0; program_names[i]; i++) {
        status = an_plan_cost_get(report->plan, programs[i].form, &report->cost);
        if (status != AN_OK) continue;
        report->form = programs[i].form;
        report->program = program_names[i];
        return CLI_DONE;
    }
    return cli_failure(call, ctx, status);
}

static int write_report(const cli_call *call, an_context *ctx, const cli_report *report) {
    an_status status = AN_OK;
    char *text = NULL;
    if (call->values[JSON])
        cli_write_json(report);
    else if (call->values[SVG])
        status = cli_write_svg(report);
    else if (call->values[POLICY])
        status = cli_write_policy(report);
    else if (call->values[DUMP])
        status = an_plan_dump(report->plan, report->form, call->values[DUMP], &text);
    else
        cli_write_text(report);
    if (status != AN_OK) return cli_failure(call, ctx, status);
    if (text) fputs(text, stdout);
    an_string_release(ctx, &text);
    return cli_finish(call);
}

static int run(const cli_call *call) {
    cli_report report = {.model = call->argument, .memory = AN_INIT(report.memory), .cost = AN_INIT(report.cost)};
    an_context_options context_options = AN_INIT(context_options);
    an_context *ctx = NULL;
    an_graph *graph = NULL;
    int program = -1;
    int64_t threads = 0;
    if (cli_number(call, THREADS, 1, &threads) != CLI_DONE ||
        cli_choice(call, PROGRAM, program_names, &program) != CLI_DONE ||
        cli_precision(call, PRECISION, &report.dtype) != CLI_DONE)
        return CLI_MISUSED;
    if (cli_is_file(call->argument)) report.dtype = AN_DTYPE_NONE;
    context_options.threads = threads > INT32_MAX ? INT32_MAX : (int)threads; /* the library says what is too many */
    an_status status = an_context_create(&ctx, &context_options);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    report.threads = an_context_threads(ctx);

    int code = cli_load_model(call, ctx, report.dtype, &graph);
    if (code == CLI_DONE) code = choose_sizes(call, graph, &report);
    if (code == CLI_DONE) {
        report.parameters = an_graph_parameter_elements(graph);
        code = make_plan(call, ctx, graph, program, &report);
    }
    if (code == CLI_DONE) code = write_report(call, ctx, &report);
    an_plan_destroy(&report.plan);
    an_graph_destroy(&graph);
    an_context_destroy(&ctx);
    return code;
}

const cli_command cli_plan = {
    .name = "plan",
    .argument = "PRESET|FILE.ang",
    .summary = "show what a training step will cost, before it starts",
    .text =
        "Shows the memory of a model's step by kind, to the byte, its peak, and the arithmetic. No weight is allocated "
        "for that.",
    .options = options,
    .run = run,
};
