/* Reads samples from a file, in the format that the config describes for the run's own data. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "anneal/pretrained.h"
#include "base/files/foreign.h"
#include "base/integer.h"
#include "base/options/settings.h"
#include "cli/predict/predict.h"

enum { MOST_COLUMNS = 4096, PATH = 160 };

/* Where the config says how files are read; the first source stands for a mixture. */
static const char *source_of(an_config *config) {
    return an_config_is(config, AN_SETTING(data.train.type), "mixture") ? AN_SETTING(data.train.parts[0])
                                                                        : AN_SETTING(data.train);
}

typedef struct {
    char text[PATH];
} key;

static key join(const char *source, const char *name) {
    key k;
    snprintf(k.text, sizeof k.text, "%s.%s", source, name);
    return k;
}

static bool is(an_config *config, const char *source, const char *name, const char *word) {
    return an_config_is(config, join(source, name).text, word);
}

/* ---- tables ---- */

static an_status names_of(an_config *config, const key *list, const char **names, int *count) {
    *count = 0;
    if (an_config_is(config, list->text, "auto")) return AN_OK;
    const int size = an_config_size(config, list->text);
    for (int i = 0; i < size && i < MOST_COLUMNS; i++) {
        char element[PATH + 16];
        snprintf(element, sizeof element, "%s[%d]", list->text, i);
        const an_status status = an_config_string(config, element, &names[i]);
        if (status != AN_OK) return status;
        *count = i + 1;
    }
    return AN_OK;
}

static int64_t elements_of(const an_dataset *dataset) {
    an_field field;
    an_field_init(&field, sizeof field);
    int64_t elements = 1;
    if (an_dataset_field(dataset, 0, &field) != AN_OK) return 0;
    for (int d = 0; d < field.ndims; d++) elements *= field.dims[d];
    return elements;
}

/* A file may have the targets' columns or not: without names it is the number of columns that says so. *columns: how
 * many there are if it does not fit; 0: it cannot be read. */
static an_status try_csv(cli_samples *s, an_csv_source *csv, const char *const *targets, int target_count,
                         int64_t *columns) {
    csv->has_targets = false;
    csv->target_count = 0;
    const an_status status = an_dataset_create_csv(&s->dataset, s->ctx, csv);
    *columns = s->dataset ? elements_of(s->dataset) : 0;
    if (s->dataset && *columns == s->elements) return AN_OK;
    an_dataset_destroy(&s->dataset);
    if (csv->input_count > 0) return status;
    csv->has_targets = true;
    csv->target_count = target_count;
    csv->targets = target_count ? targets : NULL;
    const an_status again = an_dataset_create_csv(&s->dataset, s->ctx, csv);
    if (again == AN_ERR_UNKNOWN && status != AN_OK) { /* it has no targets, so what was wrong at first is to be told */
        csv->has_targets = false;
        csv->target_count = 0;
        an_dataset_create_csv(&s->dataset, s->ctx, csv);
        an_dataset_destroy(&s->dataset);
    }
    if (again != AN_OK) return status;
    if (elements_of(s->dataset) != s->elements) an_dataset_destroy(&s->dataset);
    return status;
}

static int open_csv(cli_samples *s, an_config *config, const char *source, const char *file) {
    static const char *inputs[MOST_COLUMNS], *targets[MOST_COLUMNS];
    an_csv_source csv;
    an_csv_source_init(&csv, sizeof csv);
    const char *delimiter = ",";
    const key of_inputs = join(source, "inputs"), of_targets = join(source, "targets");
    int target_count = 0;
    bool header = false;
    an_config_string(config, join(source, "delimiter").text, &delimiter);
    if (!is(config, source, "header", "auto") && an_config_bool(config, join(source, "header").text, &header) == AN_OK)
        csv.header = header ? AN_CSV_HEADER_YES : AN_CSV_HEADER_NO;
    an_status status = names_of(config, &of_inputs, inputs, &csv.input_count);
    if (status == AN_OK) status = names_of(config, &of_targets, targets, &target_count);
    if (status != AN_OK) return cli_refuse(s->call, s->ctx, NULL, status);
    csv.path = file;
    csv.delimiter = delimiter[0];
    csv.dtype = s->dtype;
    csv.inputs = inputs;
    csv.encoding = s->encoding;
    int64_t columns;
    /* That column too may be there or not. */
    if (an_config_origin_of(config, AN_SETTING(data.weights)) != AN_ORIGIN_NONE &&
        an_config_string(config, AN_SETTING(data.weights), &csv.weights) == AN_OK)
        try_csv(s, &csv, targets, target_count, &columns);
    csv.weights = NULL;
    if (!s->dataset) status = try_csv(s, &csv, targets, target_count, &columns);
    if (s->dataset) return CLI_DONE;
    if (columns == 0) return cli_refuse(s->call, s->ctx, NULL, status);
    return cli_fail(
        s->call,
        "%s: has %lld columns, but the model reads %lld (named by data.train.inputs), with or without the targets",
        file, (long long)columns, (long long)s->elements);
}

