#include "run/resume.h"

#include <stdio.h>
#include <string.h>

#include "anneal/ranks.h"
#include "base/files/file.h"
#include "base/guard.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "config/compare.h"
#include "config/structs.h"
#include "data/tables/encoding.h"
#include "exec/plan.h"
#include "ir/kernel_name.h"
#include "run/origin.h"
#include "step/schedule.h"
#include "store/read.h"
#include "store/share.h"
#include "train/evaluation/metrics.h"
#include "train/evaluation/own_metrics.h"

/* ---- the config ---- */

/* Whether micro-batches of this config have whole leaves of the run (docs/bits.md). With accumulate, micro says how
 * many samples a step has. */
static bool has_whole_leaves(const an_config *config, int64_t leaves) {
    int64_t micro, global;
    if (an_config_origin_of(config, AN_SETTING(batch.accumulate)) != AN_ORIGIN_NONE ||
        an_config_count(config, AN_SETTING(batch.global), &global) != AN_OK)
        return false;
    return an_config_is(config, AN_SETTING(batch.micro), "auto") ||
           (an_config_count(config, AN_SETTING(batch.micro), &micro) == AN_OK && micro >= an_divide_up(global, leaves));
}

/* Larger micro-batches or smaller ones are no other bits, as long as each leaf is in one of them. */
static void allow_micro(const an_resume *r, an_config_changes *changes) {
    const int64_t leaves = r->manifest->bits.leaves;
    for (size_t i = 0; i < changes->count; i++) {
        an_config_change *c = &changes->items[i];
        if (!strcmp(c->path, AN_SETTING(batch.micro)) && has_whole_leaves(r->before, leaves) &&
            has_whole_leaves(r->config, leaves))
            c->kind = AN_CHANGE_FREE;
    }
}

/* What `auto` stood for when the run began. */
static an_status compare(an_resume *r) {
    an_status status;
    const an_bits *bits = &r->manifest->bits;
    const an_config_auto autos[] = {{AN_SETTING(run.isa), bits->isa}};
    an_config_changes changes = {0};
    unsigned allowed = AN_CHANGES(AN_CHANGE_LENGTH) | AN_CHANGES(AN_CHANGE_DATA_PATH);
    if (r->allows_new_bits) allowed |= AN_CHANGES(AN_CHANGE_BITS);
    AN_TRY(an_config_compare(&changes, r->before, r->config, autos, sizeof autos / sizeof *autos));
    if (r->restarts) an_config_changes_restart(&changes, &r->notes);
    r->root = r->config->root;
    r->settings = r->config->settings;
    AN_TRY(an_config_inherit(&changes, r->before, r->config, &r->notes));
    allow_micro(r, &changes);
    AN_TRY(an_config_changes_check(&changes, r->config, allowed));
    for (size_t i = 0; i < changes.count; i++) {
        an_text_add(&r->notes, "%s: %s now, %s before\n", changes.items[i].path, changes.items[i].after,
                    changes.items[i].before);
        r->has_new_bits |= changes.items[i].kind == AN_CHANGE_BITS;
    }
    status = r->notes.status;
fail:
    an_config_changes_destroy(&changes);
    return status;
}

/* A file that has gone since the manifest was read makes the checkpoint one that is skipped: a run that is under
 * way may have removed it. */
static an_status read_text(const an_resume *r, int64_t file, const char *path, char **text, size_t *bytes) {
    an_context *ctx = r->ctx;
    char message[AN_MESSAGE_BYTES];
    AN_TRY_RETURN(an_checkpoint_check_file(ctx, &r->manifest->files[file], r->path));
    const an_status status = an_file_read(ctx, path, AN_CONFIG_MOST_BYTES, text, bytes);
    if (status != AN_ERR_FILE) return status;
    snprintf(message, sizeof message, "%s", ctx->error.message);
    return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s", message);
}

/* Rank 0 reads a file of the checkpoint. *text stays NULL if there is none; the caller releases
 * *bytes + 1 bytes. Collective. */
static an_status share_text(const an_resume *r, const char *name, char path[AN_FILE_PATH], char **text, size_t *bytes) {
    an_status status = AN_OK;
    an_context *ctx = r->ctx;
    const int64_t file = an_manifest_find_file(r->manifest, name);
    if (file < 0) return AN_OK;
    if (!an_path_join(path, r->path, name)) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %s", r->path);
    if (an_context_rank(ctx) == 0) status = read_text(r, file, path, text, bytes);
    return an_share_bytes(ctx, status, text, bytes);
}

