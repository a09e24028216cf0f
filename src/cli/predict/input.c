/* Reads samples from a file, in the format that the config describes for the run's own data, or from a .npy file. */
#include <stdlib.h>
#include <string.h>

#include "anneal/open.h"
#include "base/word.h"
#include "cli/predict/predict.h"

/* An array of any model: what it reads, a row a sample. */
static int open_npy(cli_samples *s, const char *file) {
    char problem[256] = "";
    an_array array = {.dtype = s->dtype, .ndims = 2};
    an_array_source source;
    an_array_source_init(&source, sizeof source);
    if (s->sentences)
        return cli_fail(s->call, "%s: the model reads sentences, so the samples must be JSON lines with 'text'", file);
    s->numbers = cli_npy_read(file, s->dtype, s->elements, &array.dims[0], problem, sizeof problem);
    if (!s->numbers) return cli_fail(s->call, "%s: %s", file, problem);
    array.data = s->numbers;
    array.dims[1] = s->elements;
    source.array_count = 1;
    source.arrays = &array;
    const an_status status = an_dataset_create_arrays(&s->dataset, s->ctx, &source);
    return status == AN_OK ? CLI_DONE : cli_refuse(s->call, s->ctx, NULL, status);
}

/* What the run's data would be. Samples that do not fit the model are a failure, not a misuse. */
static int open_like_training(cli_samples *s, an_config *config, const char *file) {
    an_samples_options options;
    an_samples_info info;
    an_samples_options_init(&options, sizeof options);
    an_samples_info_init(&info, sizeof info);
    options.path = file;
    options.encoding = s->encoding;
    options.elements = s->elements;
    options.dtype = s->dtype;
    const an_status status = an_samples_open(&s->dataset, s->ctx, config, &options, &info);
    if (status == AN_ERR_SHAPE) return cli_fail(s->call, "%s", an_last_error(s->ctx));
    if (status != AN_OK) return cli_refuse(s->call, s->ctx, NULL, status);
    s->token_count = info.tokens;
    s->has_classes = info.has_classes;
    s->sentences = info.sentences;
    s->name = info.name;
    if (s->column_count == 0 && s->name) {
        s->columns = &s->name;
        s->column_count = 1;
    }
    if (an_dataset_notice(s->dataset)) cli_tell("warning: %s", an_dataset_notice(s->dataset));
    return CLI_DONE;
}

/* Memory for the fields of a dataset. */
static int make_fields(cli_samples *s) {
    const int count = an_dataset_field_count(s->dataset);
    bool good = true;
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
    const int code = an_ends_in(file, ".npy") ? open_npy(samples, file) : open_like_training(samples, config, file);
    return code == CLI_DONE ? make_fields(samples) : code;
}

int cli_samples_keep(cli_samples *samples) {
    cli_samples *s = samples;
    if (s->column_count == 0) return CLI_DONE;
    const an_status status = an_cells_create(&s->cells, s->dataset, s->column_count, s->columns);
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
    an_cells_destroy(&samples->cells);
    an_dataset_destroy(&samples->dataset);
    an_encoding_destroy(&samples->encoding);
    free(samples->numbers);
}

an_status cli_samples_read(cli_samples *samples, int64_t begin, int64_t n, void *inputs) {
    const size_t bytes = (size_t)(n * samples->elements) * an_dtype_size(samples->dtype);
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
