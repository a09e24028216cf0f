/* The folder of a run: its config, its metrics while it runs, and how it ended. */
#ifndef AN_RUN_FOLDER_H
#define AN_RUN_FOLDER_H

#include "base/files/file.h"
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

#endif
