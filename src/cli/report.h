/* What `anneal plan` knows when it begins to write, and the forms it can write it in. */
#ifndef AN_CLI_REPORT_H
#define AN_CLI_REPORT_H

#include "anneal/plan.h"
#include "cli/cli.h"

enum { CLI_MOST_SYMBOLS = 16 };

typedef struct cli_report {
    const char *model;   /* as it was asked for */
    const char *program; /* "training", "evaluation", "prediction" */
    an_dtype dtype;      /* of a preset; NONE: the file says */
    int threads;
    an_form form;
    int symbol_count;
    const char *symbols[CLI_MOST_SYMBOLS];
    int64_t maxima[CLI_MOST_SYMBOLS];
    int64_t parameters;
    an_plan *plan;
    an_plan_memory memory;
    an_plan_cost cost;
} cli_report;

/* One kind of memory, for tables and pictures. */
typedef struct cli_kind {
    const char *name;
    int64_t bytes;
} cli_kind;
enum { CLI_KINDS = 7 };
void cli_kinds(const cli_report *report, cli_kind kinds[CLI_KINDS]); /* their sum is the peak */

/* "batch 4, tokens 256, f32" */
void cli_describe_sizes(const cli_report *report, char *text, size_t capacity);

void cli_write_text(const cli_report *report);
void cli_write_json(const cli_report *report);
an_status cli_write_policy(const cli_report *report);
an_status cli_write_svg(const cli_report *report);

#endif
