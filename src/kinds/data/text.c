/* Type text: a text whose bytes or characters are tokens. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/status.h"
#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    PATH_OPTION(INTO(IN(an_text_source, path))),
    OPTION_AT(230, "data.train.tokens", CHOICE, "bytes", "bytes|chars", ANY, FIXED(SAMPLES),
              INTO(IN(an_text_source, tokens)), "unit of text that makes a token; bytes work for any file"),
    CONTEXT_OPTION,
    PART_OPTION(INTO(RANGE(an_text_source, begin, end))),
    OPTIONS_END,
};

static an_status open_source(const an_data_opening *o) {
    an_context *ctx = o->ctx;
    an_text_source s;
    an_text_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL(o, an_text_source, &s));
    AN_TRY_RETURN(an_data_context(o->config, ctx, o->path, &s.context));
    if (s.tokens != AN_TEXT_CHARACTERS) return an_dataset_create_text(o->dataset, ctx, &s);
    /* What evaluates must number characters as what was trained on: those of another file may be
     * others, in another order. */
    if (an_data_evaluates(o)) s.vocabulary = *o->vocabulary;
    AN_TRY_RETURN(an_dataset_create_text(o->dataset, ctx, &s));
    an_data_remember(o);
    return AN_OK;
}

/* ---- samples to predict ---- */

/* A text in memory as tokens, cut into samples, the last of which is filled up with zeros. */
typedef struct {
    an_context *ctx;
    char *text;
    size_t text_capacity;
    int32_t *tokens;
    size_t token_capacity;
    int64_t count;  /* of tokens */
    int64_t sample; /* tokens of one */
} cut_text;

/* Tokens, and the token that follows each: -1 after the last. */
static an_status read_cut(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                          size_t message_capacity) {
    const cut_text *t = user;
    (void)message, (void)message_capacity;
    for (int64_t i = 0; i < n * t->sample; i++) {
        const int64_t number = indices[i / t->sample] * t->sample + i % t->sample;
        ((int32_t *)fields[0])[i] = number < t->count ? t->tokens[number] : 0;
        ((int32_t *)fields[1])[i] = number + 1 < t->count ? t->tokens[number + 1] : -1;
    }
    return AN_OK;
}

static void close_cut(void *user) {
    cut_text *t = user;
    an_context *ctx = t->ctx;
    an_release(ctx, (void **)&t->text, t->text_capacity, 1);
    an_release(ctx, (void **)&t->tokens, t->token_capacity, sizeof *t->tokens);
    an_release(ctx, (void **)&t, 1, sizeof *t);
}

/* All of a file, which may be a pipe. */
static an_status read_text(cut_text *t, const char *path, size_t *length) {
    enum { STEP = 1 << 20 };
    an_context *ctx = t->ctx;
    an_status status = AN_OK;
    FILE *file = fopen(path, "rb");
    *length = 0;
    while (file && status == AN_OK && !feof(file) && !ferror(file)) {
        status = an_grow(ctx, (void **)&t->text, &t->text_capacity, *length + STEP, 1);
        if (status == AN_OK) *length += fread(t->text + *length, 1, STEP, file);
    }
    if (!file || ferror(file)) status = AN_ERROR(ctx, AN_ERR_FILE, "%s: cannot be read: %s", path, strerror(errno));
    if (file) fclose(file);
    if (status == AN_OK && *length == 0) status = AN_ERROR(ctx, AN_ERR_FILE, "%s: is empty", path);
    return status;
}

/* Characters have the numbers of the training data's. */
static an_status encode_characters(cut_text *t, const an_samples_opening *o, size_t length) {
    an_status status;
    an_context *ctx = t->ctx;
    const an_data_opening *source = &o->source;
    an_dataset *training = NULL;
    an_text_source s;
    an_text_source_init(&s, sizeof s);
    s.tokens = AN_TEXT_CHARACTERS;
    s.context = 1;
    AN_TRY(an_config_path(source->config, AN_KEY(source->path, "path"), &s.path));
    status = an_dataset_create_text(&training, ctx, &s);
    if (status != AN_OK)
        AN_FAIL(ctx, status,
                "%s. The characters of the training text define the model's tokens; if that file has moved, set "
                "%s.path to it",
                an_last_error(ctx), source->path);
    AN_TRY(an_dataset_encode(training, t->text, length, t->tokens, (int64_t)length, &t->count));
fail:
    an_dataset_destroy(&training);
    return status;
}

static an_status make_cut(cut_text *t, const an_samples_opening *o) {
    an_context *ctx = t->ctx;
    size_t length;
    an_field fields[2];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    for (int i = 0; i < 2; i++) {
        an_field_init(&fields[i], sizeof fields[i]);
        fields[i].name = i ? "targets" : "tokens";
        fields[i].dtype = AN_DTYPE_I32;
        fields[i].ndims = 1;
        fields[i].dims[0] = t->sample;
    }
    AN_TRY_RETURN(read_text(t, o->model->path, &length));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&t->tokens, length, sizeof *t->tokens));
    t->token_capacity = length;
    if (an_config_is(o->source.config, AN_KEY(o->source.path, "tokens"), "chars"))
        AN_TRY_RETURN(encode_characters(t, o, length));
    else
        for (; t->count < (int64_t)length; t->count++) t->tokens[t->count] = (unsigned char)t->text[t->count];
    o->info->tokens = t->count;
    record.count = an_divide_up(t->count, t->sample);
    record.field_count = 2;
    record.fields = fields;
    record.read = read_cut;
    record.close = close_cut;
    record.user = t;
    return an_dataset_create(o->source.dataset, ctx, &record);
}

static an_status open_samples(const an_samples_opening *o) {
    an_status status;
    an_context *ctx = o->source.ctx;
    cut_text *t = NULL;
    AN_TRY(an_alloc(ctx, (void **)&t, 1, sizeof *t));
    *t = (cut_text){.ctx = ctx, .sample = o->model->elements};
    AN_TRY(make_cut(t, o));
    return AN_OK;
fail:
    if (t) close_cut(t);
    return status;
}

const an_data_kind an_data_text = {
    .kind = {.name = "text", .options = options, .samples = AN_GIVES_TOKENS},
    .open = open_source,
    .open_samples = open_samples,
    .is_text = true,
};