/* ---- JSON lines ---- */

/* A record may have the targets' members or not. */
static int open_jsonl(cli_samples *s, an_config *config, const char *source, const char *file) {
    static const char *inputs[MOST_COLUMNS], *targets[MOST_COLUMNS];
    an_jsonl_source jsonl;
    an_jsonl_source_init(&jsonl, sizeof jsonl);
    const key of_inputs = join(source, "inputs"), of_targets = join(source, "targets");
    int target_count = 0;
    an_status status = names_of(config, &of_inputs, inputs, &jsonl.input_count);
    if (status == AN_OK) status = names_of(config, &of_targets, targets, &target_count);
    if (status != AN_OK) return cli_refuse(s->call, s->ctx, NULL, status);
    jsonl.path = file;
    jsonl.inputs = inputs;
    jsonl.dtype = s->dtype;
    jsonl.has_targets = false;
    jsonl.weights_optional = true; /* that member too may be there or not */
    if (an_config_origin_of(config, AN_SETTING(data.weights)) != AN_ORIGIN_NONE)
        an_config_string(config, AN_SETTING(data.weights), &jsonl.weights);
    status = an_dataset_create_jsonl(&s->dataset, s->ctx, &jsonl);
    if (status == AN_OK && elements_of(s->dataset) == s->elements) return CLI_DONE;
    int64_t numbers = s->dataset ? elements_of(s->dataset) : 0;
    an_dataset_destroy(&s->dataset);
    if (jsonl.input_count == 0) {
        jsonl.has_targets = true;
        jsonl.target_count = target_count;
        jsonl.targets = targets;
        status = an_dataset_create_jsonl(&s->dataset, s->ctx, &jsonl);
        if (status == AN_OK && elements_of(s->dataset) == s->elements) return CLI_DONE;
    }
    if (numbers == 0 && s->dataset) numbers = elements_of(s->dataset);
    if (numbers == 0) return cli_refuse(s->call, s->ctx, NULL, status);
    return cli_fail(s->call, "%s: a record has %lld numbers, but the model reads %lld, with or without the targets",
                    file, (long long)numbers, (long long)s->elements);
}

/* ---- images ---- */

static int open_idx(cli_samples *s, an_config *config, const char *source, const char *file) {
    an_idx_source idx;
    an_idx_source_init(&idx, sizeof idx);
    idx.inputs = file;
    idx.flat = true; /* in memory it is the same */
    an_config_bool(config, join(source, "scaled").text, &idx.scaled);
    const an_status status = an_dataset_create_idx(&s->dataset, s->ctx, &idx);
    if (status != AN_OK) return cli_refuse(s->call, s->ctx, NULL, status);
    if (elements_of(s->dataset) == s->elements) return CLI_DONE;
    return cli_fail(s->call, "%s: an image has %lld numbers, but the model reads %lld", file,
                    (long long)elements_of(s->dataset), (long long)s->elements);
}

/* A picture, a folder of pictures, or a folder of classes with pictures, whose names are then the classes. */
static an_status try_pictures(cli_samples *s, an_images_source *images) {
    const an_status status = an_dataset_create_images(&s->dataset, s->ctx, images);
    if (status != AN_ERR_ARGUMENT) return status;
    images->has_targets = s->has_classes = true;
    return an_dataset_create_images(&s->dataset, s->ctx, images);
}

