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

static an_status get_part(const opening *o, double *begin, double *end) {
    return an_config_range(o->config, AN_KEY(o->path, "part"), begin, end);
}

static an_status get_context(const opening *o, int64_t *context) {
    return an_open_context(o->config, o->ctx, o->path, context);
}

static an_status get_flat(const opening *o, bool *flat) {
    const an_key key = an_key_join(o->path, "flat");
    if (!an_config_is(o->config, key.text, "auto")) return an_config_bool(o->config, key.text, flat);
    *flat = an_config_is(o->config, "model.type", "mlp");
    return AN_OK;
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
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.inputs));
    if (an_config_origin_of(o->config, AN_KEY(o->path, "labels")) != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "labels"), &s.targets));
    AN_TRY_RETURN(get_flat(o, &s.flat));
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "scaled"), &s.scaled));
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    return an_dataset_create_idx(o->dataset, ctx, &s);
}

/* What evaluates must number classes as what was trained on, and have the sizes of its images. */
static an_status open_images(const opening *o) {
    an_context *ctx = o->ctx;
    an_images_source s;
    an_images_source_init(&s, sizeof s);
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.path));
    AN_TRY_RETURN(get_flat(o, &s.flat));
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "scaled"), &s.scaled));
    AN_TRY_RETURN(an_open_count(o->config, AN_KEY(o->path, "height"), &s.height));
    AN_TRY_RETURN(an_open_count(o->config, AN_KEY(o->path, "width"), &s.width));
    s.channels = an_config_is(o->config, AN_KEY(o->path, "channels"), "1")   ? 1
                 : an_config_is(o->config, AN_KEY(o->path, "channels"), "3") ? 3
                                                                             : 0;
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    s.like = named_classes(o);
    AN_TRY_RETURN(an_dataset_create_images(o->dataset, ctx, &s));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

enum { MOST_COLUMNS = 4096 };

static bool evaluates(const opening *o) {
    return !strncmp(o->path, "data.eval", strlen("data.eval"));
}

static an_status get_columns(const opening *o, const char *key, const char **names, int *count) {
    an_context *ctx = o->ctx;
    const an_key joined = an_key_join(o->path, key);
    const char *path = joined.text;
    *count = 0;
    if (an_config_is(o->config, path, "auto")) return AN_OK;
    const int size = an_config_size(o->config, path);
    if (size > MOST_COLUMNS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d columns are named; at most %d are possible",
                        an_config_place(o->config, path), size, MOST_COLUMNS);
    for (; *count < size; ++*count) {
        char element[AN_PATH_TEXT + 16];
        snprintf(element, sizeof element, "%s[%d]", path, *count);
        AN_TRY_RETURN(an_config_string(o->config, element, &names[*count]));
    }
    return AN_OK;
}

