/* Sources of samples, by their type. */
#include <stdio.h>
#include <string.h>

#include "base/files/foreign.h"
#include "open/open.h"

typedef struct {
    an_dataset **dataset;
    const an_dataset **vocabulary;
    an_config *config;
    an_context *ctx;
    const char *path;
} opening;

/* The members of a source that the config names. */
#define FILL(type, source) an_config_fill(o->config, o->path, type, source)

static an_status get_context(const opening *o, int64_t *context) {
    return an_open_context(o->config, o->ctx, o->path, context);
}

/* Images for an mlp are rows, unless the config says otherwise. */
static bool usual_flat(const opening *o) {
    return an_config_is(o->config, "model.type", "mlp");
}

/* A dataset whose names of classes this one must number as it does; NULL: there is none. */
static const an_dataset *named_classes(const opening *o) {
    return *o->vocabulary && an_dataset_class_name(*o->vocabulary, 0) ? *o->vocabulary : NULL;
}

/* ---- one function a type ---- */

static an_status open_idx(const opening *o) {
    an_context *ctx = o->ctx;
    an_idx_source s;
    an_idx_source_init(&s, sizeof s);
    s.flat = usual_flat(o);
    AN_TRY_RETURN(FILL(an_idx_source, &s));
    return an_dataset_create_idx(o->dataset, ctx, &s);
}

/* What evaluates must number classes as what was trained on, and have the sizes of its images. */
static an_status open_images(const opening *o) {
    an_context *ctx = o->ctx;
    an_images_source s;
    an_images_source_init(&s, sizeof s);
    s.flat = usual_flat(o);
    AN_TRY_RETURN(FILL(an_images_source, &s));
    s.like = named_classes(o);
    AN_TRY_RETURN(an_dataset_create_images(o->dataset, ctx, &s));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

static bool evaluates(const opening *o) {
    return !strncmp(o->path, "data.eval", strlen("data.eval"));
}

/* What cells that are no numbers become. What evaluates is numbered as what was trained on. */
static an_status get_cells(const opening *o, an_csv_source *s) {
    an_context *ctx = o->ctx;
    AN_TRY_RETURN(an_config_fill(o->config, "data.missing", an_csv_source, s));
    /* A model that embeds categories takes them as onehot does. */
    if (!an_config_is(o->config, AN_KEY(o->path, "categories"), "off")) s->categories = AN_CSV_CATEGORIES_ONE_HOT;
    s->group = an_open_group(o->config);
    s->encoding = *o->vocabulary ? an_dataset_encoding(*o->vocabulary) : NULL;
    return an_open_weights_column(o->config, &s->weights);
}

/* The name of one array; NULL where it is left open. */
static an_status get_array_name(const opening *o, const char *key, const char **name) {
    const an_key joined = an_key_join(o->path, key);
    char element[AN_PATH_TEXT + 16];
    *name = NULL;
    if (an_config_is(o->config, joined.text, "auto")) return AN_OK;
    if (an_config_size(o->config, joined.text) != 1)
        return AN_ERROR(o->ctx, AN_ERR_ARGUMENT, "%s: %s of a .npz file is one array",
                        an_config_place(o->config, joined.text), joined.text);
    snprintf(element, sizeof element, "%s[0]", joined.text);
    return an_config_string(o->config, element, name);
}

static an_status open_npy(const opening *o) {
    an_context *ctx = o->ctx;
    an_npy_source s;
    an_npy_source_init(&s, sizeof s);
    s.flat = usual_flat(o);
    AN_TRY_RETURN(FILL(an_npy_source, &s));
    AN_TRY_RETURN(get_array_name(o, "inputs", &s.inputs));
    AN_TRY_RETURN(get_array_name(o, "targets", &s.targets));
    AN_TRY_RETURN(an_open_weights_column(o->config, &s.weights));
    s.weights_optional = evaluates(o);
    s.channel = an_config_is(o->config, "model.type", "cnn");
    return an_dataset_create_npy(o->dataset, ctx, &s);
}

enum { MOST_FILES = 4096 };

/* A list of paths, in its order. */
static an_status get_paths(const opening *o, const char *paths[MOST_FILES], an_csv_source *s) {
    an_context *ctx = o->ctx;
    const an_key key = an_key_join(o->path, "path");
    const int size = an_config_size(o->config, key.text);
    if (size == 0) return AN_OK;
    if (size > MOST_FILES)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d files are listed; at most %d are possible, so use a pattern",
                        an_config_place(o->config, key.text), size, MOST_FILES);
    s->paths = paths;
    for (; s->path_count < size; s->path_count++) {
        char element[AN_PATH_TEXT + 16];
        snprintf(element, sizeof element, "%s[%d]", key.text, s->path_count);
        AN_TRY_RETURN(an_config_path(o->config, element, &paths[s->path_count]));
    }
    return AN_OK;
}