static an_status share_encoding(an_resume *r) {
    an_status status;
    an_context *ctx = r->ctx;
    char path[AN_FILE_PATH], *text = NULL;
    size_t bytes = 0;
    AN_TRY(share_text(r, "encoding.json", path, &text, &bytes));
    if (text) AN_TRY(an_encoding_parse(&r->encoding, ctx, text, bytes));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&text, bytes + 1, 1);
    return status;
}

static an_status share_config(an_resume *r) {
    an_status status = AN_OK;
    an_context *ctx = r->ctx;
    char path[AN_FILE_PATH], *text = NULL;
    size_t bytes = 0;
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    AN_TRY(share_text(r, "config.yaml", path, &text, &bytes));
    if (!text) return AN_OK;
    options.file = path;
    options.text = text;
    options.length = bytes;
    options.stored = true;
    AN_TRY(an_config_create(&r->before, ctx, &options));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&text, bytes + 1, 1);
    return status;
}

/* What needs no checkpoint. */
static an_status begin(an_resume **resume, an_context *ctx, an_config *config, const char *checkpoint,
                       const an_open_options *options) {
    AN_TRY_RETURN(an_alloc(ctx, (void **)resume, 1, sizeof **resume));
    an_resume *r = *resume;
    *r = (an_resume){.ctx = ctx, .config = config};
    an_text_init(&r->notes, ctx);
    AN_TRY_RETURN(an_open_options_read(ctx, &r->options, options));
    if ((unsigned)r->options.extend > AN_EXTEND_STRETCH)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "extend is %d, which is not a value of an_extend",
                        (int)r->options.extend);
    if (snprintf(r->path, sizeof r->path, "%s", checkpoint) >= AN_FILE_PATH)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", checkpoint);
    r->allows_new_bits = config->settings->run.allow_new_bits || r->options.new_bits;
    return AN_OK;
}

/* A checkpoint of the new run itself is resumed. Rank 0 says which it is, as others may not see the folders.
 * Collective. */
static an_status choose_restart(an_resume *r) {
    an_context *ctx = r->ctx;
    int64_t restarts = r->options.restart == AN_RESTART_SCHEDULE &&
                       !an_origin_is(r->manifest, r->options.resume ? r->options.resume : "");
    AN_TRY_RETURN(an_ranks_broadcast(ctx, &restarts, 1, AN_DTYPE_I64, 0));
    r->restarts = restarts != 0;
    return AN_OK;
}

an_status an_resume_create(an_resume **resume, an_context *ctx, an_config *config, const char *checkpoint,
                           const an_open_options *options) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, resume, config, checkpoint, options);
    an_status status;
    an_resume *r = NULL;
    *resume = NULL;
    AN_TRY(an_ranks_agree(ctx, begin(&r, ctx, config, checkpoint, options)));
    AN_TRY(an_manifest_share(&r->manifest, ctx, r->path));
    AN_TRY(an_ranks_agree(ctx, an_load_check_known(ctx, r->manifest, r->path)));
    AN_TRY(choose_restart(r));
    if (r->restarts) AN_TRY(share_encoding(r));
    AN_TRY(share_config(r));
    if (r->before) AN_TRY(compare(r));
    *resume = r;
    return AN_OK;
fail:
    an_resume_destroy(&r);
    return status;
}

void an_resume_destroy(an_resume **resume) {
    an_resume *r = resume ? *resume : NULL;
    if (!r) return;
    if (r->root) {
        r->config->root = r->root;
        r->config->settings = r->settings;
    }
    an_manifest_destroy(&r->manifest);
    an_config_destroy(&r->before);
    an_encoding_destroy(&r->encoding);
    an_text_destroy(&r->notes);
    an_release(r->ctx, (void **)resume, 1, sizeof *r);
}

int64_t an_resume_leaves(const an_resume *resume) {
    AN_NEED_OR(0, resume);
    return resume->restarts ? 0 : resume->manifest->bits.leaves;
}

/* ---- the length ---- */

typedef struct {
    an_schedule *schedule;
    double rate;
} shape;

