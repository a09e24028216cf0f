/* A whole run: all steps to the end, with evaluations, saves, early stopping and the run folder.
 *
 * With several ranks, an_trainer_run, an_folder_create, an_trainer_save, an_trainer_save_over and an_trainer_load are
 * collective; the other functions are not. Rank 0 writes. Callbacks run on every rank, except after_save, which runs on
 * rank 0.
 */
#ifndef ANNEAL_RUN_H
#define ANNEAL_RUN_H

#include "anneal/metric.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

typedef struct an_config an_config; /* config.h */

/* ---- running ---- */

/* Functions that are called at named points of a run. They ask the trainer for numbers: an_trainer_step_metrics,
 * an_trainer_evaluation, an_trainer_save_report. Nothing that they do changes the order of a run. A status other than
 * AN_OK ends the run. Each may be NULL. */
typedef struct an_run_callbacks {
    size_t size;
    an_status (*before_step)(void *user, an_trainer *trainer, int64_t step); /* step counts from 1 */
    an_status (*after_step)(void *user, an_trainer *trainer);
    /* step is the last step that was taken and counts from 1; 0: an evaluation before the first step */
    an_status (*after_evaluation)(void *user, an_trainer *trainer, int64_t step, bool best);
    /* a save ended or failed. After a failure the run continues, and tries again at the next save */
    an_status (*after_save)(void *user, an_trainer *trainer);
    void *user;
    /* the last step of an epoch was taken, and the evaluation that was due, if any. epoch counts from 1 */
    an_status (*after_epoch)(void *user, an_trainer *trainer, int64_t epoch);
} an_run_callbacks;
AN_API void an_run_callbacks_init(an_run_callbacks *callbacks, size_t size);

typedef struct an_run_options {
    size_t size;
    int64_t evaluate_every;  /* steps between evaluations; 0: only after the last step */
    double evaluate_seconds; /* instead: seconds between evaluations; 0: by steps */
    double evaluate_epochs;  /* instead: 2: at the ends of epochs 2, 4, 6, …; epoch 1 is the first; 0: by steps */
    double max_seconds;      /* the run ends after the step in which this time is over; 0: no limit */
    const char *best;        /* metric of the best checkpoint; NULL: val_loss */
    const char *early_stop;  /* metric of early stopping; NULL: the run goes to its end */
    int64_t patience;        /* evaluations without improvement before the run stops; 5 by default */
    double min_delta;        /* smallest change that counts as an improvement */
    const an_run_callbacks *callbacks; /* NULL: none */
    an_metric_better best_mode;
    bool evaluate_at_start;
    uint8_t reserved[3];
} an_run_options;
AN_API void an_run_options_init(an_run_options *options, size_t size);

typedef enum an_run_end {
    AN_RUN_DONE = 0,          /* all steps were taken */
    AN_RUN_STOPPED_EARLY = 1, /* the metric stopped improving */
    AN_RUN_REQUESTED = 2,     /* an_trainer_request_stop */
    AN_RUN_TIME = 3,          /* max_seconds are over */
    AN_RUN_FAILED = 4,        /* an_trainer_run has returned an error */
    AN_RUN_LIMIT = 0x7fffffff
} an_run_end;

typedef struct an_run_outcome {
    size_t size;
    int64_t steps;     /* total number of steps taken */
    int64_t best_step; /* 0: there was no evaluation, or its metric was NaN */
    double best_value;
    /* why the run was stopped; NULL: unknown. an_trainer_run sets it if `anneal stop` requested the stop; a caller that
     * requested it sets it before an_folder_finish */
    const char *reason;
    an_run_end end;
    uint32_t reserved;
} an_run_outcome;
AN_API void an_run_outcome_init(an_run_outcome *outcome, size_t size);

/* Takes all remaining steps, with evaluations in between and, if there is data for it, one after the last step.
 * `options` may be NULL: those of an_trainer_set_run_options. `outcome` may be NULL. Collective. */
AN_API an_status an_trainer_run(an_trainer *trainer, const an_run_options *options, an_run_outcome *outcome);

/* Ends the run after the step in progress. May be called from signal handlers and other threads. */
AN_API void an_trainer_request_stop(an_trainer *trainer);

/* ---- saving and logging ---- */

/* Where and when a run is saved. */
typedef struct an_save_options {
    size_t size;
    const char *folder;     /* of the run; NULL: it is not saved */
    const char *stage;      /* a fast folder that checkpoints are written to first; NULL: none */
    const char *config;     /* text that checkpoints store as config.yaml; NULL: none */
    an_interval every;      /* none: only after the last step */
    an_interval keep_every; /* checkpoints that are never removed; none: all others can be removed */
    int64_t keep_last;      /* number of newest checkpoints to keep; 0: all */
    int64_t keep_named;     /* number of newest checkpoints of an_trainer_save to keep; 0: all */
} an_save_options;
AN_API void an_save_options_init(an_save_options *options, size_t size);
/* Sets where and when the run is saved. A folder that already has the checkpoints of another run is refused with
 * AN_ERR_STATE, because `keep_last` would remove them: by an_trainer_run before its first step, and by an_trainer_save.
 * To continue the run in the folder, call an_trainer_load with the folder. */