static an_status read_csv(const opening *o, const char *paths[MOST_FILES]) {
    an_context *ctx = o->ctx;
    an_csv_source s;
    an_csv_source_init(&s, sizeof s);
    AN_TRY_RETURN(get_paths(o, paths, &s));
    AN_TRY_RETURN(FILL(an_csv_source, &s));
    AN_TRY_RETURN(get_cells(o, &s));
    AN_TRY_RETURN(an_dataset_create_csv(o->dataset, ctx, &s));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

static an_status open_csv(const opening *o) {
    an_status status;
    an_context *ctx = o->ctx;
    const char **paths = NULL;
    AN_TRY(an_alloc(ctx, (void **)&paths, MOST_FILES, sizeof *paths));
    AN_TRY(read_csv(o, paths));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&paths, MOST_FILES, sizeof *paths);
    return status;
}

static an_status open_jsonl(const opening *o) {
    an_context *ctx = o->ctx;
    an_jsonl_source s;
    an_jsonl_source_init(&s, sizeof s);
    AN_TRY_RETURN(FILL(an_jsonl_source, &s));
    AN_TRY_RETURN(an_open_weights_column(o->config, &s.weights));
    s.weights_optional = evaluates(o);
    s.like = named_classes(o);
    AN_TRY_RETURN(an_dataset_create_jsonl(o->dataset, ctx, &s));
    if (!*o->vocabulary && an_dataset_class_name(*o->dataset, 0)) *o->vocabulary = *o->dataset;
    return AN_OK;
}

static an_status open_text(const opening *o) {
    an_context *ctx = o->ctx;
    an_text_source s;
    an_text_source_init(&s, sizeof s);
    AN_TRY_RETURN(FILL(an_text_source, &s));
    AN_TRY_RETURN(get_context(o, &s.context));
    if (s.tokens != AN_TEXT_CHARACTERS) return an_dataset_create_text(o->dataset, ctx, &s);
    /* What evaluates must number characters as what was trained on: those of another file may be
     * others, in another order. */
    if (evaluates(o)) s.vocabulary = *o->vocabulary;
    AN_TRY_RETURN(an_dataset_create_text(o->dataset, ctx, &s));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

/* Documents that are joined have no borders. */
static an_status ignores_borders(const opening *o, bool documents, bool *ignores) {
    an_context *ctx = o->ctx;
    bool border_targets;
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "border_targets"), &border_targets));
    *ignores = documents && !border_targets;
    return AN_OK;
}

static an_status open_tokens(const opening *o) {
    an_context *ctx = o->ctx;
    an_token_source s;
    an_token_source_init(&s, sizeof s);
    AN_TRY_RETURN(FILL(an_token_source, &s));
    AN_TRY_RETURN(get_context(o, &s.context));
    AN_TRY_RETURN(ignores_borders(o, s.documents, &s.ignore_borders));
    return an_dataset_create_tokens(o->dataset, ctx, &s);
}

static an_status open_megatron(const opening *o) {
    an_context *ctx = o->ctx;
    an_megatron_source s;
    an_megatron_source_init(&s, sizeof s);
    AN_TRY_RETURN(FILL(an_megatron_source, &s));
    AN_TRY_RETURN(get_context(o, &s.context));
    AN_TRY_RETURN(ignores_borders(o, s.documents, &s.ignore_borders));
    return an_dataset_create_megatron(o->dataset, ctx, &s);
}

static an_status open_chat(const opening *o) {
    return an_open_chat(o->dataset, o->config, o->ctx, o->path);
}

