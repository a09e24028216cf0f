/* Type csv: tables of numbers and texts. */
#include <stdio.h>
#include <string.h>

#include "kinds/data/data.h"
#include "kinds/data/rows.h"

static const an_option options[] = {
    OPTION_AT(
        10, "data.train.path", INPUTS, REQUIRED, "", ANY, SAME_FILE, INTO(IN(an_csv_source, path)),
        "path of the file, relative to the config's folder, or a pattern such as rows-*.csv, whose files are read in "
        "the order of their names, or a list of these, which are read in its order. All files must have the same "
        "columns"),
    OPTION_AT(
        140, "data.train.inputs", STRINGS, "auto", "auto", ANY, FIXED(SAMPLES),
        INTO(LIST(an_csv_source, inputs, input_count)),
        "input columns, by name, by number starting at 1, or by pattern (x*, or !id* to leave out); auto is every "
        "column but the targets"),
    OPTION_AT(150, "data.train.targets", STRINGS, "auto", "auto", ANY, FIXED(SAMPLES),
              INTO(LIST(an_csv_source, targets, target_count)),
              "target columns, by name, by number starting at 1, or by pattern; auto is the last column"),
    OPTION_AT(160, "data.train.classes", BOOL, "off", "", ANY, FIXED(SAMPLES), INTO(IN(an_csv_source, classes)),
              "targets are classes: numbers from 0 on, or names; off, which suits simulation data"),
    OPTION_AT(
        170, "data.train.categories", CHOICE, "onehot", "onehot|embedding|off", ANY, FIXED(SAMPLES), DERIVED,
        "what an input column with text becomes: one number for each different cell (onehot), a row of numbers for "
        "each different cell that the model learns (embedding, for mlp and sequential), or an error (off); onehot "
        "needs no further settings"),
    OPTION_AT(180, "data.train.header", BOOL, "auto", "auto", ANY, FIXED(SAMPLES),
              INTO(AS(an_csv_source, header, AN_CSV_HEADER_NO, AN_CSV_HEADER_YES)),
              "first line holds column names; auto checks whether the first line is all numbers"),
    OPTION_AT(
        190, "data.train.numbers", CHOICE, "plain", "plain|auto|point|comma", ANY, FIXED(SAMPLES),
        INTO(IN(an_csv_source, numbers)),
        "how numbers are written: with a decimal point (plain), or as the cells of each column say (auto): 1,234.5 or "
        "1.234,5, 1 234 or 1'234, with a currency or percent sign, which is dropped, so 12.5 % is 12.5; point or comma "
        "is the decimal mark of columns whose cells do not tell, such as 1,234 in all rows; plain, so that tables are "
        "read as by earlier versions"),
    OPTION_AT(
        200, "data.train.dates", CHOICE, "text", "text|auto|day_first|month_first", ANY, FIXED(SAMPLES),
        INTO(IN(an_csv_source, dates)),
        "what dates in input columns become: categories (text), or numbers (auto): the days since 1970-01-01, sine and "
        "cosine of the time of year and of the day of the week and, with a time, of the time of day; day_first or "
        "month_first is the order of columns whose cells do not tell, such as 03/04/2024 in all rows; text, so that "
        "tables are read as by earlier versions"),
    OPTION_AT(210, "data.train.delimiter", STRING, "\",\"", "", ANY, FIXED(SAMPLES), INTO(IN(an_csv_source, delimiter)),
              "character between columns"),
    DTYPE_OPTION(INTO(AS(an_csv_source, dtype, AN_DTYPE_F32, AN_DTYPE_F64))),
    PART_OPTION(INTO(RANGE(an_csv_source, begin, end))),
    OPTIONS_END,
};

/* The column that data.split.by names; NULL: none. */
static const char *get_group(const an_config *config) {
    static const char group[] = "group ";
    const char *by = config->settings->data.split.by;
    if (an_config_is(config, "data.split.eval", "off") || strncmp(by, group, sizeof group - 1) != 0) return NULL;
    by += sizeof group - 1;
    return by + strspn(by, " ");
}