/* A prediction without the name of its file would say little, so it is kept without being asked for. */
static int open_pictures(cli_samples *s, an_config *config, const char *source, const char *file) {
    static const char *const name[] = {"file"};
    an_images_source images;
    an_images_source_init(&images, sizeof images);
    images.path = file;
    images.has_targets = false;
    images.flat = true; /* in memory it is the same */
    images.channels = is(config, source, "channels", "1") ? 1 : is(config, source, "channels", "3") ? 3 : 0;
    an_config_bool(config, join(source, "scaled").text, &images.scaled);
    if (!is(config, source, "height", "auto")) an_config_count(config, join(source, "height").text, &images.height);
    if (!is(config, source, "width", "auto")) an_config_count(config, join(source, "width").text, &images.width);
    if (s->column_count == 0) {
        s->columns = name;
        s->column_count = 1;
    }
    const an_status status = try_pictures(s, &images);
    if (status == AN_ERR_FILE && s->has_classes)
        return cli_fail(s->call, "%s: has no PNG or JPEG files; as a folder of classes: %s", file,
                        an_last_error(s->ctx));
    if (status != AN_OK) return cli_refuse(s->call, s->ctx, NULL, status);
    if (elements_of(s->dataset) == s->elements) return CLI_DONE;
    return cli_fail(
        s->call,
        "%s: an image has %lld numbers, but the model reads %lld; give the sizes of the training images with "
        "--set %s.height=H, and width and channels likewise",
        file, (long long)elements_of(s->dataset), (long long)s->elements, source);
}

/* ---- text and tokens ---- */

/* All of a file, with a NUL behind it; NULL after a message. */
static char *read_whole(const cli_call *call, const char *path, size_t *length) {
    enum { STEP = 1 << 20 };
    size_t used = 0, capacity = 0;
    char *text = NULL;
    FILE *file = fopen(path, "rb");
    bool good = file != NULL;
    while (good && !feof(file)) {
        if (used + STEP + 1 > capacity) {
            capacity = 2 * capacity + STEP + 1;
            char *larger = realloc(text, capacity);
            good = larger != NULL;
            if (!good) break;
            text = larger;
        }
        used += fread(text + used, 1, STEP, file);
        good = !ferror(file);
    }
    good = good && text;
    if (!good) cli_fail(call, "%s: cannot be read: %s", path, strerror(errno));
    if (file) fclose(file);
    if (!good) {
        free(text);
        return NULL;
    }
    text[used] = 0;
    *length = used;
    return text;
}

/* The tokens of a text: bytes are what they are, characters have the numbers of the training data's. */
static int encode(cli_samples *s, an_config *config, const char *source, const char *text, size_t length) {
    an_text_source vocabulary;
    an_text_source_init(&vocabulary, sizeof vocabulary);
    an_dataset *dataset = NULL;
    const int64_t context = s->elements, capacity = ((int64_t)length / context + 1) * context;
    s->tokens = calloc((size_t)capacity, sizeof *s->tokens);
    if (!s->tokens) return cli_fail(s->call, "not enough memory for %zu tokens", length);
    if (!is(config, source, "tokens", "chars")) {
        for (size_t i = 0; i < length; i++) s->tokens[i] = (unsigned char)text[i];
        s->token_count = (int64_t)length;
        return CLI_DONE;
    }
    vocabulary.tokens = AN_TEXT_CHARACTERS;
    vocabulary.context = 1;
    an_status status = an_config_path(config, join(source, "path").text, &vocabulary.path);
    if (status == AN_OK) status = an_dataset_create_text(&dataset, s->ctx, &vocabulary);
    if (status != AN_OK) {
        cli_refuse(s->call, s->ctx, NULL, status);
        fprintf(stderr, "The characters of the training text define the model's tokens. If that file has moved, add "
                        "--set data.train.path=FILE\n");
        return CLI_FAILED;
    }
    status = an_dataset_encode(dataset, text, length, s->tokens, capacity, &s->token_count);
    const int code = status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
    an_dataset_destroy(&dataset);
    return code;
}

static int open_text(cli_samples *s, an_config *config, const char *source, const char *file) {
    size_t length = 0;
    char *text = read_whole(s->call, file, &length);
    if (!text) return CLI_FAILED;
    const int code = length ? encode(s, config, source, text, length) : cli_fail(s->call, "%s: is empty", file);
    free(text);
    s->count = an_divide_up(s->token_count, s->elements);
    return code;
}

static int open_tokens(cli_samples *s, an_config *config, const char *source, const char *file) {
    an_token_source tokens;
    an_token_source_init(&tokens, sizeof tokens);
    tokens.path = file;
    tokens.context = s->elements;
    if (is(config, source, "format", "u16")) tokens.format = AN_TOKENS_U16;
    if (is(config, source, "format", "u32")) tokens.format = AN_TOKENS_U32;
    const an_status status = an_dataset_create_tokens(&s->dataset, s->ctx, &tokens);
    return status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
}

