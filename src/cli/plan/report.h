/* A planned model, as requested from `anneal plan` and `anneal bench`, and the formats a plan can be written in. */
#ifndef AN_CLI_PLAN_REPORT_H
#define AN_CLI_PLAN_REPORT_H

#include <stdio.h>

#include "anneal/models.h"
#include "anneal/plan.h"
#include "base/text/json_write.h"
#include "cli/main/cli.h"
#include "cli/train/open.h"

enum { CLI_MOST_SYMBOLS = 16 };

/* What --set can change of a model and its plan. */
typedef struct cli_settings {
    an_gpt2_options model;         /* of a preset */
    const char *precision, *batch; /* as --precision and --batch would have them; NULL: not given */
    an_recompute recompute;
    int64_t segments, budget;
} cli_settings;

/* Takes every --set of the call; `model` has the sizes of the preset (is_preset), or nothing. */
int cli_set(const cli_call *call, bool is_preset, cli_settings *settings);

typedef struct cli_report {
    const char *model;   /* as it was asked for */
    const char *program; /* "training", "evaluation", "prediction" */
    an_dtype dtype;      /* of a preset; NONE: the file says */
    an_dtype precision;  /* lower, of the plan; NONE: none */
    int threads;
    bool without_moments; /* nothing is updated */
    cli_settings settings;
    an_form form;
    int symbol_count;
    const char *symbols[CLI_MOST_SYMBOLS];
    int64_t maxima[CLI_MOST_SYMBOLS];
    int64_t parameters;
    an_context *ctx;
    an_graph *graph;
    an_plan *plan;
    an_plan_memory memory;
    an_plan_cost cost;
    an_plan_traffic exchange; /* with other ranks */
    int64_t rank, ranks;      /* asked for; ranks 0: one process */
    int64_t hosts;            /* that they are on */
    cli_training training;    /* of a config, which the parts above belong to; else empty */
} cli_report;
#define CLI_REPORT                                                                                           \
    {                                                                                                        \
        .memory = {.size = sizeof(an_plan_memory)}, .exchange = {.size = sizeof(an_plan_traffic)}, .cost = { \
            .size = sizeof(an_plan_cost)                                                                     \
        }                                                                                                    \
    }

/* ---- planning ---- */

/* The options that say what is planned stand first in the table of a command that plans. */
enum {
    CLI_BATCH,
    CLI_SEQ,
    CLI_SYMBOL,
    CLI_PRECISION,
    CLI_PROGRAM,
    CLI_KERNEL,
    CLI_THREADS,
    CLI_ISA,
    CLI_SET,
    CLI_PLAN_OPTIONS /* how many they are */
};
/* clang-format off */
#define CLI_PLAN_TABLE \
    [CLI_BATCH] = {.name = "batch", .argument = "N", .help = "most samples in a micro-batch (default 1)"}, \
    [CLI_SEQ] = {.name = "seq", .argument = "N", .help = "most tokens in a sample (default for presets: 1024)"}, \
    [CLI_SYMBOL] = {.name = "symbol", .argument = "NAME=N,...", .help = "largest values of other symbols in a graph"}, \
    [CLI_PRECISION] = {.name = "precision", .argument = "f32|f64|bf16|f16", \
        .help = "precision of the arithmetic; f32 (default) and f64 also apply to a preset's parameters"}, \
    [CLI_PROGRAM] = {.name = "program", .argument = "training|evaluation|prediction", \
        .help = "form of the model (default: training with evaluation, or prediction if there is no loss)"}, \
    [CLI_KERNEL] = {.name = "kernel", .argument = "OP=NAME,...", \
        .help = "use these kernels, as in attention=portable"}, \
    [CLI_THREADS] = {.name = "threads", .argument = "N", .help = "number of threads (default: all cores)"}, \
    [CLI_ISA] = {.name = "isa", .argument = "base|avx2|avx512|amx", \
        .help = "instruction set of the kernels (default: the best that the machine has)"}, \
    [CLI_SET] = {.name = "set", .argument = "KEY=VALUE", .repeats = true, \
        .help = "set a key: train.recompute, train.precision, batch.micro or a size of the model, as in " \
                "model.layers=6 or train.recompute=block; can be repeated"}
/* clang-format on */

/* Loads the model, chooses its sizes and plans it. The report begins as CLI_REPORT and is ended whatever this returns:
 * an exit code, after a message if it is not CLI_DONE. */
int cli_report_begin(const cli_call *call, cli_report *report);
void cli_report_end(cli_report *report);

/* The same for a config, but for memory and cost; the options are short for keys of it. */
int cli_report_config(const cli_call *call, cli_report *report);
/* … and for one that is open already: what the report has belongs to it. */
void cli_report_of(cli_training *training, cli_report *report);
bool cli_is_config(const char *argument); /* it ends in .yaml or .yml */
/* plan.json of a run. */
int cli_write_plan_file(cli_training *training);

/* The size of a symbol; 0: the model has none of that name. */
int64_t cli_symbol(const cli_report *report, const char *name);

/* ---- writing ---- */

/* One kind of memory, for tables and pictures. */
typedef struct cli_kind {
    const char *name;
    int64_t bytes;
} cli_kind;
enum { CLI_KINDS = 11 };
void cli_kinds(const an_plan_memory *memory, cli_kind kinds[CLI_KINDS]); /* their sum is the peak */

/* What ranks can divide among themselves, side by side. */
typedef struct cli_strategy {
    an_strategy strategy;
    an_plan_memory memory; /* of the rank that needs most */
} cli_strategy;
enum { CLI_MOST_STRATEGIES = 8 };
/* Those that the trainer of a report has looked at; how many there are. */
int cli_strategies(const cli_report *report, cli_strategy strategies[CLI_MOST_STRATEGIES]);

/* The root of the arena that holds the largest gradients of a unit until they leave the rank; bytes 0: there is
 * none. */
an_plan_life cli_gradient_root(const cli_report *report);

/* The type that it computes in, as far as the command line says; NULL: the file says. */
const char *cli_precision_name(const cli_report *report);
/* "batch 4, tokens 256, f32" */
void cli_describe_sizes(const cli_report *report, char *text, size_t capacity);

void cli_write_text(const cli_report *report);
void cli_write_json(const cli_report *report, FILE *file);
an_status cli_write_policy(const cli_report *report);
an_status cli_write_svg(const cli_report *report);

/* Parts of these: the table of strategies. */
void cli_write_strategies(const cli_report *report);
void cli_write_strategies_json(const cli_report *report, an_json_writer *json);
/* … drawn below `top`; how high it is: 0 if there is nothing to compare. */
int cli_strategies_height(const cli_report *report);
void cli_draw_strategies(const cli_report *report, int top);
/* The color of each kind of memory. */
extern const char *const cli_kind_fills[CLI_KINDS];

#endif
