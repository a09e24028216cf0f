/* Makes a plan from arguments, for every command that needs one: the model, its sizes, and the form. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/report.h"

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
            return cli_misuse(call, "--symbol: '%s' takes a whole number of at least 1, not '%.*s'", name,
                              (int)strcspn(item + length + 1, ","), item + length + 1);
    }
    return CLI_DONE;
}

/* Every name of --symbol must be a symbol of the graph. */
static int check_symbol_names(const cli_call *call, const cli_report *report) {
    for (const char *item = call->values[CLI_SYMBOL]; item && *item; item += strcspn(item, ","), item += *item == ',') {
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
        return cli_misuse(call, "--symbol: '%s' has no symbol '%s'%s", report->model, name,
                          cli_did_you_mean("", name, names).text);
    }
    return CLI_DONE;
}

/* --batch and --seq name symbols of their own. */
static int check_option_names(const cli_call *call, const cli_report *report, int option, const char *symbol) {
    if (!call->values[option] || cli_symbol(report, symbol) > 0) return CLI_DONE;
    return cli_misuse(call, "--%s: '%s' has no symbol '%s'", call->command->options[option].name, report->model,
                      symbol);
}

/* The largest value of each symbol of the graph. */
static int choose_sizes(const cli_call *call, cli_report *report) {
    int64_t batch = 1, tokens = cli_is_file(call->argument) ? 0 : PRESETS_TOKENS;
    if (cli_number(call, CLI_BATCH, 1, &batch) != CLI_DONE || cli_number(call, CLI_SEQ, 1, &tokens) != CLI_DONE)
        return CLI_MISUSED;
    for (const char *name; (name = an_graph_symbol_name(report->graph, report->symbol_count)); report->symbol_count++) {
        if (report->symbol_count == CLI_MOST_SYMBOLS)
            return cli_misuse(call, "'%s' has more than %d symbols", report->model, CLI_MOST_SYMBOLS);
        int64_t maximum = 0;
        if (find_symbol(call, call->values[CLI_SYMBOL], name, &maximum) != CLI_DONE) return CLI_MISUSED;
        if (maximum == 0 && !strcmp(name, "batch")) maximum = batch;
        if (maximum == 0 && !strcmp(name, "tokens")) maximum = tokens;
        if (maximum == 0)
            return cli_misuse(call, "'%s' has a symbol '%s': set its largest value with %s%s=N", report->model, name,
                              strcmp(name, "tokens") ? "--symbol " : "--", strcmp(name, "tokens") ? name : "seq");
        report->symbols[report->symbol_count] = name;
        report->maxima[report->symbol_count] = maximum;
    }
    if (check_symbol_names(call, report) != CLI_DONE ||
        check_option_names(call, report, CLI_BATCH, "batch") != CLI_DONE ||
        check_option_names(call, report, CLI_SEQ, "tokens") != CLI_DONE)
        return CLI_MISUSED;
    return CLI_DONE;
}

int64_t cli_symbol(const cli_report *report, const char *name) {
    for (int i = 0; i < report->symbol_count; i++)
        if (!strcmp(report->symbols[i], name)) return report->maxima[i];
    return 0;
}

/* ---- the plan ---- */

static const struct {
    unsigned mask;
    an_form form;
} programs[] = {{AN_PROGRAM_TRAINING, AN_FORM_TRAIN_FIRST},
                {AN_PROGRAM_EVALUATION, AN_FORM_EVALUATE},
                {AN_PROGRAM_PREDICTION, AN_FORM_PREDICT}};
static const char *const program_names[] = {"training", "evaluation", "prediction", NULL};

/* `program` is -1 if none was named. */
static int make_plan(const cli_call *call, int program, cli_report *report) {
    an_plan_options options;
    an_plan_options_init(&options, sizeof options);
    options.programs = program >= 0 ? programs[program].mask : 0;
    options.symbol_count = report->symbol_count;
    options.symbols = report->symbols;
    options.maxima = report->maxima;
    if (report->without_moments) options.moments = 0;
    options.precision = report->precision;
    options.recompute = report->settings.recompute;
    options.segments = (int)report->settings.segments;
    options.budget = report->settings.budget;
    options.kernels = call->values[CLI_KERNEL];
    const an_status status = an_plan_create(&report->plan, report->ctx, report->graph, &options);
    return status == AN_OK ? CLI_DONE : cli_failure(call, report->ctx, status);
}

