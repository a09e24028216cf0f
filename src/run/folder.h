/* The folder of a run: its config, its metrics while it runs, and how it ended. */
#ifndef AN_RUN_FOLDER_H
#define AN_RUN_FOLDER_H

#include "anneal/run.h"
#include "base/files/file.h"
#include "base/text/json_write.h"
#include "base/text/text.h"
#include "run/events.h"
#include "train/trainer.h"

struct an_folder {
    an_context *ctx;
    an_trainer *trainer;
    char path[AN_FILE_PATH];
    bool is_silent;      /* a rank other than 0, which writes nothing */
    int metrics, log;    /* files */
    an_events *events;   /* NULL: not wanted */
    int64_t tokens;      /* that training has seen since `since` */
    double begin, since; /* times, by the clock that only goes forward */
    double logged;       /* when metrics were last written */
    double speed;        /* tokens a second */
};

/* ---- folder_files.c ---- */

an_status an_folder_join(const an_folder *f, const char *name, char path[AN_FILE_PATH]);

/* A whole file, beside and then renamed: nobody ever reads half of it. */
an_status an_folder_replace_file(const an_folder *f, const char *name, const char *text);

/* To a file that is open; messages call it `name`. */
an_status an_folder_append(const an_folder *f, int file, const char *name, const char *text, size_t length);

/* ---- folder_metrics.c ---- */

/* With the lines of earlier launches, if the run is resumed. */
an_status an_folder_open_metrics(an_folder *f);

/* What the speed is called: samples that are not made of tokens are counted themselves. */
const char *an_folder_speed_name(const an_folder *f);

/* Members of an object: the metrics of an evaluation. events: also to TensorBoard's. */
an_status an_folder_add_evaluation(an_folder *f, an_json_writer *json, int64_t step, const an_evaluation *evaluation,
                                   const an_own_metrics *own, bool events);

/* ---- folder_origin.c ---- */

/* Whether the run that a folder has, without a checkpoint, began as the trainer's: with the same state of
 * another one, or with none. */
an_status an_folder_check_origin(const an_folder *f);
an_status an_folder_write_origin(const an_folder *f);

/* ---- folder_outcome.c ---- */

/* How the last launch ended, or that it is under way; nothing trusts the exit code that a launcher makes of it. A
 * launch that another one has followed has no say. */
an_status an_folder_write_outcome(an_folder *f, const char *end, int64_t step, const char *reason, const char *error);
/* That the launch has failed, with the error that the context has and keeps; nothing, if that cannot be written. */
void an_folder_end_failed(an_folder *f);

#endif