/* The first step from now on at which the two differ; -1: they never do. O(steps that are left), a few nanoseconds
 * each. */
static int64_t find_difference(const shape *a, const shape *b, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++)
        if (an_schedule_factor(a->schedule, i) != an_schedule_factor(b->schedule, i) ||
            an_schedule_momentum(a->schedule, i) != an_schedule_momentum(b->schedule, i))
            return i;
    return -1;
}

static an_status say_extension(an_resume *r, const shape *kept, const shape *stretched, int64_t steps) {
    const an_progress *p = &r->manifest->progress;
    const int64_t now = p->schedule_step;
    const double before = kept->rate * an_schedule_factor(kept->schedule, now > 0 ? now - 1 : 0);
    const double keep = kept->rate * an_schedule_factor(kept->schedule, now);
    const double stretch = stretched->rate * an_schedule_factor(stretched->schedule, now);
    if (r->options.extend == AN_EXTEND_REFUSE)
        return AN_ERROR(
            r->ctx, AN_ERR_ARGUMENT,
            "%s: the run was planned for %lld steps and would now have %lld, and its schedule depends on that. The "
            "last learning rate was %.4g. Choose --extend=keep to keep the schedule and continue with a learning rate "
            "of %.4g, or --extend=stretch to compute the schedule for the new length and continue with %.4g",
            an_config_place(r->config, AN_SETTING(run)), (long long)p->steps, (long long)steps, before, keep, stretch);
    if (r->options.extend == AN_EXTEND_KEEP)
        an_text_add(&r->notes, "the schedule of %lld steps is kept: the learning rate continues at %.4g\n",
                    (long long)p->schedule_steps, keep);
    else
        an_text_add(&r->notes, "the schedule is stretched to %lld steps: the learning rate changes from %.4g to %.4g\n",
                    (long long)steps, before, stretch);
    return r->notes.status;
}

/* Whether a schedule depends on the length is seen by its effect: percentages, decays from the end and parts of
 * sequences are all in it. */
an_status an_resume_schedule_steps(an_resume *resume, an_schedule_maker make, void *user, int64_t steps,
                                   int64_t *schedule_steps) {
    enum { FEW = 100000 };
    AN_GUARD;
    AN_NEED(resume, schedule_steps);
    an_status status;
    an_resume *r = resume;
    an_context *ctx = r->ctx;
    const an_progress *p = &r->manifest->progress;
    shape kept = {0}, stretched = {0};
    AN_CHECK(ctx, make, AN_ERR_ARGUMENT, "an_resume_schedule_steps: make is NULL");
    *schedule_steps = r->restarts ? steps : p->schedule_steps;
    if (r->restarts) return AN_OK;
    AN_CHECK(ctx, steps >= p->step, AN_ERR_ARGUMENT,
             "%s: the run has already taken %lld steps, so its length cannot be %lld",
             an_config_place(r->config, AN_SETTING(run)), (long long)p->step, (long long)steps);
    if (steps != p->steps) {
        AN_TRY(make(user, p->schedule_steps, &kept.schedule, &kept.rate));
        AN_TRY(make(user, steps, &stretched.schedule, &stretched.rate));
        /* A run without end goes on for ever: what differs does so soon after the old end. */
        const int64_t end = steps < INT64_MAX ? steps : p->steps < INT64_MAX - FEW ? p->steps + FEW : INT64_MAX;
        const bool differs = find_difference(&kept, &stretched, p->schedule_step, end) >= 0;
        if (differs) AN_TRY(say_extension(r, &kept, &stretched, steps));
        if (!differs || r->options.extend == AN_EXTEND_STRETCH) *schedule_steps = steps;
    }
    status = AN_OK;
fail:
    an_schedule_destroy(&kept.schedule);
    an_schedule_destroy(&stretched.schedule);
    return status;
}

/* ---- the rest ---- */

/* "0.2" of "0.2.1": a patch of a version has its bits. */
typedef struct {
    char text[AN_BITS_TEXT];
} minor_version;

static minor_version minor_of(const char *version) {
    minor_version minor;
    const size_t major = strcspn(version, "."), rest = version[major] ? strcspn(version + major + 1, ".") + 1 : 0;
    snprintf(minor.text, sizeof minor.text, "%.*s", (int)(major + rest), version);
    return minor;
}

