#include "train/feed.h"

#include <stdio.h>
#include <string.h>

#include "ops/source.h"

/* ---- matching ---- */

typedef struct {
    an_feed *feed;
    an_graph *graph;
    const an_dataset *dataset;
    const an_result *inputs[AN_MAX_FEEDS]; /* of the graph, but for "samples" */
    int matches[AN_MAX_FEEDS];             /* the field of each; -1: none yet */
    int input_count, field_count;
} matching;

static const char *name_of(const an_result *input) {
    return ((const an_input_attributes *)input->node->attributes)->name;
}

static bool is_numbers(const an_result *input) {
    return !strcmp(name_of(input), "samples") && input->dtype == AN_DTYPE_I64;
}

static an_status collect_inputs(matching *m) {
    an_status status;
    an_context *ctx = m->graph->ctx;
    for (size_t i = 0; i < m->graph->source_count; i++) {
        const an_result *r = &m->graph->sources[i]->outputs[0];
        if (r->storage != AN_STORAGE_INPUT) continue;
        if (is_numbers(r)) {
            m->feed->samples = name_of(r);
            continue;
        }
        AN_CHECK(ctx, m->input_count < AN_MAX_FEEDS, AN_ERR_UNSUPPORTED, "the model has more than %d inputs",
                 AN_MAX_FEEDS);
        m->matches[m->input_count] = -1;
        m->inputs[m->input_count++] = r;
    }
    m->field_count = an_dataset_field_count(m->dataset);
    AN_CHECK(ctx, m->field_count >= m->input_count, AN_ERR_ARGUMENT,
             "the model reads %d inputs, but a sample of the data has %d fields", m->input_count, m->field_count);
    return AN_OK;
fail:
    return status;
}

/* Equal names first, then what is left, in order. */
static an_status match(matching *m) {
    an_context *ctx = m->graph->ctx;
    bool taken[AN_MAX_FEEDS] = {false};
    an_field field;
    an_field_init(&field, sizeof field);
    if (m->field_count > AN_MAX_FEEDS)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "a sample of the data has more than %d fields", AN_MAX_FEEDS);
    for (int f = 0; f < m->field_count; f++) {
        AN_TRY_RETURN(an_dataset_field(m->dataset, f, &field));
        for (int i = 0; i < m->input_count; i++)
            if (m->matches[i] < 0 && !taken[f] && !strcmp(field.name, name_of(m->inputs[i]))) {
                m->matches[i] = f;
                taken[f] = true;
            }
    }
    for (int i = 0, f = 0; i < m->input_count; i++) {
        if (m->matches[i] >= 0) continue;
        while (taken[f]) f++;
        m->matches[i] = f;
        taken[f] = true;
    }
    return AN_OK;
}

/* ---- shapes ---- */

/* The symbol that a dimension is; NULL: it is none, or more than one symbol. */
static const char *symbol_of(an_graph *graph, an_dim dim) {
    const char *name;
    for (int i = 0; dim < 0 && (name = an_graph_symbol_name(graph, i)); i++)
        if (an_symbol_dim(graph, name) == dim) return name;
    return NULL;
}

static an_status take_batch(an_graph *graph, const an_result *input, const char **batch) {
    an_context *ctx = graph->ctx;
    const char *symbol = input->ndims > 0 ? symbol_of(graph, input->dims[0]) : NULL;
    if (!symbol || (*batch && strcmp(symbol, *batch) != 0))
        return AN_ERROR(ctx, AN_ERR_SHAPE,
                        "the first dimension of the model's input '%s' must be the symbol for samples, which is the "
                        "same for all inputs",
                        name_of(input));
    *batch = symbol;
    return AN_OK;
}

static an_status take_symbol(an_feed *feed, const char *symbol, int64_t value, const char *input) {
    an_context *ctx = feed->ctx;
    for (int i = 0; i < feed->symbol_count; i++) {
        if (strcmp(feed->symbols[i], symbol) != 0) continue;
        if (feed->values[i] == value) return AN_OK;
        return AN_ERROR(ctx, AN_ERR_SHAPE,
                        "the model's symbol '%s' is %lld according to one field of the data and %lld according to the "
                        "field for '%s'",
                        symbol, (long long)feed->values[i], (long long)value, input);
    }
    if (feed->symbol_count == AN_MAX_FEED_SYMBOLS)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the model's inputs have more than %d symbols", AN_MAX_FEED_SYMBOLS);
    feed->symbols[feed->symbol_count] = symbol;
    feed->values[feed->symbol_count++] = value;
    return AN_OK;
}

static an_status shape_mistake(const matching *m, const an_result *input, const an_field *field) {
    char dims[128] = "";
    for (int d = 0; d < field->ndims; d++) {
        const size_t length = strlen(dims);
        snprintf(dims + length, sizeof dims - length, "%s%lld", d ? "," : "", (long long)field->dims[d]);
    }
    return AN_ERROR(m->graph->ctx, AN_ERR_SHAPE,
                    "the model's input '%s' is %s, where the first dimension is the sample, but the data's field '%s' "
                    "is %s[%s] for each sample",
                    name_of(input), AN_DESCRIBE(m->graph, input), field->name, an_dtype_name(field->dtype), dims);
}

