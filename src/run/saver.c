#include "run/saver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

#include "anneal/ranks.h"
#include "base/heartbeat.h"
#include "base/isa.h"
#include "base/span.h"
#include "base/system/clock.h"
#include "data/tables/encoding.h"
#include "run/origin.h"
#include "store/stream.h"

/* ---- what is there ---- */

/* Those that are there as far as their manifests and the lengths of their files tell; others are neither counted nor
 * removed. What is in the files would take as long to look at as to load. */
static an_status find_known(an_saver *s) {
    an_status status;
    an_context *ctx = s->ctx;
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    AN_TRY(an_checkpoints_list(ctx, s->checkpoints, &places, &count, &capacity));
    for (size_t i = 0; i < count; i++) {
        char path[AN_FILE_PATH];
        an_manifest *manifest = NULL;
        if (!an_path_join(path, s->checkpoints, places[i].name) || an_manifest_read(&manifest, ctx, path) != AN_OK)
            continue;
        const bool kept = manifest->kept;
        an_manifest_destroy(&manifest);
        AN_TRY(an_grow(ctx, (void **)&s->known, &s->known_capacity, s->known_count + 1, sizeof *s->known));
        s->known[s->known_count++] = (an_known){.place = places[i], .kept = kept};
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    return status;
}

static void find_best(an_saver *s) {
    char path[AN_FILE_PATH], target[AN_FILE_PATH];
    an_checkpoint_kind kind;
    an_checkpoint_place place;
    if (!an_path_join(path, s->folder, "best")) return;
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0) return; /* there is none */
    target[length] = 0;
    const char *slash = strrchr(target, '/');
    if (slash && an_checkpoint_parse(slash + 1, &kind, &place)) memcpy(s->best, place.name, sizeof s->best);
}

/* A launch that ended between a save and its link left the link behind. */
static void mend_best(an_saver *s) {
    char text[AN_SAVE_NOTE];
    const an_note note = {text, sizeof text};
    const an_progress *p = &s->trainer->record.progress;
    for (size_t i = s->known_count; p->has_best && i-- > 0;) {
        const an_checkpoint_place *place = &s->known[i].place;
        if (place->step != p->best_step || s->known[i].kept) continue;
        if (strcmp(place->name, s->best) != 0 && an_save_link_best(s->folder, place->name, note) == AN_OK)
            memcpy(s->best, place->name, sizeof s->best);
        return;
    }
}

/* ---- making one ---- */

/* Of the files that this rank writes. */
static an_status make_image(an_saver *s) {
    an_context *ctx = s->ctx;
    an_save_job *job = &s->job;
    const an_trainer *t = s->trainer;
    const an_params_pieces *pieces = &t->params->pieces;
    const an_route_options options = {.ranks = t->ranks,
                                      .rank = t->rank,
                                      .shards = pieces->sharding == AN_SHARD_NONE ? NULL : pieces->shards,
                                      .way = AN_ROUTE_SAVE,
                                      .chunk = t->saving.directly ? AN_SAVE_WINDOW : AN_SAVE_CHUNK};
    AN_TRY_RETURN(an_route_create(&s->route, job->layout, &options));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&job->hashes, job->layout->file_count, sizeof *job->hashes));
    job->files = s->route->files;
    if (t->saving.directly) {
        job->params = t->params;
        job->route = s->route;
    }
    s->memory_bytes = t->saving.directly ? an_save_window_bytes(job->layout, job->files, AN_SAVE_WINDOW)
                                         : an_save_image_bytes(job->layout, job->files);
    if (s->memory_bytes == 0) return AN_OK; /* it writes none */
    AN_TRY_RETURN(an_alloc_raw(ctx, &s->memory, s->memory_bytes));
    job->image = (char *)an_round_up((uintptr_t)s->memory, AN_SAVE_ALIGNMENT);
    if (t->saving.directly) return AN_OK;
    char *at = job->image;
    for (size_t i = job->files.begin; i < job->files.end; i++) {
        const an_saved_file *f = &job->layout->files[i];
        const size_t whole = an_round_up(f->bytes, AN_SAVE_ALIGNMENT);
        memcpy(at, f->header, f->header_bytes);
        memset(at + f->bytes, 0, whole - f->bytes); /* written, and cut off again */
        at += whole;
    }
    return AN_OK;
}