/* Asks the plan what it costs. */
static int ask_plan(const cli_call *call, int program, cli_report *report) {
    an_status status = an_plan_memory_get(report->plan, &report->memory);
    if (status == AN_OK) status = an_plan_traffic_get(report->plan, &report->exchange);
    if (status != AN_OK) return cli_failure(call, report->ctx, status);
    /* Where no program was named, the first that the plan has is its main one. */
    for (int i = program >= 0 ? program : 0; program_names[i]; i++) {
        status = an_plan_cost_get(report->plan, programs[i].form, &report->cost);
        if (status != AN_OK) continue;
        report->form = programs[i].form;
        report->program = program_names[i];
        return CLI_DONE;
    }
    return cli_failure(call, report->ctx, status);
}

/* --isa: a level of instructions. */
int cli_isa(const cli_call *call, int option, an_isa *isa) {
    const char *names[AN_ISA_AMX + 2] = {NULL};
    int choice = AN_ISA_AUTO;
    for (int i = 0; i <= AN_ISA_AMX; i++) names[i] = an_isa_name((an_isa)i);
    if (cli_choice(call, option, names, &choice) != CLI_DONE) return CLI_MISUSED;
    *isa = (an_isa)choice;
    return CLI_DONE;
}

/* The context, and what --set says: it needs the preset's sizes. Options that were given stand above it. */
static int open_context(const cli_call *call, cli_call *with_settings, cli_report *report) {
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    const bool is_preset = !cli_is_file(call->argument);
    int64_t threads = 0;
    if (cli_number(call, CLI_THREADS, 1, &threads) != CLI_DONE || cli_isa(call, CLI_ISA, &options.isa) != CLI_DONE)
        return CLI_MISUSED;
    options.threads = threads > INT32_MAX ? INT32_MAX : (int)threads; /* the library says what is too many */
    an_status status = an_context_create(&report->ctx, &options);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    report->threads = an_context_threads(report->ctx);
    an_gpt2_options_init(&report->settings.model, sizeof report->settings.model);
    int code = is_preset ? cli_preset(call, report->ctx, &report->settings.model) : CLI_DONE;
    if (code == CLI_DONE) code = cli_set(call, is_preset, &report->settings);
    *with_settings = *call;
    if (!call->values[CLI_PRECISION]) with_settings->values[CLI_PRECISION] = report->settings.precision;
    if (!call->values[CLI_BATCH]) with_settings->values[CLI_BATCH] = report->settings.batch;
    return code;
}

int cli_report_begin(const cli_call *call, cli_report *report) {
    cli_call with_settings = *call;
    int program = -1;
    report->model = call->argument;
    if (cli_is_config(call->argument)) {
        if (cli_choice(call, CLI_PROGRAM, program_names, &program) != CLI_DONE) return CLI_MISUSED;
        const int opened = cli_report_config(call, report);
        return opened == CLI_DONE ? ask_plan(call, program, report) : opened;
    }
    if (report->ranks > 0)
        return cli_misuse(call, "--ranks needs a config, which says how a step is divided into leaves");
    int code = open_context(call, &with_settings, report);
    if (code != CLI_DONE) return code;
    call = &with_settings;
    if (cli_choice(call, CLI_PROGRAM, program_names, &program) != CLI_DONE ||
        cli_precision(call, CLI_PRECISION, &report->dtype, &report->precision) != CLI_DONE)
        return CLI_MISUSED;
    report->settings.model.dtype = report->dtype;
    code =
        cli_load_model(call, report->ctx, cli_is_file(call->argument) ? NULL : &report->settings.model, &report->graph);
    if (code == CLI_DONE) code = choose_sizes(call, report);
    if (code != CLI_DONE) return code;
    report->parameters = an_graph_parameter_elements(report->graph);
    code = make_plan(call, program, report);
    return code == CLI_DONE ? ask_plan(call, program, report) : code;
}

void cli_report_end(cli_report *report) {
    if (report->training.ctx) {
        cli_training_close(&report->training);
        return;
    }
    an_plan_destroy(&report->plan);
    an_graph_destroy(&report->graph);
    an_context_destroy(&report->ctx);
}
