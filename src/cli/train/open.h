/* A run of the command: what is opened for it, and what is printed about it. */
#ifndef AN_CLI_TRAIN_OPEN_H
#define AN_CLI_TRAIN_OPEN_H

#include "anneal/checkpoint.h"
#include "anneal/experimental.h"
#include "anneal/open.h"
#include "anneal/predict.h"
#include "anneal/ranks.h"
#include "anneal/run.h"
#include "anneal/watch.h"
#include "cli/main/cli.h"

typedef struct cli_trace cli_trace; /* trace.h */

typedef struct cli_training {
    const cli_call *call;
    bool is_first; /* rank 0, or no rank: the one that prints and writes */
    an_context *ctx;
    an_config *config;
    an_trainer *trainer;
    an_folder *folder; /* NULL: nothing is written */
    an_trainer_info info;
    an_watch *watch;        /* of its ranks; NULL: it is not one of several */
    cli_trace *trace;       /* its profile; NULL: none */
    const char *trace_path; /* where it goes; in the config's memory or the caller's */
} cli_training;

/* What a command that opens a config is told about it on the command line; NULL: not given. */
typedef struct cli_opening {
    const char *file;
    an_comm *comm;          /* the ranks to train with; NULL: this process only */
    int threads;            /* 0: what the config says */
    an_isa isa;             /* AN_ISA_AUTO: the same */
    bool planned;           /* only the plan */
    int rank, ranks, hosts; /* of the plan; ranks 0: one process */
    bool plain;             /* to compare with */
    const char *kernels;    /* of --kernel; NULL: the best */
    bool fresh;             /* begin anew, whatever the run's folder has */
    const char *resume;     /* carry on from this checkpoint */
    an_extend extend;
    an_restart restart; /* begin a new run with what `resume` names */
    bool new_bits;
    bool traces;         /* a profile is made, where somebody asks for it */
    const char *profile; /* of --profile; NULL: what the config says */
} cli_opening;

/* Whether it is there and no regular file (<(command)), or standard input. A config may be, and is then read once. */
bool cli_is_pipe(const char *file);

/* The config with what the command line says of it. */
an_status cli_config_read(const cli_call *call, const cli_opening *opening, an_context *ctx, an_config **config);
/* Makes context, config and trainer; an exit code, after a message. To be closed whatever this returns. */
int cli_training_open(const cli_call *call, const cli_opening *opening, cli_training *training);
void cli_training_close(cli_training *training);

/* From here on a signal stops a run with a checkpoint. Before the run is opened: one that comes
 * meanwhile is not forgotten. */
void cli_watch_signals(void);
/* The whole run: its folder, the banner, all steps. `fresh`: where the folder has a run in it, a new one beside it. */
int cli_training_run(cli_training *training, bool fresh);

/* Takes so many steps beside plain ones, in f32 with portable kernels and nothing fused, and shows where they
 * differ. */
int cli_check(const cli_call *call, const cli_opening *opening, int64_t steps);

/* Shows a message about a config or about what it names: 2 where the config is wrong, else 1. */
int cli_refuse(const cli_call *call, const an_context *ctx, const char *file, an_status status);

/* ---- what is said ---- */

/* A line to standard output and to the run's log.txt. */
void cli_say(cli_training *training, const char *format, ...) AN_PRINTF(2, 3);

/* Groups, schedule, batch arithmetic, precision, memory, threads: everything that a person should
 * know before the first step. */
int cli_banner(cli_training *training);

/* The line that is drawn again and again on a terminal; plain lines elsewhere. */
typedef struct cli_progress {
    bool terminal, colors;
    double begin, drawn; /* when the run began, and the line was last drawn */
    int64_t first;       /* the step that the run began with */
    int shown;           /* columns of the line that stands there; 0: none */
} cli_progress;
void cli_progress_begin(cli_progress *progress, const cli_training *training);
void cli_progress_step(cli_progress *progress, cli_training *training, const an_step_metrics *metrics, bool logged);
void cli_progress_evaluation(cli_progress *progress, cli_training *training, int64_t step,
                             const an_evaluation *evaluation, bool best);
double cli_progress_seconds(const cli_progress *progress); /* since its beginning */
void cli_progress_end(cli_progress *progress);             /* leaves the cursor on a line of its own */

/* Writes what a model of characters or bytes says after a prompt to standard output. */
typedef struct cli_sampling {
    const char *prompt;
    int64_t tokens, seed;
    double temperature;
} cli_sampling;
int cli_sample(cli_training *training, const cli_sampling *sampling);

cli_text cli_metric(double value);     /* "0.1234", "9.25e+18", "nan" */
cli_text cli_duration(double seconds); /* "1h02m", "3m20s", "12.3 s" */
int cli_columns(void);                 /* of the terminal; 80 where there is none */
bool cli_has_colors(void);             /* a terminal, and nobody said NO_COLOR */

#endif
