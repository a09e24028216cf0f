/* Resuming: which checkpoint, whether the config describes the same run, and what may have changed. */
#ifndef AN_RUN_RESUME_H
#define AN_RUN_RESUME_H

#include "anneal/open.h"
#include "config/config.h"
#include "run/restore.h"
#include "run/run.h"
#include "store/places.h"

struct an_candidates {
    an_context *ctx;
    char (*paths)[AN_FILE_PATH];
    size_t count, capacity;
};

/* A checkpoint that a run is being opened from. */
struct an_resume {
    an_context *ctx;
    an_config *config; /* that is wanted now */
    an_open_options options;
    char path[AN_FILE_PATH];
    an_manifest *manifest;
    an_config *before; /* that it was saved with; NULL: it was made without */
    /* The config's tree as it was given, put back if this checkpoint is not the one; NULL: it stays. */
    an_config_node *root;
    const an_settings *settings;        /* of it */
    bool allows_new_bits, has_new_bits; /* the user does; there are some */
    bool restarts;                      /* a new run begins with it */
    /* of a checkpoint that a new run begins with: what the numbers of its table mean; NULL: numbers only */
    an_encoding *encoding;
    an_text notes;
};

#endif