static an_status check_bits(an_resume *r, an_trainer *t) {
    an_bits now;
    const an_bits *then = &r->manifest->bits;
    an_bits_get(t, &now);
    const minor_version old_minor = minor_of(then->anneal), new_minor = minor_of(now.anneal);
    const char *kernels_then = an_kernel_lists_agree(then->kernels, now.kernels) ? now.kernels : then->kernels;
    const struct {
        const char *what, *then, *now;
    } rows[] = {
        {"instructions", then->isa, now.isa},
        {"oneDNN", then->onednn, now.onednn},
        {"precision", then->precision, now.precision},
        {"anneal", old_minor.text, new_minor.text},
        {"kernels", *kernels_then ? kernels_then : "chosen by default",
         *now.kernels ? now.kernels : "chosen by default"},
        {"kernels with the fingerprint", *then->fingerprint ? then->fingerprint : now.fingerprint, now.fingerprint}};
    if (then->leaves != now.leaves)
        return AN_ERROR(r->ctx, AN_ERR_UNSUPPORTED,
                        "%s: the run divides each step into %lld leaves, but here it would be %lld; the order of sums, "
                        "and so the results, would differ. Set batch.leaves to %lld, or start a new run with --fresh",
                        r->path, (long long)then->leaves, (long long)now.leaves, (long long)then->leaves);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!strcmp(rows[i].then, rows[i].now)) continue;
        if (!r->allows_new_bits)
            return AN_ERROR(r->ctx, AN_ERR_UNSUPPORTED,
                            "%s: the run has used %s %s until now, but here it would be %s, so results would no longer "
                            "be bit-identical; to resume anyway, add --allow-new-bits or set run.allow_new_bits to on",
                            r->path, rows[i].what, rows[i].then, rows[i].now);
        an_text_add(&r->notes, "%s: %s now, %s before; from here on, results may differ in the last bits\n",
                    rows[i].what, rows[i].now, rows[i].then);
        r->has_new_bits = true;
    }
    t->record.bits_since = r->has_new_bits ? r->manifest->step : then->since;
    return r->notes.status;
}

static an_status check_data(const an_resume *r, const an_trainer *t) {
    if (!memcmp(r->manifest->data, t->record.fingerprint, sizeof t->record.fingerprint)) return AN_OK;
    return AN_ERROR(r->ctx, AN_ERR_ARGUMENT,
                    "%s: the data is not the data that this run was trained on: the number of samples differs, or the "
                    "first, middle or last sample does, or a table has other names of classes or categories. Use the "
                    "same files, or start a new run with --fresh",
                    an_config_place(r->config, AN_SETTING(data)));
}

/* Metrics of classes belong to the state's hash where a run has them. */
static void say_details(an_resume *r, const an_trainer *t) {
    const an_evaluation *e = &r->manifest->progress.evaluation;
    if (e->counts_classes != (t->evaluator.details.classes > 0))
        an_text_add(&r->notes, "precision, recall and F1 are %s: state_hash will not be that of an uninterrupted run\n",
                    e->counts_classes ? "no longer computed" : "computed from now on");
    if (r->manifest->progress.chains_right != an_metrics_chain_right(t))
        an_text_add(&r->notes, "val_accuracy is %s of state_hash, which will not be that of an uninterrupted run\n",
                    an_metrics_chain_right(t) ? "part" : "no longer part");
    if (e->scores_classes != t->evaluator.keeps_scores)
        an_text_add(&r->notes, "val_auc is %s: state_hash will not be that of an uninterrupted run\n",
                    e->scores_classes ? "no longer computed" : "computed from now on");
}

/* Metrics of the program belong to what the state's hash is made of: a program that has others goes on, and is told. */
static an_status say_metrics(an_resume *r, const an_trainer *t) {
    const an_progress *p = &r->manifest->progress;
    if (p->evaluated >= 0) say_details(r, t);
    bool same = p->own.count == t->evaluator.own_metric_count;
    for (int64_t i = 0; same && i < p->own.count; i++) same = an_own_metric_find(t, p->own.items[i].name) == i;
    if (same || p->evaluated < 0) return AN_OK;
    an_text_add(&r->notes, "the program's own metrics were");
    for (int64_t i = 0; i < p->own.count; i++) an_text_add(&r->notes, " %s", p->own.items[i].name);
    an_text_add(&r->notes, "%s, and now are", p->own.count ? "" : " none");
    for (int i = 0; i < t->evaluator.own_metric_count; i++)
        an_text_add(&r->notes, " %s", an_own_metric_at(t, i)->reported);
    an_text_add(&r->notes, "%s: state_hash will not be that of an uninterrupted run\n",
                t->evaluator.own_metric_count ? "" : " none");
    return r->notes.status;
}

