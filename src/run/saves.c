/* Where a run is stored: its folder, the generation of this launch, its saves. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/ranks.h"
#include "anneal/run.h"
#include "base/guard.h"
#include "base/heartbeat.h"
#include "base/system/clock.h"
#include "run/origin.h"
#include "run/restore.h"
#include "run/run.h"
#include "run/saver.h"
#include "store/hold.h"
#include "store/inspect.h"
#include "store/launch.h"
#include "store/share.h"

static void destroy(an_trainer *t) {
    an_run *h = t->run;
    char **texts[] = {&h->folder, &h->stage, &h->config, &h->resumed, &h->origin_path, &h->origin_text};
    an_saver_destroy(&h->saver);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) an_string_release(t->ctx, texts[i]);
    an_release(t->ctx, (void **)&t->run, 1, sizeof *h);
}

an_status an_run_attach(an_trainer *t) {
    an_context *ctx = t->ctx;
    if (t->run) return AN_OK;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->run, 1, sizeof *t->run));
    t->run->saved = -1;
    t->destroy_run = destroy;
    return AN_OK;
}

an_status an_run_claim(an_trainer *t) {
    an_run *h = t->run;
    an_context *ctx = t->ctx;
    if (h->generation) return AN_OK;
    if (!h->folder)
        return AN_ERROR(
            ctx, AN_ERR_STATE,
            "this run has no folder to save to: open it from a config, or set one with an_trainer_set_folder");
    AN_TRY_RETURN(an_run_check_folder(t));
    return an_launch_claim(ctx, h->folder, &h->generation);
}

/* ---- saves ---- */

static an_status make_saver(an_trainer *t) {
    an_run *h = t->run;
    if (h->saver) return AN_OK;
    if (t->rank == 0) AN_TRY_RETURN(an_run_claim(t));
    const an_saver_options options = {.folder = h->folder,
                                      .stage = h->stage,
                                      .generation = h->generation,
                                      .writers = t->saving.writers,
                                      .keep_last = h->keep_last,
                                      .keep_every = h->keep_every,
                                      .keep_named = h->keep_named,
                                      .config = h->config};
    return an_saver_create(&h->saver, t, &options);
}

/* What there is to tell of the save that has ended. */
static void report(an_trainer *t, double waited, const char *error) {
    const an_saver *s = t->run->saver;
    int64_t bytes = 0;
    for (size_t i = 0; i < s->job.layout->file_count; i++) bytes += (int64_t)s->job.layout->files[i].bytes;
    const bool warns = !error && s->job.status != AN_OK;
    const double background = s->job.seconds - (s->job.params ? s->copy_seconds : 0);
    t->run->report = (an_save_report){.size = sizeof t->run->report,
                                      .step = s->job.place.step,
                                      .path = s->path,
                                      .error = error,
                                      .warning = warns ? s->job.note : NULL,
                                      .bytes = bytes,
                                      .copy_seconds = s->copy_seconds,
                                      .seconds = background > 0 ? background : 0,
                                      .cpu_seconds = s->job.cpu_seconds,
                                      .wait_seconds = waited};
}

bool an_run_is_saving(const an_trainer *t) {
    return t->run->saver && an_saver_is_saving(t->run->saver);
}

int64_t an_run_saving(const an_trainer *t) {
    return t->run->saver ? an_saver_count(t->run->saver) : 0;
}

static an_status end(an_trainer *t, an_status status, double waited) {
    if (status != AN_OK) t->run->lost = true;
    report(t, waited, status == AN_OK ? NULL : t->run->saver->phases.message);
    return status;
}

an_status an_run_wait(an_trainer *t) {
    if (!an_run_is_saving(t)) return AN_OK;
    const double begin = an_clock_seconds();
    const an_status status = an_saver_wait(t->run->saver);
    return end(t, status, an_clock_seconds() - begin);
}

bool an_run_poll(an_trainer *t, int64_t saving, an_status *status) {
    if (!an_run_is_saving(t) || !an_saver_poll(t->run->saver, saving, status)) return false;
    *status = end(t, *status, 0);
    return true;
}

/* A name is never used twice. The same step once more (after an evaluation, or because the host asks
 * again) is a new generation. */