/* What cells that are no numbers become. What evaluates is numbered as what was trained on. */
static an_status get_cells(const an_data_opening *o, an_csv_source *s) {
    AN_TRY_RETURN(an_config_fill(o->config, "data.missing", an_csv_source, s));
    /* A model that embeds categories takes them as onehot does. */
    if (!an_config_is(o->config, AN_KEY(o->path, "categories"), "off")) s->categories = AN_CSV_CATEGORIES_ONE_HOT;
    s->group = get_group(o->config);
    s->encoding = *o->vocabulary ? an_dataset_encoding(*o->vocabulary) : NULL;
    s->weights = o->config->settings->data.weights;
    return AN_OK;
}

enum { MOST_FILES = 4096 };

/* A list of paths, in its order. */
static an_status get_paths(const an_data_opening *o, const char *paths[MOST_FILES], an_csv_source *s) {
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

static an_status read_csv(const an_data_opening *o, const char *paths[MOST_FILES]) {
    an_context *ctx = o->ctx;
    an_csv_source s;
    an_csv_source_init(&s, sizeof s);
    AN_TRY_RETURN(get_paths(o, paths, &s));
    AN_TRY_RETURN(AN_FILL(o, an_csv_source, &s));
    AN_TRY_RETURN(get_cells(o, &s));
    AN_TRY_RETURN(an_dataset_create_csv(o->dataset, ctx, &s));
    an_data_remember(o);
    return AN_OK;
}

static an_status open_source(const an_data_opening *o) {
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

/* ---- samples to predict ---- */

/* A file may have the columns of targets or not: without names of inputs, the number of columns says so. *columns: how
 * many there are if that is not the model's; 0: the file cannot be read. */
static an_status try_columns(const an_samples_opening *o, an_csv_source *s, int64_t *columns) {
    an_context *ctx = o->source.ctx;
    an_dataset **dataset = o->source.dataset;
    const int target_count = s->target_count;
    s->has_targets = false;
    s->target_count = 0;
    const an_status status = an_dataset_create_csv(dataset, ctx, s);
    *columns = *dataset ? an_data_elements(*dataset) : 0;
    const bool fits = *dataset && *columns == o->model->elements;
    if (!fits) an_dataset_destroy(dataset);
    s->has_targets = !fits && s->input_count == 0;
    s->target_count = target_count;
    if (!s->has_targets) return status;
    const an_status again = an_dataset_create_csv(dataset, ctx, s);
    if (again == AN_ERR_UNKNOWN && status != AN_OK) { /* it has no targets: what was wrong at first is to be said */
        s->has_targets = false;
        s->target_count = 0;
        (void)an_dataset_create_csv(dataset, ctx, s);
        an_dataset_destroy(dataset);
        s->target_count = target_count;
    }
    if (again != AN_OK) return status;
    if (an_data_elements(*dataset) != o->model->elements) an_dataset_destroy(dataset);
    return status;
}

static an_status open_samples(const an_samples_opening *o) {
    an_context *ctx = o->source.ctx;
    an_status status = AN_ERR_UNKNOWN;
    int64_t columns = 0;
    an_csv_source s;
    an_csv_source_init(&s, sizeof s);
    AN_TRY_RETURN(AN_FILL_ALL(o, an_csv_source, &s));
    s.weights = o->source.config->settings->data.weights;
    s.path = o->model->path;
    s.dtype = o->model->dtype;
    s.encoding = o->model->encoding;
    s.classes = false;
    if (s.weights) status = try_columns(o, &s, &columns); /* that column too may be there or not */
    s.weights = NULL;
    if (!*o->source.dataset) status = try_columns(o, &s, &columns);
    if (*o->source.dataset) return AN_OK;
    if (columns == 0) return status;
    return AN_ERROR(
        ctx, AN_ERR_SHAPE,
        "%s: has %lld columns, but the model reads %lld (named by data.train.inputs), with or without the targets",
        s.path, (long long)columns, (long long)o->model->elements);
}

const an_data_kind an_data_csv = {
    .kind = {.name = "csv", .options = options, .samples = AN_GIVES_NUMBERS, .flags = AN_KIND_TABLE},
    .open = open_source,
    .open_samples = open_samples,
    .is_text = true,
    .is_in_memory = true,
};
