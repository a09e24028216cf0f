/* Whether the checkpoints in the folder of a run are its own. A run removes old checkpoints of its folder, so it must
 * not write to one that holds another run. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "anneal/config.h"
#include "run/folder.h"
#include "run/saver.h"
#include "store/hold.h"
#include "store/inspect.h"

static bool is_same_folder(const char *a, const char *b) {
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* The folder that the checkpoint is in. A link such as `best` is followed if the checkpoint is still there; for one
 * that is gone, its path tells. */
static bool find_parent(const char *checkpoint, char parent[AN_FILE_PATH]) {
    struct stat found;
    if (!an_path_join(parent, checkpoint, "..")) return false;
    if (stat(parent, &found) == 0) return true;
    snprintf(parent, AN_FILE_PATH, "%s", checkpoint);
    char *slash = strrchr(parent, '/');
    if (slash) *slash = 0;
    return slash != NULL;
}

static bool resumed_from_here(const an_run *h, const char *checkpoints) {
    char parent[AN_FILE_PATH], staged[AN_FILE_PATH];
    if (!h->resumed || !find_parent(h->resumed, parent)) return false;
    return is_same_folder(parent, checkpoints) ||
           (h->stage && an_stage_path(staged, h->stage, h->folder) && is_same_folder(parent, staged));
}

/* A run that was resumed from elsewhere goes on in this folder: an earlier launch of the same command may have saved
 * here. The configs tell. */
static an_status has_same_config(an_context *ctx, const an_run *h, const char *newest, bool *same) {
    an_status status;
    an_config *config = NULL;
    char *changes = NULL;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    *same = false;
    if (!h->resumed || !h->config) return AN_OK;
    options.text = h->config;
    options.length = strlen(h->config);
    options.stored = true;
    AN_TRY(an_config_create(&config, ctx, &options));
    AN_TRY(an_folder_compare(newest, config, &changes));
    *same = !changes;
    status = AN_OK;
fail:
    an_string_release(ctx, &changes);
    an_config_destroy(&config);
    return status;
}

static an_status refuse(an_context *ctx, const an_run *h, const char *newest, const an_manifest *m) {
    return AN_ERROR(
        ctx, AN_ERR_STATE,
        "%s: this folder already has the checkpoints of another run: the newest is %s, after step %lld of %lld. To "
        "save here would remove them. To continue that run, load it before the first step (an_trainer_load with this "
        "folder, or a config with this run.dir). To start a new run, choose another folder",
        h->folder, strrchr(newest, '/') + 1, (long long)m->step, (long long)m->progress.steps);
}

an_status an_run_check_folder(an_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    const an_run *h = t->run;
    an_manifest *manifest = NULL;
    char checkpoints[AN_FILE_PATH], newest[AN_FILE_PATH];
    int hold = AN_HOLD_NONE;
    bool same;
    if (t->rank > 0 || h->generation || !h->folder) return AN_OK;
    AN_CHECK(ctx, an_path_join(checkpoints, h->folder, AN_CHECKPOINTS), AN_ERR_ARGUMENT,
             "the path is too long: %.100s…", h->folder);
    if (resumed_from_here(h, checkpoints)) return AN_OK;
    AN_TRY(an_checkpoint_newest(ctx, h->folder, newest, &manifest, &hold));
    if (!manifest) return AN_OK; /* nor is anything held */
    AN_TRY(has_same_config(ctx, h, newest, &same));
    status = same ? AN_OK : refuse(ctx, h, newest, manifest);
fail:
    an_hold_end(&hold);
    an_manifest_destroy(&manifest);
    return status;
}