static an_status renew(an_trainer *t, const int64_t *user_step) {
    an_context *ctx = t->ctx;
    an_saver *s = t->run->saver;
    char name[AN_CHECKPOINT_NAME], path[AN_FILE_PATH];
    an_checkpoint_name(name, AN_CHECKPOINT_FINISHED, t->next, t->run->generation, user_step);
    if (!an_path_join(path, s->checkpoints, name) || access(path, F_OK) != 0) return AN_OK;
    char text[AN_SAVE_NOTE] = "";
    const an_note note = {text, sizeof text};
    AN_TRY_RETURN(an_note_raise(ctx, an_launch_check(t->run->folder, t->run->generation, note), note));
    AN_TRY_RETURN(an_launch_claim(ctx, t->run->folder, &t->run->generation));
    s->job.generation = t->run->generation;
    return AN_OK;
}

static an_status start_save(an_trainer *t, bool best, const int64_t *user_step) {
    const an_save_request request = {.best = best, .user_step = user_step};
    an_status status = make_saver(t);
    if (status == AN_OK && t->rank == 0) status = renew(t, user_step);
    if (!t->run->saver)
        return an_save_agree(t, status); /* the others come to it in the next line, with nothing begun */
    return an_saver_start(t->run->saver, status, &request);
}

an_status an_run_save(an_trainer *t, bool best, const int64_t *user_step) {
    an_run *h = t->run;
    const an_status status = start_save(t, best, user_step);
    h->saved = t->next;
    h->saved_chain = t->record.chain[0];
    h->lost = status != AN_OK;
    return status;
}

bool an_run_has(const an_trainer *t) {
    const an_run *h = t->run;
    return !h->lost && h->saved == t->next && h->saved_chain == t->record.chain[0];
}

/* ---- for host programs ---- */

/* Whether the user step may be saved, which rank 0 knows. */
static an_status check_named(an_trainer *t, int64_t user_step, bool replaces) {
    an_context *ctx = t->ctx;
    if (t->rank > 0) return AN_OK;
    AN_TRY_RETURN(make_saver(t));
    const an_checkpoint_place *there = an_saver_find(t->run->saver, user_step);
    if (!there || replaces) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_STATE,
                    "%s: user step %lld is already saved as %s; use an_trainer_save_over to replace it", t->run->folder,
                    (long long)user_step, there->name);
}

/* Whether the run can be saved as it stands. */
static an_status check_save(an_trainer *t) {
    an_context *ctx = t->ctx;
    if (t->planned) return AN_ERROR(ctx, AN_ERR_STATE, "this trainer was opened only for its plan and has no weights");
    AN_TRY_RETURN(an_context_check_process(ctx));
    AN_TRY_RETURN(an_trainer_check_idle(t, "save"));
    AN_TRY_RETURN(an_run_attach(t));
    if (t->stepper->place != AN_STEP_IDLE)
        return AN_ERROR(ctx, AN_ERR_ORDER,
                        "a step is not finished, so there is no consistent state to save: call an_step_end or "
                        "an_step_cancel first");
    return AN_OK;
}

/* All ranks return when the checkpoint is safe, or with the same error. */
static an_status save_named(an_trainer *t, int64_t user_step, bool replaces) {
    AN_TRY_RETURN(an_save_agree(t, check_save(t)));
    AN_TRY_RETURN(an_run_wait(t));
    AN_TRY_RETURN(an_save_agree(t, check_named(t, user_step, replaces)));
    t->record.progress.has_user_step = true;
    t->record.progress.user_step = user_step;
    AN_TRY_RETURN(an_run_save(t, false, &user_step));
    return an_run_wait(t);
}

an_status an_trainer_save(an_trainer *trainer, int64_t user_step) {
    AN_GUARD;
    AN_NEED(trainer);
    return save_named(trainer, user_step, false);
}

an_status an_trainer_save_over(an_trainer *trainer, int64_t user_step) {
    AN_GUARD;
    AN_NEED(trainer);
    return save_named(trainer, user_step, true);
}

