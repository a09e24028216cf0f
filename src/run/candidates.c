/* Which checkpoints a run can be resumed from, best first: rank 0 looks, and all ranks get its list. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "anneal/ranks.h"
#include "base/files/file.h"
#include "base/guard.h"
#include "config/structs.h"
#include "run/config.h"
#include "run/origin.h"
#include "run/resume.h"
#include "run/saver.h"

/* name NULL: the folder itself */
static an_status add(an_candidates *c, const char *folder, const char *name) {
    an_context *ctx = c->ctx;
    AN_TRY_RETURN(an_grow(ctx, (void **)&c->paths, &c->capacity, c->count + 1, sizeof *c->paths));
    const int length =
        snprintf(c->paths[c->count], sizeof *c->paths, "%s%s%s", folder, name ? "/" : "", name ? name : "");
    if (length < AN_FILE_PATH) c->count++;
    return AN_OK;
}

/* Whether the checkpoint was saved with this time; one that cannot be read does not say. */
static bool is_at(an_context *ctx, const char *folder, const char *name, const int64_t *user_step) {
    char path[AN_FILE_PATH];
    an_manifest *m = NULL;
    if (!user_step) return true;
    if (!an_path_join(path, folder, name) || an_manifest_read(&m, ctx, path) != AN_OK) return false;
    const bool same = m->progress.has_user_step && m->progress.user_step == *user_step && m->kept;
    an_manifest_destroy(&m);
    return same;
}

/* All of a folder of them, newest first. */
static an_status add_folder(an_candidates *c, const char *folder, const int64_t *user_step) {
    an_status status;
    an_context *ctx = c->ctx;
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    AN_TRY(an_checkpoints_list(ctx, folder, &places, &count, &capacity));
    for (size_t i = count; i-- > 0;)
        if (is_at(ctx, folder, places[i].name, user_step)) AN_TRY(add(c, folder, places[i].name));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    return status;
}

static an_status add_run(an_candidates *c, const char *folder, const int64_t *user_step) {
    an_context *ctx = c->ctx;
    char path[AN_FILE_PATH];
    if (!an_path_join(path, folder, AN_CHECKPOINTS))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", folder);
    return add_folder(c, path, user_step);
}

/* A staged copy goes first if it is newer: the run's own folder had not got it yet. */
static an_status add_staged(an_candidates *c, an_config *config, const char *folder, const int64_t *user_step) {
    an_context *ctx = c->ctx;
    char path[AN_FILE_PATH];
    const char *stage;
    an_checkpoint_kind kind;
    an_checkpoint_place newest, staged;
    an_candidates found = {.ctx = ctx};
    if (an_config_origin_of(config, AN_SETTING(save.stage)) == AN_ORIGIN_NONE) return AN_OK;
    AN_TRY_RETURN(an_config_path(config, AN_SETTING(save.stage), &stage));
    if (!an_stage_path(path, stage, folder)) return AN_OK;
    an_status status = add_folder(&found, path, user_step);
    if (status == AN_OK && found.count > 0 && an_checkpoint_parse(strrchr(found.paths[0], '/') + 1, &kind, &staged)) {
        const bool newer = c->count == 0 || !an_checkpoint_parse(strrchr(c->paths[0], '/') + 1, &kind, &newest) ||
                           staged.generation > newest.generation ||
                           (staged.generation == newest.generation && staged.step > newest.step);
        if (newer) status = add(c, path, staged.name);
        for (size_t i = c->count; newer && status == AN_OK && i-- > 1;)
            memcpy(c->paths[i], c->paths[i - 1], sizeof *c->paths);
        if (newer && status == AN_OK) memcpy(c->paths[0], found.paths[0], sizeof *c->paths);
    }
    an_release(ctx, (void **)&found.paths, found.capacity, sizeof *found.paths);
    return status;
}

static bool has_file(const char *folder, const char *name) {
    char path[AN_FILE_PATH];
    struct stat found;
    return an_path_join(path, folder, name) && stat(path, &found) == 0;
}

static an_status add_own(an_candidates *c, an_config *config, const int64_t *user_step, const char **folder) {
    AN_TRY_RETURN(an_config_path(config, AN_SETTING(run.dir), folder));
    AN_TRY_RETURN(add_run(c, *folder, user_step));
    return add_staged(c, config, *folder, user_step);
}

