#include "run/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anneal/checkpoint.h"
#include "anneal/config.h"
#include "anneal/ranks.h"
#include "base/guard.h"
#include "base/options/settings.h"
#include "base/system/clock.h"
#include "interchange/publish.h"
#include "run/run.h"
#include "run/structs.h"
#include "store/launch.h"
#include "store/places.h"

enum { MOST_FRESH = 10000, NAME_BYTES = 256, NOTE_BYTES = 1024 };

/* ---- what is there ---- */

static bool exists(const char *folder, const char *name) {
    char path[AN_FILE_PATH];
    struct stat found;
    return an_path_join(path, folder, name) && stat(path, &found) == 0;
}

/* The end of a run is written last, in one piece: whoever finds it finds all of it. */
an_status an_folder_look(an_context *ctx, const char *path, an_folder_state *state) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, path, state);
    an_status status;
    char file[AN_FILE_PATH], text[NAME_BYTES] = "", message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_CHECK(ctx, an_path_join(file, path, "outcome.json"), AN_ERR_ARGUMENT,
             "the path of the run folder is too long: %.100s…", path);
    *state = exists(path, "metrics.jsonl") || exists(path, AN_CHECKPOINTS) ? AN_FOLDER_UNFINISHED : AN_FOLDER_EMPTY;
    if (!exists(path, "outcome.json")) return AN_OK;
    int opened;
    AN_TRY(an_note_raise(ctx, an_file_open(&opened, file, O_RDONLY, note), note));
    ssize_t length;
    do length = read(opened, text, sizeof text - 1);
    while (length < 0 && errno == EINTR);
    const int reason = errno;
    close(opened);
    AN_CHECK(ctx, length >= 0, AN_ERR_FILE, "%s: cannot be read: %s", file, strerror(reason));
    if (length > 0 && (strstr(text, "\"end\": \"done\"") || strstr(text, "\"end\": \"stopped early\"")))
        *state = AN_FOLDER_FINISHED;
    return AN_OK;
fail:
    return status;
}

an_status an_folder_check_free(an_context *ctx, const char *path) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, path);
    return an_launch_check_free(ctx, path);
}

/* The first of path, path-2, path-3, … that has no run in it. */
static an_status choose_fresh(an_folder *f, const char *path) {
    an_context *ctx = f->ctx;
    for (int number = 1; number < MOST_FRESH; number++) {
        an_folder_state state;
        char suffix[16] = "";
        if (number > 1) snprintf(suffix, sizeof suffix, "-%d", number);
        if (snprintf(f->path, sizeof f->path, "%s%s", path, suffix) >= (int)sizeof f->path) break;
        AN_TRY_RETURN(an_folder_look(ctx, f->path, &state));
        if (state == AN_FOLDER_EMPTY) return AN_OK;
    }
    return AN_ERROR(ctx, AN_ERR_FILE, "%s: there are too many runs beside it, or its path is too long", path);
}

/* ---- making one ---- */

static an_status open_log(an_folder *f) {
    an_context *ctx = f->ctx;
    char path[AN_FILE_PATH], message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    AN_TRY_RETURN(an_folder_join(f, "log.txt", path));
    AN_TRY_RETURN(an_note_raise(ctx, an_file_open(&f->log, path, O_WRONLY | O_CREAT | O_APPEND, note), note));
    return AN_OK;
}

static an_status write_config(const an_folder *f, const an_config *config) {
    an_status status;
    an_context *ctx = f->ctx;
    char *text = NULL;
    AN_TRY(an_config_write(config, &text));
    AN_TRY(an_folder_replace_file(f, "config.yaml", text));
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    return status;
}

static an_status choose_path(an_folder *f, an_config *config, const an_folder_options *given) {
    an_context *ctx = f->ctx;
    an_folder_options options;
    AN_TRY_RETURN(an_folder_options_read(ctx, &options, given));
    const char *path = options.path;
    if (!path) AN_TRY_RETURN(an_config_path(config, AN_SETTING(run.dir), &path));
    if (options.fresh) return choose_fresh(f, path);
    if (!*path || strlen(path) >= sizeof f->path)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "run.dir is empty or too long: '%.100s'", path);
    memcpy(f->path, path, strlen(path) + 1);
    return AN_OK;
}

/* A run that begins anew finds nothing of another one: neither a checkpoint nor the end of a run. What a launch left
 * that came to no checkpoint is of no use. */
static an_status check_empty(const an_folder *f) {
    an_context *ctx = f->ctx;
    an_folder_state state;
    an_checkpoint_place *places = NULL;
    size_t count = 0, capacity = 0;
    char path[AN_FILE_PATH];
    if (f->trainer->run->resumed) return AN_OK;
    AN_TRY_RETURN(an_folder_look(ctx, f->path, &state));
    AN_TRY_RETURN(an_folder_join(f, AN_CHECKPOINTS, path));
    AN_TRY_RETURN(an_checkpoints_list(ctx, path, &places, &count, &capacity));
    an_release(ctx, (void **)&places, capacity, sizeof *places);
    if (state == AN_FOLDER_UNFINISHED && count == 0) return an_folder_check_origin(f);
    if (state != AN_FOLDER_FINISHED && count == 0) return AN_OK;
    AN_TRY_RETURN(
        an_folder_check_free(ctx, f->path)); /* its first checkpoint may have come since this run was opened */
    return AN_ERROR(ctx, AN_ERR_FILE,
                    "%s: this folder already has a run; add --fresh to start a new one beside it (nothing is deleted), "
                    "or set run.dir to another name",
                    f->path);
}

