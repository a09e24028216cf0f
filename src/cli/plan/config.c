/* The plan of a config, exactly as its run would make it. */
#include <stdio.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/plan/report.h"

bool cli_is_config(const char *argument) {
    const char *dot = strrchr(argument, '.');
    return (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml"))) || cli_is_pipe(argument);
}

void cli_report_of(cli_training *training, cli_report *report) {
    const an_trainer_info *info = &training->info;
    report->model = training->call->argument;
    report->program = "training";
    report->form = AN_FORM_TRAIN_FIRST;
    report->dtype = info->dtype;
    report->precision = info->precision;
    report->threads = an_context_threads(training->ctx);
    report->ctx = training->ctx;
    report->graph = an_trainer_graph(training->trainer);
    report->plan = an_trainer_plan(training->trainer);
    report->parameters = info->parameters;
    for (const char *name;
         report->symbol_count < CLI_MOST_SYMBOLS && (name = an_graph_symbol_name(report->graph, report->symbol_count));
         report->symbol_count++) {
        report->symbols[report->symbol_count] = name;
        report->maxima[report->symbol_count] = strcmp(name, "tokens") ? info->micro : info->tokens;
    }
}

int cli_report_config(const cli_call *call, cli_report *report) {
    static const struct {
        int option;
        const char *key; /* that the option is short for; NULL: a config says it itself */
    } keys[] = {{CLI_BATCH, AN_SETTING(batch.micro)},
                {CLI_SEQ, AN_SETTING(model.context)},
                {CLI_PRECISION, AN_SETTING(train.precision)},
                {CLI_THREADS, AN_SETTING(ranks.threads)},
                {CLI_ISA, AN_SETTING(run.isa)},
                {CLI_SYMBOL, NULL}};
    enum { KEYS = sizeof keys / sizeof *keys };
    cli_call with_settings = *call;
    char settings[KEYS][128];
    for (int i = 0; i < KEYS; i++) {
        const char *value = call->values[keys[i].option];
        if (!value) continue;
        if (!keys[i].key)
            return cli_misuse(call, "--%s works with presets and graphs, not with configs",
                              call->command->options[keys[i].option].name);
        if (with_settings.set_count == CLI_MOST_SETS) return cli_misuse(call, "--set was given too many times");
        snprintf(settings[i], sizeof settings[i], "%s=%s", keys[i].key, value);
        with_settings.sets[with_settings.set_count++] = settings[i];
    }
    const cli_opening opening = {.file = call->argument,
                                 .planned = true,
                                 .kernels = call->values[CLI_KERNEL],
                                 .rank = (int)report->rank,
                                 .ranks = (int)report->ranks,
                                 .hosts = (int)report->hosts};
    const int code = cli_training_open(&with_settings, &opening, &report->training);
    report->training.call = call;
    if (code != CLI_DONE) return code;
    cli_report_of(&report->training, report);
    return CLI_DONE;
}

int cli_write_plan_file(cli_training *training) {
    char path[4200];
    cli_report report = CLI_REPORT;
    cli_report_of(training, &report);
    an_status status = an_plan_memory_get(report.plan, &report.memory);
    if (status == AN_OK) status = an_plan_cost_get(report.plan, report.form, &report.cost);
    if (status == AN_OK) status = an_plan_traffic_get(report.plan, &report.exchange);
    if (status != AN_OK) return cli_failure(training->call, training->ctx, status);
    snprintf(path, sizeof path, "%s/plan.json", an_folder_path(training->folder));
    FILE *file = cli_file_open(training->call, path, "w");
    if (!file) return CLI_FAILED;
    cli_write_json(&report, file);
    return cli_file_close(training->call, path, file);
}