/* A new run that was stopped goes on with its own checkpoints. Those of any other run are in its way. */
static an_status find_restarted(an_candidates *c, an_config *config, const an_open_options *o) {
    an_context *ctx = c->ctx;
    const char *folder;
    an_manifest *manifest = NULL;
    AN_TRY_RETURN(add_own(c, config, NULL, &folder));
    for (size_t i = 0; i < c->count && !manifest; i++) an_manifest_read(&manifest, ctx, c->paths[i]);
    const bool known = !manifest || an_origin_is(manifest, o->resume);
    an_manifest_destroy(&manifest);
    if (known) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_ARGUMENT,
        "%s: %s already has a run, which did not begin with %s; a restarted schedule is a new run: set run.dir to "
        "another name",
        an_config_place(config, AN_SETTING(run.dir)), folder, o->resume);
}

static an_status check_restart_options(an_context *ctx, const an_open_options *o) {
    if ((unsigned)o->restart > AN_RESTART_SCHEDULE)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "restart is %d, which is not a value of an_restart", (int)o->restart);
    if (o->restart == AN_RESTART_NONE) return AN_OK;
    if (!o->resume || o->fresh || o->extend != AN_EXTEND_REFUSE)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "restart needs resume, which names the checkpoint to begin with, and has no use for fresh and extend, as "
            "a new run begins");
    return AN_OK;
}

static an_status find(an_candidates *c, an_config *config, const an_open_options *o) {
    an_context *ctx = c->ctx;
    const char *folder;
    AN_TRY_RETURN(check_restart_options(ctx, o));
    if (o->fresh || o->purpose != AN_OPEN_RUN) return AN_OK;
    if (o->restart == AN_RESTART_SCHEDULE) {
        AN_TRY_RETURN(find_restarted(c, config, o));
        if (c->count > 0) return AN_OK;
    }
    if (o->resume) {
        if (has_file(o->resume, AN_MANIFEST_NAME)) return add(c, o->resume, NULL);
        AN_TRY_RETURN(add_run(c, o->resume, o->user_step));
        if (c->count == 0) AN_TRY_RETURN(add_folder(c, o->resume, o->user_step));
        if (c->count > 0) return AN_OK;
        return AN_ERROR(
            ctx, AN_ERR_FILE,
            "%s: this is not a checkpoint or a run: it has neither a manifest.json nor a folder of checkpoints",
            o->resume);
    }
    AN_TRY_RETURN(add_own(c, config, o->user_step, &folder));
    if (c->count == 0 && o->user_step)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: there is no intact checkpoint of user step %lld", folder,
                        (long long)*o->user_step);
    return AN_OK;
}

/* `status` is that of rank 0's search. */
static an_status share(an_candidates *c, an_status status) {
    an_context *ctx = c->ctx;
    int64_t count = (int64_t)c->count;
    AN_TRY_RETURN(an_ranks_agree(ctx, status));
    AN_TRY_RETURN(an_ranks_broadcast(ctx, &count, 1, AN_DTYPE_I64, 0));
    AN_TRY_RETURN(an_ranks_agree(ctx, an_grow(ctx, (void **)&c->paths, &c->capacity, (size_t)count, sizeof *c->paths)));
    c->count = (size_t)count;
    return an_ranks_broadcast(ctx, c->paths, count * (int64_t)sizeof *c->paths, AN_DTYPE_U8, 0);
}

an_status an_candidates_create(an_candidates **candidates, an_context *ctx, an_config *config,
                               const an_open_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, candidates, config, options);
    an_status status;
    an_candidates found = {.ctx = ctx};
    an_open_options own;
    *candidates = NULL;
    AN_TRY(an_ranks_agree(ctx, an_open_options_read(ctx, &own, options)));
    AN_TRY(an_run_compare_configs(ctx, config));
    AN_TRY(share(&found, an_context_rank(ctx) == 0 ? find(&found, config, &own) : AN_OK));
    AN_TRY(an_ranks_agree(ctx, an_alloc(ctx, (void **)candidates, 1, sizeof **candidates)));
    **candidates = found;
    return AN_OK;
fail:
    an_release(ctx, (void **)&found.paths, found.capacity, sizeof *found.paths);
    an_release(ctx, (void **)candidates, 1, sizeof **candidates);
    return status;
}

void an_candidates_destroy(an_candidates **candidates) {
    an_candidates *c = candidates ? *candidates : NULL;
    if (!c) return;
    an_release(c->ctx, (void **)&c->paths, c->capacity, sizeof *c->paths);
    an_release(c->ctx, (void **)candidates, 1, sizeof *c);
}

const char *an_candidates_path(const an_candidates *candidates, int index) {
    AN_NEED_OR(NULL, candidates);
    return index >= 0 && (size_t)index < candidates->count ? candidates->paths[index] : NULL;
}