static an_status open_sentences(const opening *o) {
    an_context *ctx = o->ctx;
    AN_TRY_RETURN(an_open_sentences(o->dataset, *o->vocabulary, o->config, ctx, o->path));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

enum { MOST_PARTS = 63 };

static an_status open_parts(const opening *o, const char *key, an_mixture_source *s, an_dataset **parts,
                            double *weights) {
    an_context *ctx = o->ctx;
    for (int i = 0; i < s->source_count; i++) {
        char part[AN_PATH_TEXT + 16];
        snprintf(part, sizeof part, "%s[%d]", key, i);
        AN_TRY_RETURN(an_config_real(o->config, AN_KEY(part, "weight"), &weights[i]));
        AN_TRY_RETURN(an_open_data(&parts[i], o->vocabulary, o->config, ctx, part));
    }
    AN_TRY_RETURN(FILL(an_mixture_source, s));
    s->sources = parts;
    s->weights = weights;
    s->owns = true;
    return an_dataset_create_mixture(o->dataset, ctx, s);
}

static an_status open_mixture(const opening *o) {
    an_context *ctx = o->ctx;
    an_mixture_source s;
    an_mixture_source_init(&s, sizeof s);
    an_dataset *parts[MOST_PARTS] = {NULL};
    double weights[MOST_PARTS];
    const an_key joined = an_key_join(o->path, "parts");
    s.source_count = an_config_size(o->config, joined.text);
    if (s.source_count > MOST_PARTS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d sources are listed; a mixture has at most %d",
                        an_config_place(o->config, joined.text), s.source_count, MOST_PARTS);
    const an_dataset *before = *o->vocabulary;
    const an_status status = open_parts(o, joined.text, &s, parts, weights);
    if (status == AN_OK) return AN_OK;
    *o->vocabulary = before;
    for (int i = s.source_count; i-- > 0;) an_dataset_destroy(&parts[i]);
    return status;
}

static const struct {
    const char *type;
    an_status (*open)(const opening *o);
} types[] = {{"idx", open_idx},         {"csv", open_csv},   {"images", open_images},    {"npy", open_npy},
             {"jsonl", open_jsonl},     {"text", open_text}, {"tokens", open_tokens},    {"megatron", open_megatron},
             {"mixture", open_mixture}, {"chat", open_chat}, {"preferences", open_chat}, {"sentences", open_sentences}};

/* Adds which source it is to what is wrong with it, unless the message begins with a place of the config anyway. */
static an_status name_source(const opening *o, an_status status) {
    const char *message = an_last_error(o->ctx);
    const char *place = an_config_place(o->config, o->path);
    const size_t name = strcspn(place, ":"); /* of the config */
    if (!strncmp(message, place, name + 1)) return status;
    return AN_ERROR(o->ctx, status, "%s (%s of %s)", message, o->path, place);
}

/* Spreadsheets and the like, where a text was expected. */
static an_status refuse_foreign(const opening *o, const char *type) {
    static const char *const texts[] = {"csv", "jsonl", "text", "chat", "preferences", "sentences"};
    const an_key key = an_key_join(o->path, "path");
    size_t i = 0;
    while (i < sizeof texts / sizeof *texts && strcmp(type, texts[i]) != 0) i++;
    if (i == sizeof texts / sizeof *texts) return AN_OK;
    const int size = an_config_size(o->config, key.text);
    for (int k = 0; k < (size > 0 ? size : 1); k++) {
        char element[AN_PATH_TEXT + 16];
        const char *path = NULL;
        snprintf(element, sizeof element, size > 0 ? "%s[%d]" : "%s", key.text, k);
        if (an_config_path(o->config, element, &path) != AN_OK) return AN_OK; /* which opening it will say */
        const an_foreign *foreign = an_foreign_find(path);
        if (foreign) return AN_ERROR(o->ctx, AN_ERR_PARSE, "%s: %s", path, an_foreign_describe(foreign, path).text);
    }
    return AN_OK;
}

an_status an_open_data(an_dataset **dataset, const an_dataset **vocabulary, an_config *config, an_context *ctx,
                       const char *path) {
    const opening o = {dataset, vocabulary, config, ctx, path};
    const an_key joined = an_key_join(path, "type");
    const char *type = joined.text;
    *dataset = NULL;
    if (an_config_origin_of(config, type) == AN_ORIGIN_NONE) return AN_OK;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (an_config_is(config, type, types[i].type)) {
            an_status status = refuse_foreign(&o, types[i].type);
            if (status == AN_OK) status = types[i].open(&o);
            return status == AN_OK ? AN_OK : name_source(&o, status);
        }
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                    "%s: data of this type comes from a program and cannot be read from a config",
                    an_config_place(config, type));
}