static void get_notations(const opening *o, an_csv_source *s) {
    static const char *const numbers[] = {[AN_CSV_NUMBERS_PLAIN] = "plain",
                                          [AN_CSV_NUMBERS_AUTO] = "auto",
                                          [AN_CSV_NUMBERS_POINT] = "point",
                                          [AN_CSV_NUMBERS_COMMA] = "comma"};
    static const char *const dates[] = {[AN_CSV_DATES_TEXT] = "text",
                                        [AN_CSV_DATES_AUTO] = "auto",
                                        [AN_CSV_DATES_DAY_FIRST] = "day_first",
                                        [AN_CSV_DATES_MONTH_FIRST] = "month_first"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (an_config_is(o->config, AN_KEY(o->path, "numbers"), numbers[i])) s->numbers = (an_csv_numbers)i;
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        if (an_config_is(o->config, AN_KEY(o->path, "dates"), dates[i])) s->dates = (an_csv_dates)i;
}

/* What cells that are no numbers become. What evaluates is numbered as what was trained on. */
static an_status get_cells(const opening *o, an_csv_source *s) {
    static const char *const methods[] = {[AN_CSV_MISSING_REFUSE] = "error",
                                          [AN_CSV_MISSING_DROP] = "drop",
                                          [AN_CSV_MISSING_MEAN] = "mean",
                                          [AN_CSV_MISSING_CONSTANT] = "constant"};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (an_config_is(o->config, "data.missing.method", methods[i])) s->missing = (an_csv_missing)i;
    /* A model that embeds categories takes them as onehot does. */
    if (!an_config_is(o->config, AN_KEY(o->path, "categories"), "off")) s->categories = AN_CSV_CATEGORIES_ONE_HOT;
    get_notations(o, s);
    s->group = an_open_group(o->config);
    const an_status status = an_open_weights_column(o->config, &s->weights);
    if (status != AN_OK) return status;
    s->encoding = *o->vocabulary ? an_dataset_encoding(*o->vocabulary) : NULL;
    return s->missing == AN_CSV_MISSING_CONSTANT ? an_config_real(o->config, "data.missing.value", &s->constant)
                                                 : AN_OK;
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
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.path));
    if (an_config_origin_of(o->config, AN_KEY(o->path, "labels")) != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "labels"), &s.labels));
    AN_TRY_RETURN(get_array_name(o, "inputs", &s.inputs));
    AN_TRY_RETURN(get_array_name(o, "targets", &s.targets));
    AN_TRY_RETURN(get_flat(o, &s.flat));
    AN_TRY_RETURN(an_open_weights_column(o->config, &s.weights));
    s.weights_optional = evaluates(o);
    s.channel = an_config_is(o->config, "model.type", "cnn");
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "scaled"), &s.scaled));
    s.dtype = an_config_is(o->config, AN_KEY(o->path, "dtype"), "f64") ? AN_DTYPE_F64 : AN_DTYPE_F32;
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    return an_dataset_create_npy(o->dataset, ctx, &s);
}

/* One path, or a list of them, in its order. */
static an_status get_paths(const opening *o, const char **paths, an_csv_source *s) {
    an_context *ctx = o->ctx;
    const an_key key = an_key_join(o->path, "path");
    const int size = an_config_size(o->config, key.text);
    if (size == 0) return an_config_path(o->config, key.text, &s->path);
    if (size > MOST_COLUMNS)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %d files are listed; at most %d are possible, so use a pattern",
                        an_config_place(o->config, key.text), size, MOST_COLUMNS);
    s->paths = paths;
    for (; s->path_count < size; s->path_count++) {
        char element[AN_PATH_TEXT + 16];
        snprintf(element, sizeof element, "%s[%d]", key.text, s->path_count);
        AN_TRY_RETURN(an_config_path(o->config, element, &paths[s->path_count]));
    }
    return AN_OK;
}

static an_status read_csv(const opening *o, const char **inputs, const char **targets, const char **paths) {
    an_context *ctx = o->ctx;
    an_csv_source s;
    an_csv_source_init(&s, sizeof s);
    bool header;
    const char *delimiter;
    AN_TRY_RETURN(get_paths(o, paths, &s));
    AN_TRY_RETURN(get_columns(o, "inputs", inputs, &s.input_count));
    AN_TRY_RETURN(get_columns(o, "targets", targets, &s.target_count));
    s.inputs = inputs;
    s.targets = targets;
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "classes"), &s.classes));
    if (!an_config_is(o->config, AN_KEY(o->path, "header"), "auto")) {
        AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "header"), &header));
        s.header = header ? AN_CSV_HEADER_YES : AN_CSV_HEADER_NO;
    }
    AN_TRY_RETURN(an_config_string(o->config, AN_KEY(o->path, "delimiter"), &delimiter));
    s.delimiter = delimiter[0];
    s.dtype = an_config_is(o->config, AN_KEY(o->path, "dtype"), "f64") ? AN_DTYPE_F64 : AN_DTYPE_F32;
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    AN_TRY_RETURN(get_cells(o, &s));
    AN_TRY_RETURN(an_dataset_create_csv(o->dataset, ctx, &s));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

static an_status read_jsonl(const opening *o, const char **inputs, const char **targets, const char **paths) {
    (void)paths;
    an_context *ctx = o->ctx;
    an_jsonl_source s;
    an_jsonl_source_init(&s, sizeof s);
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.path));
    AN_TRY_RETURN(get_columns(o, "inputs", inputs, &s.input_count));
    AN_TRY_RETURN(get_columns(o, "targets", targets, &s.target_count));
    s.inputs = inputs;
    s.targets = targets;
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "classes"), &s.classes));
    s.dtype = an_config_is(o->config, AN_KEY(o->path, "dtype"), "f64") ? AN_DTYPE_F64 : AN_DTYPE_F32;
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    AN_TRY_RETURN(an_open_weights_column(o->config, &s.weights));
    s.weights_optional = evaluates(o);
    s.like = named_classes(o);
    AN_TRY_RETURN(an_dataset_create_jsonl(o->dataset, ctx, &s));
    if (!*o->vocabulary && an_dataset_class_name(*o->dataset, 0)) *o->vocabulary = *o->dataset;
    return AN_OK;
}