static int open_megatron(cli_samples *s, an_config *config, const char *source, const char *file) {
    an_megatron_source megatron;
    an_megatron_source_init(&megatron, sizeof megatron);
    (void)config, (void)source;
    megatron.prefix = file;
    megatron.context = s->elements;
    const an_status status = an_dataset_create_megatron(&s->dataset, s->ctx, &megatron);
    return status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
}

/* ---- sentences ---- */

/* The tokenizer is the run's, or that of the model which it began with. */
static const char *find_tokenizer(an_config *config, const char *source) {
    static const char *const models[] = {AN_SETTING(model.from), AN_SETTING(model.init.from)};
    const char *place = NULL;
    if (!is(config, source, "tokenizer", "auto"))
        return an_config_path(config, join(source, "tokenizer").text, &place) == AN_OK ? place : NULL;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (an_config_origin_of(config, models[i]) != AN_ORIGIN_NONE &&
            an_config_path(config, models[i], &place) == AN_OK)
            return place;
    return NULL;
}

static int open_sentences(cli_samples *s, an_config *config, const char *source, const char *file) {
    an_sentence_source sentences;
    an_sentence_source_init(&sentences, sizeof sentences);
    an_tokenizer *tokenizer = NULL;
    const char *place = find_tokenizer(config, source);
    if (!place)
        return cli_fail(
            s->call, "nothing says which tokenizer makes tokens of the sentences; add --set %s.tokenizer=FILE", source);
    an_status status = an_pretrained_tokenizer(&tokenizer, s->ctx, place);
    sentences.path = file;
    sentences.tokenizer = tokenizer;
    sentences.context = s->elements;
    sentences.padded = true;
    sentences.has_targets = false;
    if (status == AN_OK) status = an_dataset_create_sentences(&s->dataset, s->ctx, &sentences);
    an_tokenizer_destroy(&tokenizer);
    s->sentences = true;
    return status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
}

/* ---- NumPy ---- */

/* An archive, whose array of inputs is called as in the training data. */
static int open_npz(cli_samples *s, an_config *config, const char *source, const char *file) {
    static const char *name[MOST_COLUMNS];
    int count = 0;
    an_npy_source npz;
    an_npy_source_init(&npz, sizeof npz);
    const key of_inputs = join(source, "inputs");
    an_status status = names_of(config, &of_inputs, name, &count);
    npz.path = file;
    npz.inputs = count > 0 ? name[0] : NULL;
    npz.flat = true; /* in memory it is the same */
    npz.dtype = s->dtype;
    an_config_bool(config, join(source, "scaled").text, &npz.scaled);
    if (status == AN_OK) status = an_dataset_create_npy(&s->dataset, s->ctx, &npz);
    if (status != AN_OK) return cli_refuse(s->call, s->ctx, NULL, status);
    if (elements_of(s->dataset) == s->elements) return CLI_DONE;
    return cli_fail(s->call, "%s: a sample has %lld numbers, but the model reads %lld", file,
                    (long long)elements_of(s->dataset), (long long)s->elements);
}

static int open_npy(cli_samples *s, const char *file) {
    char problem[256] = "";
    an_array array = {.dtype = s->dtype, .ndims = 2};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    s->numbers = cli_npy_read(file, s->dtype, s->elements, &array.dims[0], problem, sizeof problem);
    if (!s->numbers) return cli_fail(s->call, "%s: %s", file, problem);
    array.data = s->numbers;
    array.dims[1] = s->elements;
    source.array_count = 1;
    source.arrays = &array;
    const an_status status = an_dataset_create_arrays(&s->dataset, s->ctx, &source);
    return status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
}

/* ---- all ---- */

static const struct {
    const char *type;
    int (*open)(cli_samples *s, an_config *config, const char *source, const char *file);
} types[] = {{"csv", open_csv},       {"idx", open_idx},           {"images", open_pictures},
             {"npy", open_npz},       {"jsonl", open_jsonl},       {"text", open_text},
             {"tokens", open_tokens}, {"megatron", open_megatron}, {"sentences", open_sentences}};