static bool is_own(const an_trainer *t, const char *path) {
    char own[AN_FILE_PATH];
    return t->run->folder && an_path_join(own, t->run->folder, AN_CHECKPOINTS) && !strncmp(path, own, strlen(own)) &&
           path[strlen(own)] == '/';
}

static an_status begin_apply(const an_resume *r, an_trainer *t) {
    an_context *ctx = r->ctx;
    if (t->planned || t->next > 0)
        return AN_ERROR(ctx, AN_ERR_STATE, "a checkpoint can only be loaded before the first step");
    AN_TRY_RETURN(an_run_attach(t));
    return an_fingerprint_make(t);
}

/* What this rank can find wrong before the ranks read the checkpoint together. */
static an_status check_apply(an_resume *r, an_trainer *t) {
    AN_TRY_RETURN(check_bits(r, t));
    AN_TRY_RETURN(check_data(r, t));
    AN_TRY_RETURN(an_load_check_base(t, r->manifest, r->path));
    AN_TRY_RETURN(an_load_check_optimizer(t, r->manifest, r->path));
    AN_TRY_RETURN(an_load_check_average(t, r->manifest, r->path));
    return say_metrics(r, t);
}

/* The numbers of a model mean what its table said. Other data is no other run: there is a new one. */
static an_status check_restart(an_resume *r, an_trainer *t) {
    an_context *ctx = r->ctx;
    const an_encoding *now = t->samples.data ? an_dataset_encoding(t->samples.data) : NULL;
    if (now && an_encoding_is_plain(now)) now = NULL;
    if (now && r->encoding ? !an_encoding_agrees(now, r->encoding) : now || r->encoding)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: the columns, categories or classes of the data are not those that the model of %s was trained "
            "with, so its weights would mean something else. Use data with the same ones, or start a new run "
            "with --fresh",
            an_config_place(r->config, AN_SETTING(data)), r->path);
    AN_TRY_RETURN(an_load_check_base(t, r->manifest, r->path));
    AN_TRY_RETURN(an_load_check_optimizer(t, r->manifest, r->path));
    AN_TRY_RETURN(an_load_check_average(t, r->manifest, r->path));
    if (memcmp(r->manifest->data, t->record.fingerprint, sizeof t->record.fingerprint) != 0)
        an_text_add(&r->notes, "the data is not that of the checkpoint\n");
    return r->notes.status;
}

static an_status keep_notes(const an_resume *r, an_trainer *t) {
    if (r->restarts)
        AN_TRY_RETURN(an_origin_begin(t, r->manifest, r->path));
    else
        AN_TRY_RETURN(an_origin_continue(t, r->manifest));
    if (!r->restarts) AN_TRY_RETURN(an_trainer_keep_text(t, &t->run->resumed, r->path));
    return r->notes.length ? an_trainer_add_note(t, r->notes.bytes) : AN_OK;
}

an_status an_resume_apply(an_resume *resume, an_trainer *trainer) {
    AN_GUARD;
    AN_NEED(resume, trainer);
    an_resume *r = resume;
    an_trainer *t = trainer;
    an_context *ctx = r->ctx;
    an_status status = begin_apply(r, t);
    const size_t before = ctx->bytes;
    if (status == AN_OK) status = r->restarts ? check_restart(r, t) : check_apply(r, t);
    AN_TRY_RETURN(an_ranks_agree(ctx, status));
    AN_TRY_RETURN(r->restarts ? an_load_restart(t, r->manifest, r->path) : an_load(t, r->manifest, r->path));
    if (!r->restarts && is_own(t, r->path)) {
        t->run->saved = t->next;
        t->run->saved_chain = t->record.chain[0];
    }
    AN_TRY_RETURN(an_ranks_agree(ctx, keep_notes(r, t)));
    r->root = NULL; /* the config is what the run has */
    return an_plan_count_trainer(t->plan, ctx->bytes - before);
}