/* With memory for names of columns and files. */
static an_status open_columns(const opening *o, an_status (*read)(const opening *o, const char **inputs,
                                                                  const char **targets, const char **paths)) {
    an_status status;
    an_context *ctx = o->ctx;
    const char **names = NULL;
    AN_TRY(an_alloc(ctx, (void **)&names, 3 * MOST_COLUMNS, sizeof *names));
    AN_TRY(read(o, names, names + MOST_COLUMNS, names + 2 * (size_t)MOST_COLUMNS));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&names, 3 * MOST_COLUMNS, sizeof *names);
    return status;
}

static an_status open_csv(const opening *o) {
    return open_columns(o, read_csv);
}

static an_status open_jsonl(const opening *o) {
    return open_columns(o, read_jsonl);
}

static an_status open_text(const opening *o) {
    an_context *ctx = o->ctx;
    an_text_source s;
    an_text_source_init(&s, sizeof s);
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.path));
    s.tokens = an_config_is(o->config, AN_KEY(o->path, "tokens"), "chars") ? AN_TEXT_CHARACTERS : AN_TEXT_BYTES;
    AN_TRY_RETURN(get_context(o, &s.context));
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    if (s.tokens != AN_TEXT_CHARACTERS) return an_dataset_create_text(o->dataset, ctx, &s);
    /* What evaluates must number characters as what was trained on: those of another file may be
     * others, in another order. */
    if (evaluates(o)) s.vocabulary = *o->vocabulary;
    AN_TRY_RETURN(an_dataset_create_text(o->dataset, ctx, &s));
    if (!*o->vocabulary) *o->vocabulary = *o->dataset;
    return AN_OK;
}

static an_status get_documents(const opening *o, bool *documents, bool *ignore_borders) {
    an_context *ctx = o->ctx;
    bool border_targets;
    AN_TRY_RETURN(an_config_bool(o->config, AN_KEY(o->path, "border_targets"), &border_targets));
    *documents = an_config_is(o->config, AN_KEY(o->path, "documents"), "apart");
    *ignore_borders = *documents && !border_targets;
    return AN_OK;
}

static an_status open_tokens(const opening *o) {
    an_context *ctx = o->ctx;
    an_token_source s;
    an_token_source_init(&s, sizeof s);
    int64_t end_token = 0;
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.path));
    if (an_config_is(o->config, AN_KEY(o->path, "format"), "u16")) s.format = AN_TOKENS_U16;
    if (an_config_is(o->config, AN_KEY(o->path, "format"), "u32")) s.format = AN_TOKENS_U32;
    AN_TRY_RETURN(get_context(o, &s.context));
    AN_TRY_RETURN(get_documents(o, &s.documents, &s.ignore_borders));
    if (an_config_origin_of(o->config, AN_KEY(o->path, "end_token")) != AN_ORIGIN_NONE)
        AN_TRY_RETURN(an_config_count(o->config, AN_KEY(o->path, "end_token"), &end_token));
    s.end_token = (int32_t)end_token;
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
    return an_dataset_create_tokens(o->dataset, ctx, &s);
}

static an_status open_megatron(const opening *o) {
    an_context *ctx = o->ctx;
    an_megatron_source s;
    an_megatron_source_init(&s, sizeof s);
    AN_TRY_RETURN(an_config_path(o->config, AN_KEY(o->path, "path"), &s.prefix));
    AN_TRY_RETURN(get_context(o, &s.context));
    AN_TRY_RETURN(get_documents(o, &s.documents, &s.ignore_borders));
    AN_TRY_RETURN(get_part(o, &s.begin, &s.end));
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
    AN_TRY_RETURN(an_open_count(o->config, AN_KEY(o->path, "count"), &s->count));
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