/* What this rank can find wrong before the ranks read a checkpoint together. */
static an_status check_begin(an_trainer *t) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_context_check_process(ctx));
    if (t->planned || t->next > 0)
        return AN_ERROR(ctx, AN_ERR_STATE, "a checkpoint can only be loaded before the first step");
    return an_run_attach(t);
}

static an_status check_load(an_trainer *t, const char *path, const an_manifest *m, bool restarts) {
    an_context *ctx = t->ctx;
    if (!restarts && m->bits.leaves != t->samples.batches.leaves)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: was trained with %lld leaves, but this trainer has %lld, so results would differ", path,
                        (long long)m->bits.leaves, (long long)t->samples.batches.leaves);
    if (!restarts && m->step > t->steps)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: has taken %lld steps, but this run has only %lld", path,
                        (long long)m->step, (long long)t->steps);
    AN_TRY_RETURN(an_load_check_base(t, m, path));
    AN_TRY_RETURN(an_load_check_optimizer(t, m, path));
    return an_load_check_average(t, m, path);
}

static an_status keep_origin(an_trainer *t, const char *path, const an_manifest *m, bool restarts) {
    if (restarts) return an_origin_begin(t, m, path);
    AN_TRY_RETURN(an_origin_continue(t, m));
    return an_trainer_keep_text(t, &t->run->resumed, path);
}

static bool is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool is_run(const char *path) {
    char checkpoints[AN_FILE_PATH];
    return an_path_join(checkpoints, path, AN_CHECKPOINTS) && is_folder(checkpoints);
}

/* A checkpoint itself, or the newest of a run folder, which is held: its run may be under way. */
static an_status choose_checkpoint(an_context *ctx, const char *path, char chosen[AN_FILE_PATH], int *hold) {
    an_manifest *manifest = NULL;
    if (!is_folder(path)) return AN_ERROR(ctx, AN_ERR_FILE, "%s: there is no such checkpoint or run", path);
    if (!is_run(path)) {
        if (snprintf(chosen, AN_FILE_PATH, "%s", path) < AN_FILE_PATH) return AN_OK;
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", path);
    }
    AN_TRY_RETURN(an_checkpoint_newest(ctx, path, chosen, &manifest, hold));
    an_manifest_destroy(&manifest);
    if (*chosen) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_FILE, "%s: this run has no intact checkpoint", path);
}

/* Rank 0 chooses and holds it, for all. Collective. */
static an_status share_choice(an_context *ctx, const char *path, char chosen[AN_FILE_PATH], int *hold) {
    AN_TRY_RETURN(an_ranks_agree(ctx, an_context_rank(ctx) == 0 ? choose_checkpoint(ctx, path, chosen, hold) : AN_OK));
    return an_context_ranks(ctx) > 1 ? an_ranks_broadcast(ctx, chosen, AN_FILE_PATH, AN_DTYPE_U8, 0) : AN_OK;
}

static an_status load(an_trainer *t, const char *given, bool restarts) {
    an_status status;
    an_context *ctx = t->ctx;
    an_manifest *manifest = NULL;
    char path[AN_FILE_PATH] = "";
    int hold = AN_HOLD_NONE;
    AN_TRY(an_ranks_agree(ctx, check_begin(t)));
    AN_TRY(share_choice(ctx, given, path, &hold));
    AN_TRY(an_manifest_share(&manifest, ctx, path));
    AN_TRY(an_ranks_agree(ctx, check_load(t, path, manifest, restarts)));
    t->broken = true; /* until all of it is there: to read every byte twice would be twice the time */
    AN_TRY(restarts ? an_load_restart(t, manifest, path) : an_load(t, manifest, path));
    t->broken = false;
    AN_TRY(an_ranks_agree(ctx, keep_origin(t, path, manifest, restarts)));
    status = AN_OK;
fail:
    an_hold_end(&hold);
    an_manifest_destroy(&manifest);
    return status;
}

an_status an_trainer_load(an_trainer *trainer, const char *path) {
    AN_GUARD;
    AN_NEED(trainer, path);
    return load(trainer, path, false);
}

an_status an_trainer_restart(an_trainer *trainer, const char *path) {
    AN_GUARD;
    AN_NEED(trainer, path);
    return load(trainer, path, true);
}

const char *an_trainer_resumed(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->run ? trainer->run->resumed : NULL;
}