static an_status check_layout(const an_saver *s) {
    const an_params *p = s->trainer->params;
    for (size_t i = 0; i < s->job.layout->tensor_count; i++) {
        const an_saved_tensor *t = &s->job.layout->tensors[i];
        if (t->entry >= p->entry_count || t->elements != p->entries[t->entry].elements ||
            t->dtype != p->entries[t->entry].dtype ||
            (t->part != AN_PART_WEIGHT && !an_kept_has(an_params_kept(p), t->part)) ||
            (t->grid >= 0 && t->grid * (int64_t)an_dtype_size(t->dtype) != p->entries[t->entry].offset))
            return AN_ERROR(s->ctx, AN_ERR_STATE, "the parameters do not match the graph: '%s'", t->name);
    }
    return AN_OK;
}

static an_status copy_text(an_context *ctx, char **copy, const char *text) {
    const size_t bytes = strlen(text) + 1;
    AN_TRY_RETURN(an_alloc(ctx, (void **)copy, bytes, 1));
    memcpy(*copy, text, bytes);
    return AN_OK;
}

/* Where rank 0 writes, and so all do. A fast folder serves many runs: each has one of its own in it, named
 * after the run's whole path. */
static an_status choose_folders(an_saver *s, const an_saver_options *options) {
    if (snprintf(s->folder, sizeof s->folder, "%s", options->folder) >= (int)sizeof s->folder ||
        !an_path_join(s->checkpoints, s->folder, AN_CHECKPOINTS))
        return AN_ERROR(s->ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", options->folder);
    if (options->stage && !an_stage_path(s->stage, options->stage, s->folder)) *s->stage = 0;
    return AN_OK;
}

bool an_stage_path(char path[AN_FILE_PATH], const char *stage, const char *folder) {
    char whole[AN_FILE_PATH], working[AN_FILE_PATH] = "";
    if (*folder != '/' && !getcwd(working, sizeof working)) return false;
    if (snprintf(whole, sizeof whole, "%s/%s", working, folder) >= (int)sizeof whole) return false;
    const XXH64_hash_t hash = XXH3_64bits(whole, strlen(whole));
    return snprintf(path, AN_FILE_PATH, "%s/anneal-%016llx", stage, (unsigned long long)hash) < AN_FILE_PATH;
}

/* What the checkpoint has beside the state, and what is there already. */
static an_status prepare_first(an_saver *s, const an_saver_options *options) {
    an_context *ctx = s->ctx;
    AN_TRY_RETURN(choose_folders(s, options));
    s->job.extras[AN_SAVE_CONFIG].name = "config.yaml";
    s->job.extras[AN_SAVE_ENCODING].name = "encoding.json";
    s->job.extras[AN_SAVE_GRAPH].name = "graph.ang";
    s->job.extras[AN_SAVE_METRICS].name = "metrics.json";
    if (options->config) AN_TRY_RETURN(copy_text(ctx, &s->job.extras[AN_SAVE_CONFIG].text, options->config));
    const an_encoding *encoding = s->trainer->samples.data ? an_dataset_encoding(s->trainer->samples.data) : NULL;
    if (encoding && !an_encoding_is_plain(encoding))
        AN_TRY_RETURN(an_encoding_write(encoding, &s->job.extras[AN_SAVE_ENCODING].text));
    AN_TRY_RETURN(an_graph_print(s->trainer->graph, &s->job.extras[AN_SAVE_GRAPH].text));
    AN_TRY_RETURN(find_known(s));
    find_best(s);
    mend_best(s);
    return AN_OK;
}

an_status an_saver_create(an_saver **saver, an_trainer *trainer, const an_saver_options *options) {
    an_status status;
    an_context *ctx = trainer->ctx;
    an_saver *s = NULL;
    *saver = NULL;
    AN_TRY(an_alloc(ctx, (void **)&s, 1, sizeof *s));
    s->ctx = ctx;
    s->trainer = trainer;
    s->keep_last = options->keep_last;
    s->keep_every = options->keep_every;
    s->keep_named = options->keep_named;
    s->job.ctx = ctx;
    s->job.folder = s->folder;
    s->job.generation = options->generation;
    AN_TRY(
        an_save_layout_create(&s->job.layout, ctx, trainer->graph, an_params_kept(trainer->params), options->writers));
    AN_TRY(check_layout(s));
    AN_TRY(make_image(s));
    s->phases = (an_save_phases){.trainer = trainer, .job = &s->job, .route = s->route};
    if (trainer->rank == 0) AN_TRY(prepare_first(s, options));
    *saver = s;
    return AN_OK;
fail:
    an_saver_destroy(&s);
    return status;
}

void an_saver_destroy(an_saver **saver) {
    an_saver *s = saver ? *saver : NULL;
    if (!s) return;
    an_context *ctx = s->ctx;
    if (s->trainer->ranks == 1)
        an_saver_wait(s);
    else
        an_save_phases_leave(&s->phases);
    for (int i = 0; i < AN_SAVE_EXTRAS; i++) an_string_release(ctx, &s->job.extras[i].text);
    an_release(ctx, (void **)&s->job.removals, s->removal_capacity, sizeof *s->job.removals);
    an_release(ctx, (void **)&s->known, s->known_capacity, sizeof *s->known);
    an_release(ctx, &s->memory, s->memory_bytes, 1);
    if (s->job.layout) /* without one there are no hashes */
        an_release(ctx, (void **)&s->job.hashes, s->job.layout->file_count, sizeof *s->job.hashes);
    an_route_destroy(&s->route);
    an_save_layout_destroy(&s->job.layout);
    an_release(ctx, (void **)saver, 1, sizeof *s);
}

/* ---- the copy ---- */

static an_status copy_state(an_saver *s) {
    an_context *ctx = s->ctx;
    const double begin = an_clock_seconds();
    AN_TRY_RETURN(an_save_copy(ctx, s->job.layout, s->trainer->params, s->route, s->job.image));
    s->copy_seconds = an_clock_seconds() - begin;
    return AN_OK;
}

/* ---- the manifest ---- */

static void add_extra(an_manifest_text *m, const an_save_extra *extra) {
    if (!extra->text) return;
    const XXH128_hash_t hash = XXH3_128bits(extra->text, strlen(extra->text));
    an_manifest_add_file(m, extra->name, (int64_t)strlen(extra->text), (const uint64_t[]){hash.low64, hash.high64});
}

/* Files are sorted by name: those of text come before the parts. */
static an_status make_manifest(an_saver *s, const an_manifest *head) {
    an_save_job *job = &s->job;
    an_manifest_text *m = &job->manifest;
    an_manifest_begin(m, s->ctx, head);
    for (int i = 0; i < AN_SAVE_EXTRAS; i++) add_extra(m, &job->extras[i]);
    job->first_part = an_save_layout_describe(job->layout, m);
    return an_manifest_end(m);
}

/* ---- what may go ---- */

static bool has_user_step(const an_known *k, const int64_t *user_step) {
    return user_step && k->kept && k->place.named && k->place.user_step == *user_step;
}

/* Whether a later save, or the one that is asked for, has the same user step: a crash while one
 * replaces another leaves both. */
static bool is_replaced(const an_saver *s, size_t index, const an_save_request *request) {
    const an_known *k = &s->known[index];
    bool replaced = has_user_step(k, request->user_step);
    for (size_t i = index + 1; k->place.named && i < s->known_count && !replaced; i++)
        replaced = has_user_step(&s->known[i], &k->place.user_step);
    return replaced;
}

/* A save at a user step stays while its user step is among the newest `keep_named`, and nothing replaces it. */
static bool named_stays(const an_saver *s, size_t index, const an_save_request *request) {
    int64_t newer = request->user_step != NULL;
    if (has_user_step(&s->known[index], request->user_step)) return false;
    for (size_t i = index + 1; i < s->known_count; i++) newer += s->known[i].kept && !is_replaced(s, i, request);
    return s->keep_named == 0 || newer < s->keep_named;
}

static bool stays(const an_saver *s, size_t index, const an_save_request *request) {
    const an_known *k = &s->known[index];
    if (!request->best && !strcmp(k->place.name, s->best)) return true;
    if (k->kept) return named_stays(s, index, request);
    /* The new one is the last of `keep_last`. */
    if (s->keep_last == 0 || (int64_t)(s->known_count - index) < s->keep_last) return true;
    return an_interval_ends(&s->keep_every, &s->trainer->samples.batches, k->place.step);
}

const an_checkpoint_place *an_saver_find(const an_saver *s, int64_t user_step) {
    for (size_t i = s->known_count; i-- > 0;)
        if (s->known[i].kept && s->known[i].place.named && s->known[i].place.user_step == user_step)
            return &s->known[i].place;
    return NULL;
}

static an_status choose_removals(an_saver *s, const an_save_request *request) {
    an_context *ctx = s->ctx;
    an_save_job *job = &s->job;
    job->removal_count = 0;
    AN_TRY_RETURN(
        an_grow(ctx, (void **)&job->removals, &s->removal_capacity, s->known_count + 1, sizeof *job->removals));
    AN_TRY_RETURN(an_grow(ctx, (void **)&s->known, &s->known_capacity, s->known_count + 1, sizeof *s->known));
    for (size_t i = 0; i < s->known_count; i++)
        if (!stays(s, i, request)) job->removals[job->removal_count++] = s->known[i].place;
    return AN_OK;
}

/* ---- one save ---- */

/* What rank 0 puts into it, and under which name. */
static an_status describe(an_saver *s, const an_save_request *request) {
    an_context *ctx = s->ctx;
    an_trainer *t = s->trainer;
    an_save_job *job = &s->job;
    an_manifest head = {.step = t->next, .generation = job->generation, .kept = request->user_step != NULL};
    an_progress_capture(t, &head.progress);
    if (request->user_step) {
        head.progress.has_user_step = true;
        head.progress.user_step = *request->user_step;
    }
    an_bits_get(t, &head.bits);
    an_prediction_get(t, &head.prediction);
    head.origin = an_origin_of(t);
    AN_TRY_RETURN(an_adapter_get(t, &head.adapter));
    snprintf(head.optimizer.name, sizeof head.optimizer.name, "%s", t->optimizer->record->name);
    head.optimizer.version = t->optimizer->record->version;
    memcpy(head.data, t->record.fingerprint, sizeof head.data);
    an_string_release(ctx, &job->extras[AN_SAVE_METRICS].text);
    AN_TRY_RETURN(an_trainer_metrics_text(t, &job->extras[AN_SAVE_METRICS].text));
    job->place = (an_checkpoint_place){.step = t->next,
                                       .generation = job->generation,
                                       .named = head.kept,
                                       .user_step = request->user_step ? *request->user_step : 0};
    an_checkpoint_name(job->place.name, AN_CHECKPOINT_FINISHED, t->next, job->generation, request->user_step);
    if (!an_path_join(s->path, s->checkpoints, job->place.name))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the path is too long: %.100s…", s->folder);
    AN_TRY_RETURN(make_manifest(s, &head));
    AN_TRY_RETURN(choose_removals(s, request));
    job->best = request->best;
    job->is_linked = false;
    memcpy(job->linked, s->best, sizeof job->linked);
    s->kept = head.kept;
    return AN_OK;
}

/* Other ranks learn where it is from rank 0, and look at nothing there. */
static an_status share_place(an_saver *s) {
    an_context *ctx = s->ctx;
    an_save_job *job = &s->job;
    if (s->trainer->ranks > 1) {
        AN_TRY_RETURN(an_ranks_broadcast(ctx, s->folder, sizeof s->folder, AN_DTYPE_U8, 0));
        AN_TRY_RETURN(an_ranks_broadcast(ctx, s->stage, sizeof s->stage, AN_DTYPE_U8, 0));
        AN_TRY_RETURN(an_ranks_broadcast(ctx, &job->place, sizeof job->place, AN_DTYPE_U8, 0));
    }
    job->stage = *s->stage ? s->stage : NULL;
    return AN_OK;
}

an_status an_saver_start(an_saver *s, an_status status, const an_save_request *request) {
    an_context *ctx = s->ctx;
    an_save_job *job = &s->job;
    const double begin = an_span_begin(ctx);
    an_heartbeat_enter(ctx, AN_HEARTBEAT_SAVE, job->params ? "save: writes the state" : "save: copies the state");
    if (status == AN_OK && s->trainer->rank == 0) status = describe(s, request);
    AN_TRY(an_save_agree(s->trainer, status));
    AN_TRY(share_place(s));
    if (!job->params) AN_TRY(copy_state(s));
    job->hashed = job->safe = false;
    job->begin = an_clock_seconds();
    job->cpu_seconds = 0;
    /* What training waits for: the copy, which a thread then writes, or all of it. */
    if (!job->params) an_span_end(ctx, "save", s->trainer->next, begin);
    an_save_phases_start(&s->phases);
    if (!job->params) return AN_OK;
    s->copy_seconds = an_clock_seconds() - job->begin;
    an_span_end(ctx, "save", s->trainer->next, begin);
    return AN_OK;
fail:
    an_manifest_text_destroy(&job->manifest);
    return status;
}

/* Takes the result of a save over into what is known. */
static void settle(an_saver *s) {
    const an_save_job *job = &s->job;
    char path[AN_FILE_PATH];
    if (!job->safe) return;
    for (size_t i = 0; i < job->removal_count; i++)
        for (size_t k = 0; k < s->known_count; k++) {
            if (strcmp(s->known[k].place.name, job->removals[i].name) != 0 ||
                (an_path_join(path, s->checkpoints, job->removals[i].name) && access(path, F_OK) == 0))
                continue;
            memmove(&s->known[k], &s->known[k + 1], (--s->known_count - k) * sizeof *s->known);
            break;
        }
    s->known[s->known_count++] = (an_known){.place = job->place, .kept = s->kept};
    if (job->is_linked) memcpy(s->best, job->place.name, sizeof s->best);
}

bool an_saver_is_saving(const an_saver *s) {
    return s->phases.phase != 0;
}

int64_t an_saver_count(const an_saver *s) {
    return an_save_phases_count(&s->phases);
}

static an_status end(an_saver *s) {
    settle(s);
    an_manifest_text_destroy(&s->job.manifest);
    return an_note_raise(s->ctx, s->phases.status, (an_note){s->phases.message, sizeof s->phases.message});
}

bool an_saver_poll(an_saver *s, int64_t agreed, an_status *status) {
    if (!an_saver_is_saving(s) || agreed <= s->phases.ended || !an_save_phases_next(&s->phases)) return false;
    *status = end(s);
    return true;
}

an_status an_saver_wait(an_saver *s) {
    if (!an_saver_is_saving(s)) return AN_OK;
    while (!an_save_phases_next(&s->phases)) {
    }
    return end(s);
}