/* The tokenizer that lies beside a file of tokens, so that the run still has it when the data has moved. */
static an_status copy_tokenizer(const an_folder *f, an_config *config) {
    static const char *const files[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                        "chat_template.jinja"};
    an_context *ctx = f->ctx;
    char from[AN_FILE_PATH], to[AN_FILE_PATH], message[NOTE_BYTES] = "";
    const an_note note = {message, sizeof message};
    const char *data = NULL;
    if (!an_config_is(config, AN_SETTING(data.train.type), "tokens")) return AN_OK;
    AN_TRY_RETURN(an_config_path(config, AN_SETTING(data.train.path), &data));
    if (snprintf(from, sizeof from, "%s.tokenizer", data) >= AN_FILE_PATH || !exists(from, files[0])) return AN_OK;
    AN_TRY_RETURN(an_folder_join(f, "tokenizer", to));
    if (exists(to, files[0])) return AN_OK; /* an earlier launch has copied it */
    AN_TRY_RETURN(an_note_raise(ctx, an_folders_make(to, note), note));
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) AN_TRY_RETURN(an_publish_copy(ctx, from, files[i], to));
    return AN_OK;
}

static void close_files(an_folder *f) {
    an_events_destroy(&f->events);
    if (f->metrics >= 0) close(f->metrics);
    if (f->log >= 0) close(f->log);
    f->metrics = f->log = -1;
}

/* Rank 0's part: everything that is written. */
static an_status begin(an_folder *f, an_config *config, const an_folder_options *options) {
    an_status status;
    an_context *ctx = f->ctx;
    an_trainer *trainer = f->trainer;
    bool is_running = false;
    AN_TRY(choose_path(f, config, options));
    AN_TRY(check_empty(f));
    AN_TRY(an_trainer_set_folder(trainer, f->path));
    AN_TRY(an_run_attach(trainer));
    AN_TRY(an_run_claim(trainer));
    AN_TRY(an_folder_write_origin(f));
    AN_TRY(an_folder_write_outcome(f, "running", trainer->next, NULL, NULL));
    is_running = true;
    AN_TRY(an_folder_open_metrics(f));
    AN_TRY(write_config(f, config));
    AN_TRY(copy_tokenizer(f, config));
    AN_TRY(open_log(f));
    if (trainer->run->log.tensorboard) AN_TRY(an_events_create(&f->events, ctx, f->path, an_clock_of_day()));
    return AN_OK;
fail:
    close_files(f); /* there may have been too many */
    if (is_running) an_folder_end_failed(f);
    return status;
}

/* The other ranks learn the name of the folder and the number of the launch, and write nothing. */
static an_status share(an_folder *f) {
    an_context *ctx = f->ctx;
    AN_TRY_RETURN(an_ranks_broadcast(ctx, f->path, sizeof f->path, AN_DTYPE_U8, 0));
    f->path[sizeof f->path - 1] = 0;
    return an_ranks_broadcast(ctx, &f->trainer->run->generation, 1, AN_DTYPE_I64, 0);
}

an_status an_folder_create(an_folder **folder, an_trainer *trainer, an_config *config,
                           const an_folder_options *options) {
    AN_GUARD;
    AN_NEED(trainer, folder, config);
    an_status status;
    an_context *ctx = trainer->ctx;
    an_folder *f = NULL;
    *folder = NULL;
    status = an_alloc(ctx, (void **)&f, 1, sizeof *f);
    if (status == AN_OK) {
        f->ctx = ctx;
        f->trainer = trainer;
        f->metrics = f->log = -1;
        f->is_silent = an_context_rank(ctx) > 0;
        f->begin = f->since = f->logged = an_clock_seconds();
        status = f->is_silent ? an_run_attach(trainer) : begin(f, config, options);
    }
    AN_TRY(an_ranks_agree(ctx, status));
    if (an_context_ranks(ctx) > 1) AN_TRY(share(f));
    *folder = f;
    return AN_OK;
fail:
    an_folder_destroy(&f);
    return status;
}

void an_folder_destroy(an_folder **folder) {
    an_folder *f = folder ? *folder : NULL;
    if (!f) return;
    an_context *ctx = f->ctx;
    close_files(f);
    an_release(ctx, (void **)folder, 1, sizeof *f);
}

const char *an_folder_path(const an_folder *folder) {
    AN_NEED_OR("", folder);
    return folder->path;
}

an_status an_folder_log(an_folder *folder, const char *line) {
    AN_GUARD;
    AN_NEED(folder, line);
    if (folder->is_silent) return AN_OK;
    AN_TRY_RETURN(an_folder_append(folder, folder->log, "log.txt", line, strlen(line)));
    return an_folder_append(folder, folder->log, "log.txt", "\n", 1);
}