AN_API an_status an_trainer_set_saving(an_trainer *trainer, const an_save_options *options);

/* What a run writes to its folder. */
typedef struct an_log_options {
    size_t size;
    an_interval every; /* between two lines of metrics.jsonl; none: every step */
    bool tensorboard;  /* write an event file for TensorBoard */
    uint8_t reserved[7];
} an_log_options;
AN_API void an_log_options_init(an_log_options *options, size_t size);
AN_API an_status an_trainer_set_logging(an_trainer *trainer, const an_log_options *options);

/* ---- the run folder ----
 *
 * config.yaml (the config with all defaults and absolute paths), metrics.jsonl, an event file for TensorBoard, log.txt
 * and, at the end, summary.json and outcome.json. */

typedef struct an_folder an_folder;

typedef struct an_folder_options {
    size_t size;
    const char *path; /* NULL: run.dir of the config */
    bool fresh;       /* if the folder has a run in it, use a new folder beside it: path-2, path-3, … */
    uint8_t reserved[7];
} an_folder_options;
AN_API void an_folder_options_init(an_folder_options *options, size_t size);

/* Creates the run folder and the files that it has before the first step. `config` is the config that the trainer was
 * opened from. `options` may be NULL. The trainer must outlive the folder. A folder that has a run in it is refused,
 * and so is one that another process is using. Collective: rank 0 writes, and the other ranks get a folder that writes
 * nothing. */
AN_API an_status an_folder_create(an_folder **folder, an_trainer *trainer, an_config *config,
                                  const an_folder_options *options);
AN_API void an_folder_destroy(an_folder **folder);
AN_API const char *an_folder_path(const an_folder *folder);

/* Write the events of a run: call these from its callbacks. A step is written if log.every says so; *logged, which may
 * be NULL, tells whether it was. */
AN_API an_status an_folder_step(an_folder *folder, const an_step_metrics *metrics, bool *logged);
AN_API an_status an_folder_evaluation(an_folder *folder, int64_t step, const an_evaluation *evaluation);
/* Appends a line to log.txt. */
AN_API an_status an_folder_log(an_folder *folder, const char *line);
/* Writes how the run ended. `error` is the message of a run that failed, and NULL otherwise. `outcome` may be NULL if
 * there is an error. */
AN_API an_status an_folder_finish(an_folder *folder, const an_run_outcome *outcome, const char *error);

/* ==== details ==== the rest of the interface */

/* ---- more about running and saving ---- */

/* Sets the options for an_trainer_run if it gets none. A trainer that was opened from a config has those of the
 * config. */
AN_API an_status an_trainer_set_run_options(an_trainer *trainer, const an_run_options *options);
/* Gets these options, so that a program can add callbacks to them. */
AN_API an_status an_trainer_run_options(const an_trainer *trainer, an_run_options *options);

/* The last save of a run. */
typedef struct an_save_report {
    size_t size;
    int64_t step;
    const char *path;  /* of the checkpoint; valid until the callback returns */
    const char *error; /* NULL: the checkpoint is durable */
    /* the checkpoint is durable, but something after it failed, such as the link to the best; NULL: none */
    const char *warning;
    int64_t bytes;       /* written */
    double copy_seconds; /* training paused for the copy */
    double seconds;      /* background time until the save was durable */
    double cpu_seconds;  /* CPU time spent on the save */
    double wait_seconds; /* training waited for an earlier save */
} an_save_report;
AN_API void an_save_report_init(an_save_report *report, size_t size);
/* Call it from the callback after_save; AN_ERR_STATE at other times. */
AN_API an_status an_trainer_save_report(const an_trainer *trainer, an_save_report *report);

/* Gives the seconds until the Slurm job of this process ends, less one minute for the step in progress and its
 * checkpoint; above 0. Fails if there is no such job, or if its end is unknown. */
AN_API an_status an_job_seconds(an_context *ctx, double *seconds);

/* ---- looking at run folders ---- */

/* How far the run in a folder came. */
typedef enum an_folder_state {
    AN_FOLDER_EMPTY = 0, /* no run, or no folder */
    AN_FOLDER_UNFINISHED = 1,
    AN_FOLDER_FINISHED = 2,
    AN_FOLDER_LIMIT = 0x7fffffff
} an_folder_state;
/* Tells how far the run in a folder came. */
AN_API an_status an_folder_look(an_context *ctx, const char *path, an_folder_state *state);
/* Checks that no other process of this machine is training in the folder. AN_ERR_STATE: one is; the message names
 * it. */
AN_API an_status an_folder_check_free(an_context *ctx, const char *path);

/* Lists the differences that make a config another run than the config.yaml in the folder, as "optimizer.lr is 0.01,
 * was 0.001; …"; release it with an_string_release. NULL: the run is the same. Keys that a resumed run may change
 * freely do not count. This is for a run without a checkpoint: a checkpoint's own config is compared when it is
 * resumed. */
AN_API an_status an_folder_compare(const char *path, an_config *config, char **changes);

/* Tokens per second (samples, if there are no tokens), over the last logged steps, without evaluations. */
AN_API double an_folder_speed(const an_folder *folder);

#ifdef __cplusplus
}
#endif
#endif