static an_status take_input(matching *m, int index) {
    an_feed *feed = m->feed;
    const an_result *r = m->inputs[index];
    an_feed_input *input = &feed->inputs[index];
    an_field field;
    an_field_init(&field, sizeof field);
    AN_TRY_RETURN(an_dataset_field(m->dataset, m->matches[index], &field));
    *input = (an_feed_input){.name = name_of(r), .field = m->matches[index], .dtype = r->dtype, .ndims = r->ndims};
    input->bytes = an_dtype_size(r->dtype);
    if (field.dtype != r->dtype || r->ndims != field.ndims + 1) return shape_mistake(m, r, &field);
    for (int d = 1; d < r->ndims; d++) {
        const char *symbol = symbol_of(m->graph, r->dims[d]);
        input->dims[d] = field.dims[d - 1];
        input->bytes *= (size_t)field.dims[d - 1];
        if (symbol) AN_TRY_RETURN(take_symbol(feed, symbol, field.dims[d - 1], input->name));
        if (r->dims[d] >= 0 && r->dims[d] != field.dims[d - 1]) return shape_mistake(m, r, &field);
    }
    AN_TRY_RETURN(take_batch(m->graph, r, &feed->batch));
    if (an_graph_result(m->graph, m->graph->targets) == r) feed->targets = index;
    return AN_OK;
}

an_status an_feed_make(an_feed *feed, an_graph *graph, const an_dataset *dataset) {
    an_context *ctx = graph->ctx;
    matching m = {.feed = feed, .graph = graph, .dataset = dataset};
    *feed = (an_feed){.ctx = ctx, .targets = -1};
    AN_TRY_RETURN(collect_inputs(&m));
    AN_TRY_RETURN(match(&m));
    feed->count = m.input_count;
    for (int i = 0; i < m.input_count; i++) AN_TRY_RETURN(take_input(&m, i));
    return AN_OK;
}

an_status an_feed_find_batch(an_graph *graph, const char **batch) {
    an_context *ctx = graph->ctx;
    *batch = NULL;
    for (size_t i = 0; i < graph->source_count; i++) {
        const an_result *r = &graph->sources[i]->outputs[0];
        if (r->storage == AN_STORAGE_INPUT && !is_numbers(r)) AN_TRY_RETURN(take_batch(graph, r, batch));
    }
    return *batch ? AN_OK : AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "the model has no input");
}

an_status an_feed_set_limits(const an_feed *feed, const an_program *program, an_dataset *dataset) {
    an_input_info info;
    an_input_info_init(&info, sizeof info);
    an_field field;
    an_field_init(&field, sizeof field);
    for (int64_t i = 0; i < an_program_input_count(program); i++) {
        AN_TRY_RETURN(an_program_input(program, i, &info));
        for (int k = 0; k < feed->count && info.limit > 0; k++) {
            if (strcmp(feed->inputs[k].name, info.name) != 0) continue;
            AN_TRY_RETURN(an_dataset_field(dataset, feed->inputs[k].field, &field));
            AN_TRY_RETURN(an_dataset_set_limit(dataset, field.name, info.limit));
        }
    }
    return AN_OK;
}

/* ---- micro-batches ---- */

static an_array array_of(const an_feed_input *input, void *data, int64_t first, int64_t count) {
    an_array array = {0};
    array.data = (char *)data + (size_t)first * input->bytes;
    array.dtype = input->dtype;
    array.ndims = input->ndims;
    memcpy(array.dims, input->dims, sizeof array.dims);
    array.dims[0] = count;
    return array;
}

an_status an_feed_set(const an_feed *feed, an_program *program, void *const *fields, const int64_t *numbers,
                      int64_t first, int64_t count) {
    AN_TRY_RETURN(an_program_bind(program, feed->batch, count));
    for (int i = 0; i < feed->symbol_count; i++)
        AN_TRY_RETURN(an_program_bind(program, feed->symbols[i], feed->values[i]));
    for (int i = 0; i < feed->count; i++) {
        const an_array array = array_of(&feed->inputs[i], fields[feed->inputs[i].field], first, count);
        AN_TRY_RETURN(an_program_set_input(program, feed->inputs[i].name, &array));
    }
    if (!feed->samples) return AN_OK;
    an_array array = {0};
    array.data = (void *)(uintptr_t)(numbers + first); /* read only */
    array.dtype = AN_DTYPE_I64;
    array.ndims = 1;
    array.dims[0] = count;
    return an_program_set_input(program, feed->samples, &array);
}

an_status an_feed_count(const an_feed *feed, const an_program *program, void *const *fields, int64_t first,
                        int64_t count, int64_t *targets) {
    if (feed->targets < 0)
        return AN_ERROR(feed->ctx, AN_ERR_UNSUPPORTED,
                        "the model's loss has no targets, so the number to divide by is not known");
    const an_feed_input *input = &feed->inputs[feed->targets];
    const an_array array = array_of(input, fields[input->field], first, count);
    return an_program_count_targets(program, &array, targets);
}
