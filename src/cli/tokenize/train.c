/* anneal tokenize --train: a tokenizer.json from texts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/tokenize/tokenize.h"

/* Texts of parts that are in memory. */
typedef struct {
    const char **texts;
    size_t *lengths;
    size_t count, capacity;
    int64_t bytes, documents;
} texts;

static bool add(texts *t, const char *text, size_t length) {
    if (t->count == t->capacity) {
        const size_t capacity = 2 * t->capacity + 256;
        const char **const larger = realloc(t->texts, capacity * sizeof *larger);
        if (larger) t->texts = larger;
        size_t *const lengths = larger ? realloc(t->lengths, capacity * sizeof *lengths) : NULL;
        if (!lengths) return false;
        t->lengths = lengths;
        t->capacity = capacity;
    }
    t->texts[t->count] = text;
    t->lengths[t->count++] = length;
    t->bytes += (int64_t)length;
    return true;
}

static bool collect(texts *t, part *parts, int count, const char *key, char error[TOKENIZE_MESSAGE]) {
    const char *text;
    size_t length;
    t->count = 0;
    for (int i = 0; i < count; i++) {
        for (size_t at = 0; tokenize_next_text(&parts[i], key, &at, &text, &length);) {
            t->documents += parts[i].lines || parts[i].ends;
            if (!add(t, text, length)) {
                snprintf(error, TOKENIZE_MESSAGE, "out of memory");
                return false;
            }
        }
        snprintf(error, TOKENIZE_MESSAGE, "%s", parts[i].error);
        if (error[0]) return false;
    }
    return true;
}

/* All words of the input. */
static int count_words(const cli_call *call, an_context *ctx, an_bpe_trainer *trainer, const char *key, texts *t) {
    input in = {.paths = call->arguments, .count = call->argument_count, .descriptor = -1};
    part *parts = calloc(TOKENIZE_BATCH, sizeof *parts);
    char error[TOKENIZE_MESSAGE] = "";
    an_status status = AN_OK;
    if (!parts) return cli_fail(call, "out of memory");
    for (int count = 1; count > 0 && !error[0] && status == AN_OK;) {
        count = 0;
        while (count < TOKENIZE_BATCH && tokenize_read(&in, &parts[count], error)) count++;
        if (error[0] || !collect(t, parts, count, key, error)) break;
        if (t->count > 0) status = an_bpe_trainer_add(trainer, t->texts, t->lengths, (int64_t)t->count);
    }
    tokenize_close(&in);
    for (int i = 0; i < TOKENIZE_BATCH; i++) free(parts[i].bytes);
    free(parts);
    if (error[0]) return cli_fail(call, "%s", error);
    return status == AN_OK ? CLI_DONE : cli_failure(call, ctx, status);
}

static int write_file(const cli_call *call, const char *path, const char *json) {
    FILE *file = cli_file_open(call, path, "wb");
    if (!file) return CLI_FAILED;
    fputs(json, file);
    return cli_file_close(call, path, file);
}

static int finish(const cli_call *call, an_context *ctx, an_bpe_trainer *trainer, const tokenize_training *o,
                  const texts *t) {
    char *json = NULL;
    int64_t tokens = 0;
    const an_status status = an_bpe_trainer_run(trainer, &json, &tokens);
    if (status != AN_OK) return cli_failure(call, ctx, status);
    const int code = write_file(call, o->to, json);
    an_string_release(ctx, &json);
    if (code != CLI_DONE) return code;
    printf("%s: %s tokens, from %s bytes of %s documents\n", o->to, cli_count(tokens).text, cli_count(t->bytes).text,
           cli_count(t->documents).text);
    if (tokens < o->vocabulary)
        cli_tell(
            "There are fewer tokens than the %s that were asked for: no further pair appears often enough (--least).",
            cli_count(o->vocabulary).text);
    return cli_finish(call);
}

int tokenize_train(const cli_call *call, an_context *ctx, const tokenize_training *o) {
    an_bpe_trainer *trainer = NULL;
    an_bpe_options options;
    texts t = {.count = 0};
    struct stat s;
    if (lstat(o->to, &s) == 0) return cli_fail(call, "%s exists; remove it, or choose another name", o->to);
    an_bpe_options_init(&options, sizeof options);
    options.vocabulary = o->vocabulary;
    if (o->minimum > 0) options.minimum = o->minimum;
    options.pre = o->pre;
    options.special = call->sets;
    options.special_count = call->set_count;
    const an_status status = an_bpe_trainer_create(&trainer, ctx, &options);
    int code = status == AN_OK ? CLI_DONE : cli_failure(call, ctx, status);
    if (code == CLI_DONE) code = count_words(call, ctx, trainer, o->key, &t);
    if (code == CLI_DONE) code = finish(call, ctx, trainer, o, &t);
    free(t.texts);
    free(t.lengths);
    an_bpe_trainer_destroy(&trainer);
    return code;
}