/* Memory for the fields of a dataset. */
static int make_fields(cli_samples *s) {
    const int count = s->dataset ? an_dataset_field_count(s->dataset) : 0;
    bool good = true;
    if (count == 0) return CLI_DONE;
    s->count = an_dataset_count(s->dataset);
    s->fields = calloc((size_t)count, sizeof *s->fields);
    s->indices = calloc((size_t)s->maximum, sizeof *s->indices);
    good = s->fields && s->indices;
    for (int i = 0; good && i < count; i++) {
        an_field field;
        an_field_init(&field, sizeof field);
        good = an_dataset_field(s->dataset, i, &field) == AN_OK;
        size_t elements = (size_t)s->maximum;
        for (int d = 0; d < field.ndims; d++) elements *= (size_t)field.dims[d];
        s->fields[i] = good ? malloc(elements * an_dtype_size(field.dtype)) : NULL;
        good = good && s->fields[i];
    }
    return good ? CLI_DONE : cli_fail(s->call, "not enough memory for %lld samples", (long long)s->maximum);
}

int cli_samples_open(cli_samples *samples, an_config *config, const char *file) {
    const an_foreign *foreign = an_foreign_find(file);
    if (foreign) return cli_fail(samples->call, "%s: %s", file, an_foreign_describe(foreign, file).text);
    const char *source = source_of(config), *dot = strrchr(file, '.');
    if (dot && !strcmp(dot, ".npy") && is(config, source, "type", "sentences"))
        return cli_fail(samples->call, "%s: the model reads sentences, so the samples must be JSON lines with 'text'",
                        file);
    if (dot && !strcmp(dot, ".npy")) {
        const int code = open_npy(samples, file);
        return code == CLI_DONE ? make_fields(samples) : code;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!is(config, source, "type", types[i].type)) continue;
        const int code = types[i].open(samples, config, source, file);
        if (code == CLI_DONE && samples->dataset && an_dataset_notice(samples->dataset))
            cli_tell("warning: %s", an_dataset_notice(samples->dataset));
        return code == CLI_DONE ? make_fields(samples) : code;
    }
    return cli_fail(samples->call,
                    "the run's data came from a program, so nothing says how to read '%s'; give a .npy file", file);
}

int cli_samples_keep(cli_samples *samples) {
    cli_samples *s = samples;
    if (s->column_count == 0) return CLI_DONE;
    const an_status status =
        s->dataset ? an_cells_create(&s->cells, s->dataset, s->column_count, s->columns) : AN_ERR_UNSUPPORTED;
    if (status == AN_ERR_UNSUPPORTED)
        return cli_fail(s->call, "--keep %s: only tables and JSON lines have columns to keep", s->columns[0]);
    return status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
}

const char *cli_samples_class(const cli_samples *samples, int64_t i) {
    return samples->has_classes ? an_dataset_class_name(samples->dataset, ((const int32_t *)samples->fields[1])[i])
                                : NULL;
}

void cli_samples_close(cli_samples *samples) {
    const int count = samples->dataset ? an_dataset_field_count(samples->dataset) : 0;
    for (int i = 0; samples->fields && i < count; i++) free(samples->fields[i]);
    free(samples->fields);
    free(samples->indices);
    free(samples->tokens);
    an_cells_destroy(&samples->cells);
    an_dataset_destroy(&samples->dataset);
    an_encoding_destroy(&samples->encoding);
    free(samples->numbers);
}

an_status cli_samples_read(cli_samples *samples, int64_t begin, int64_t n, void *inputs) {
    const size_t bytes = (size_t)(n * samples->elements) * an_dtype_size(samples->dtype);
    if (samples->tokens) {
        memcpy(inputs, samples->tokens + begin * samples->elements, bytes);
        return AN_OK;
    }
    for (int64_t i = 0; i < n; i++) samples->indices[i] = begin + i;
    an_field field;
    an_field_init(&field, sizeof field);
    an_status status = an_dataset_read(samples->dataset, n, samples->indices, samples->fields);
    if (status == AN_OK) status = an_dataset_field(samples->dataset, 0, &field);
    if (status != AN_OK) return status;
    if (field.dtype == samples->dtype)
        memcpy(inputs, samples->fields[0], bytes);
    else /* images of a model in f64 */
        for (int64_t i = 0; i < n * samples->elements; i++)
            ((double *)inputs)[i] = (double)((const float *)samples->fields[0])[i];
    return AN_OK;
}
