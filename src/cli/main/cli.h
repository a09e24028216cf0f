/* What the commands share: tables, messages, models, units.
 *
 * The command links the shared library and uses only its public headers, like any other program. (Files of base that
 * need no context are compiled into it; CMakeLists.txt lists them.) Results go to standard output, everything else to
 * standard error.
 */
#ifndef AN_CLI_MAIN_CLI_H
#define AN_CLI_MAIN_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "anneal/config.h"
#include "anneal/models.h"

/* Exit codes: docs say them, scripts rely on them. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSED = 2, CLI_AGAIN = 75 };

/* ---- tables ---- The parser and --help work from these; man pages and completion will, so that they cannot drift. */

typedef struct cli_option {
    const char *name;     /* without its dashes; NULL ends a table */
    char letter;          /* that may stand for it after one dash; 0: none */
    const char *argument; /* what stands for it in the help; NULL: takes none */
    int group;            /* options of one group exclude each other; 0: of none */
    bool repeats;         /* may be given several times: its values are those of cli_call.sets */
    bool lists;           /* the same, and each value may be several with commas between them: cli_call.listed */
    const char *help;
} cli_option;

enum { CLI_MOST_OPTIONS = 24, CLI_MOST_SETS = 64 };

typedef struct cli_call cli_call;

typedef struct cli_command {
    const char *name;
    const char *argument; /* as in the help, a blank between two, "[…]" around one that may be left out, "..." after one
                           * that may be given several times; NULL: takes none */
    const char *summary; /* one line */
    const char *text;    /* a paragraph, or more */
    const cli_option *options;
    int (*run)(const cli_call *call);
} cli_command;

/* A command as it was called. */
struct cli_call {
    const cli_command *command;
    const char *argument;   /* the first; NULL: not given */
    char *const *arguments; /* all of them */
    int argument_count;
    const char
        *values[CLI_MOST_OPTIONS];   /* by place in the table; NULL: not given, "" for an option without argument */
    const char *sets[CLI_MOST_SETS]; /* of the option that repeats, as they came */
    int set_count;
    const char *listed[CLI_MOST_SETS]; /* of the option that lists, as they came */
    int listed_count;
    bool verbose; /* --verbose: errors show where in the library they came from */
};

/* Every command, NULL at the end; main sets it. */
extern const cli_command *const *cli_commands;

/* A key of configs by its number; false after the last. */
bool cli_key_at(int index, an_config_key *key);
extern const cli_command cli_train, cli_stop, cli_init, cli_find_lr, cli_demo, cli_plan, cli_summary, cli_bench,
    cli_graph, cli_version, cli_help;
extern const cli_command cli_eval, cli_predict, cli_verify, cli_inspect, cli_export, cli_diff;
extern const cli_command cli_tokenize, cli_generate;
extern const cli_command cli_compare, cli_plot, cli_doctor, cli_completion, cli_manual;
extern const cli_command cli_config_show, cli_config_schema, cli_config_keys;

/* Runs a command on what follows its name. */
int cli_run(const cli_command *command, int argc, char **argv);
void cli_print_help(const cli_command *command); /* NULL: of the whole program */
/* A paragraph on standard output, broken at spaces; the first line goes on at `column`. */
void cli_print_wrapped(const char *text, int column, int indent);

/* ---- messages ---- */

/* This process is a rank whose messages are those of rank 0: the functions below print nothing. False until
 * it has joined the others. */
extern bool cli_silent;
/* A line to standard error. */
void cli_tell(const char *format, ...) AN_PRINTF(1, 2);
/* The log of contexts: tells what the library warns of. */
void cli_log(void *user, an_log_level level, const char *text);

/* "anneal plan: …" and where help is; returns CLI_MISUSED. */
int cli_misuse(const cli_call *call, const char *format, ...) AN_PRINTF(2, 3);
/* Shows the library's message; returns CLI_MISUSED where the fault is in what was asked for, else CLI_FAILED. */
int cli_failure(const cli_call *call, const an_context *ctx, an_status status);
/* With --verbose, the functions that the library's last error passed, a line each on standard error. */
void cli_print_trail(const cli_call *call, const an_context *ctx);
/* "anneal bench: …", where what was asked for is right and the machine is not able; returns CLI_FAILED. */
int cli_fail(const cli_call *call, const char *format, ...) AN_PRINTF(2, 3);
/* Flushes standard output: a full disk is a failure. */
int cli_finish(const cli_call *call);

/* Opens a file that was asked for, with the mode of fopen; NULL after a message. */
FILE *cli_file_open(const cli_call *call, const char *path, const char *mode);
/* Closes it. What could not be written completely is removed, after a message. */
int cli_file_close(const cli_call *call, const char *path, FILE *file);

/* "; did you mean 'train'?" with the nearest of an array of names that ends with NULL, after
 * `dashes`; "" if none is near. */
typedef struct {
    char text[96];
} cli_hint;
cli_hint cli_did_you_mean(const char *dashes, const char *name, const char *const *names);

/* ---- values of options ---- CLI_DONE, or CLI_MISUSED after a message. */

int cli_number(const cli_call *call, int option, int64_t minimum, int64_t *number); /* untouched if not given */
int cli_positive(const cli_call *call, int option, double *number);                 /* the same, as 1e-3 */
/* The place of an option's value among names; untouched if not given. */
int cli_choice(const cli_call *call, int option, const char *const *names, int *choice);
int cli_isa(const cli_call *call, int option, an_isa *isa); /* a level of instructions */

/* ---- models ---- */

/* The option --precision: the type of a preset's parameters (NONE: a file says itself), and the lower one that a plan
 * is asked to compute in (NONE: that of the parameters). */
int cli_precision(const cli_call *call, int option, an_dtype *dtype, an_dtype *precision);
/* The sizes of the preset that was asked for. */
int cli_preset(const cli_call *call, an_context *ctx, an_gpt2_options *model);
/* A preset of these sizes, or (NULL) a graph from a file. */
int cli_load_model(const cli_call *call, an_context *ctx, const an_gpt2_options *model, an_graph **graph);
bool cli_is_file(const char *argument); /* it ends in .ang */

/* ---- units ---- */

typedef struct cli_text {
    char text[32];
} cli_text;
cli_text cli_bytes(double bytes);                     /* "1.50 GiB" */
cli_text cli_amount(double amount, const char *unit); /* "1.50 GFLOP" */
cli_text cli_count(int64_t number);                   /* "1,234,567" */
/* What threads without work do: "spin 0.2 ms, then sleep" */
cli_text cli_waiting(double spin_seconds);

#endif
