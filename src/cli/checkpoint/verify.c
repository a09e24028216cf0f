/* anneal verify: checks every byte of a checkpoint, or of all checkpoints of a run. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

enum { JSON };
static const cli_option options[] = {
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

/* ---- which ones ---- */

typedef struct {
    char (*paths)[CLI_PATH];
    size_t count, capacity;
} found;

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static bool add(found *f, const char *path) {
    if (f->count == f->capacity) {
        const size_t capacity = f->capacity ? 2 * f->capacity : 8;
        void *larger = realloc(f->paths, capacity * sizeof *f->paths);
        if (!larger) return false;
        f->paths = larger;
        f->capacity = capacity;
    }
    snprintf(f->paths[f->count++], CLI_PATH, "%s", path);
    return true;
}

/* The checkpoints of a run's folder, in order; what is no such folder stands for itself. False: there is no memory
 * for them. */
static bool find(found *f, const char *path) {
    char folder[CLI_PATH - 300], inside[CLI_PATH];
    const struct dirent *entry;
    bool good = true;
    if (snprintf(folder, sizeof folder, "%s/checkpoints", path) >= (int)sizeof folder) return add(f, path);
    DIR *stream = opendir(folder);
    while (good && stream && (entry = readdir(stream))) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
        if (strncmp(entry->d_name, "step-", 5) != 0) continue;
        good = snprintf(inside, sizeof inside, "%s/%s", folder, entry->d_name) < CLI_PATH && add(f, inside);
    }
    if (stream) closedir(stream);
    if (good && f->count == 0) return add(f, path);
    if (f->count) qsort(f->paths, f->count, sizeof *f->paths, by_name);
    return good;
}

/* ---- one of them ---- */

typedef struct {
    an_status status;
    bool is_run;
    int64_t files, bytes, tensors;
    char error[CLI_PATH];
} verdict;

static void count(an_context *ctx, const char *path, verdict *v) {
    an_checkpoint *checkpoint = NULL;
    an_checkpoint_info info;
    an_checkpoint_info_init(&info, sizeof info);
    char *manifest = NULL;
    if (an_checkpoint_open(&checkpoint, ctx, path) == AN_OK && an_checkpoint_info_get(checkpoint, &info) == AN_OK) {
        v->is_run = info.is_run;
        v->tensors = info.tensors;
        v->files = info.is_run ? info.files + 1 : 0; /* the manifest too */
        v->bytes = info.bytes;
        if (info.is_run && an_checkpoint_text(checkpoint, "manifest.json", &manifest) == AN_OK)
            v->bytes += (int64_t)strlen(manifest);
    }
    an_string_release(ctx, &manifest);
    an_checkpoint_close(&checkpoint);
}

static void look(an_context *ctx, const char *path, verdict *v) {
    *v = (verdict){.status = an_checkpoint_verify(ctx, path)};
    if (v->status == AN_OK) {
        count(ctx, path, v);
        return;
    }
    snprintf(v->error, sizeof v->error, "%s", an_last_error(ctx));
}

static void say(const cli_call *call, const char *path, const verdict *v) {
    if (v->status != AN_OK)
        cli_fail(call, "%s", v->error);
    else if (v->is_run)
        printf("%s: intact: %s files, %s bytes\n", path, cli_count(v->files).text, cli_count(v->bytes).text);
    else
        printf("%s: valid structure, %s tensors; this format has no hashes, so the contents cannot be checked\n", path,
               cli_count(v->tensors).text);
}

static void write(an_json_writer *j, const char *path, const verdict *v) {
    an_json_write_object(j, NULL);
    an_json_write_string(j, "path", path);
    an_json_write_string(j, "state", v->status == AN_OK ? "good" : "damaged");
    an_json_write_integer(j, "files", v->files);
    an_json_write_integer(j, "bytes", v->bytes);
    if (v->status == AN_OK)
        an_json_write_null(j, "error");
    else
        an_json_write_string(j, "error", v->error);
    an_json_write_end(j);
}

static int verify(const cli_call *call, an_context *ctx, const found *f) {
    verdict *v = calloc(f->count, sizeof *v);
    bool good = true;
    if (!v) return cli_fail(call, "out of memory");
    for (size_t i = 0; i < f->count; i++) {
        look(ctx, f->paths[i], &v[i]);
        good = good && v[i].status == AN_OK;
        if (!call->values[JSON]) say(call, f->paths[i], &v[i]);
    }
    if (call->values[JSON]) {
        an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
        an_json_write_object(&j, NULL);
        an_json_write_string(&j, "path", call->argument);
        an_json_write_string(&j, "state", good ? "good" : "damaged");
        an_json_write_array(&j, "checkpoints");
        for (size_t i = 0; i < f->count; i++) write(&j, f->paths[i], &v[i]);
        an_json_write_end(&j);
        an_json_write_finish(&j);
    }
    free(v);
    const int code = cli_finish(call);
    return good ? code : CLI_FAILED;
}

static int run(const cli_call *call) {
    an_context_options alone;
    an_context_options_init(&alone, sizeof alone);
    an_context *ctx = NULL;
    found f = {0};
    alone.threads = 1;
    const an_status status = an_context_create(&ctx, &alone);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    const int code = find(&f, call->argument) ? verify(call, ctx, &f) : cli_fail(call, "out of memory");
    free(f.paths);
    an_context_destroy(&ctx);
    return code;
}

const cli_command cli_verify = {
    .name = "verify",
    .argument = "PATH",
    .summary = "check that a checkpoint is intact",
    .text = "Reads every file of a checkpoint, or of all checkpoints of a run, and checks its bytes against the hashes "
            "in the manifest, which has a hash of its own. The exit code is 0 if every byte is as it was written; "
            "otherwise it is 1, and the message names the file. A single safetensors file has no hashes, so only its "
            "structure is checked.",
    .options = options,
    .run = run,
};
