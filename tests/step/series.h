/* What tests of a training step's parts share: the golden series of tests/golden/training.py, and the parameters,
 * weights and gradients that they were made with. */
#ifndef TESTS_SERIES_H
#define TESTS_SERIES_H

#include "anneal/train.h"
#include "support/support.h"

/* ---- golden files ---- */

typedef struct series_file {
    char *text;
    const char *name;
} series_file;

static inline series_file series_open(const char *name) {
    series_file s = {.name = name};
    char path[512];
    long size;
    snprintf(path, sizeof path, "%s/tests/golden/data/training_%s.txt", ANNEAL_SOURCE_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be read", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    size = ftell(file);
    rewind(file);
    s.text = malloc((size_t)size + 1);
    assert_non_null(s.text);
    assert_int_equal(fread(s.text, 1, (size_t)size, file), size);
    s.text[size] = 0;
    fclose(file);
    return s;
}

static inline void series_close(series_file *s) {
    free(s->text);
    s->text = NULL;
}

/* Reads the series of that name; returns how many numbers it has, at most `capacity`. */
static inline int series_read(const series_file *s, const char *name, double *numbers, int capacity) {
    const size_t length = strlen(name);
    const char *line = s->text;
    memset(numbers, 0, (size_t)capacity * sizeof *numbers);
    while (line && (strncmp(line, name, length) != 0 || line[length] != ' ')) {
        line = strchr(line, '\n');
        if (line) line++;
    }
    if (!line) {
        fail_msg("training_%s.txt has no series '%s'", s->name, name);
        return 0;
    }
    char *at;
    const long count = strtol(line + length, &at, 10);
    if (count < 1 || count > capacity) fail_msg("series '%s' has %ld numbers", name, count);
    for (long i = 0; i < count; i++) {
        const char *before = at;
        numbers[i] = strtod(before, &at);
        if (at == before) fail_msg("series '%s' ends early", name);
    }
    return (int)count;
}

/* ---- parameters ---- */

enum { PARAMETERS = 4, MOST_ELEMENTS = 2500 };

typedef struct series_parameter {
    const char *name;
    int ndims;
    int64_t dims[2], elements;
} series_parameter;

static const series_parameter series_parameters[PARAMETERS] = {
    {"table.weight", 2, {50, 50}, 2500}, /* three pages, the last not full */
    {"layer.weight", 2, {3, 5}, 15},
    {"layer.bias", 1, {7}, 7},
    {"gain", 1, {1}, 1}, /* its gradients are 0 */
};

static inline double series_weight(int parameter, int64_t i) {
    return (double)((i * 31 + parameter * 17) % 101 - 50) / 50;
}

static inline double series_gradient(int parameter, int64_t i, int64_t step) {
    if (series_parameters[parameter].elements == 1) return 0;
    return (double)(((i + 5003 * parameter) * 7919 + step * 104729) % 2003 - 1001) / 1001;
}

/* Numbers as a parameter's elements; `buffer` holds them. */
static inline an_array series_array(int parameter, an_dtype dtype, const double *numbers, void *buffer) {
    const series_parameter *p = &series_parameters[parameter];
    for (int64_t i = 0; numbers && i < p->elements; i++)
        if (dtype == AN_DTYPE_F64)
            ((double *)buffer)[i] = numbers[i];
        else
            ((float *)buffer)[i] = (float)numbers[i];
    return array_of(buffer, dtype, p->ndims, p->dims);
}

static inline void series_set(an_context *ctx, an_params *params, int parameter, an_param_part part, an_dtype dtype,
                              const double *numbers) {
    double buffer[MOST_ELEMENTS] = {0};
    const an_array array = series_array(parameter, dtype, numbers, buffer);
    OK(ctx, an_params_set(params, series_parameters[parameter].name, part, &array));
}

static inline void series_get(an_context *ctx, const an_params *params, int parameter, an_param_part part,
                              an_dtype dtype, double *numbers) {
    double buffer[MOST_ELEMENTS] = {0};
    an_array array = series_array(parameter, dtype, NULL, buffer);
    OK(ctx, an_params_get(params, series_parameters[parameter].name, part, &array));
    for (int64_t i = 0; i < series_parameters[parameter].elements; i++)
        numbers[i] = dtype == AN_DTYPE_F64 ? buffer[i] : (double)((const float *)(const void *)buffer)[i];
}

/* What training.py stores of a parameter: all of a few; of many some, their sum and the sum of their squares. */
static inline int series_digest(const double *numbers, int64_t elements, double *digest) {
    int count = 0;
    if (elements <= 16) {
        for (int64_t i = 0; i < elements; i++) digest[count++] = numbers[i];
        return count;
    }
    for (int64_t i = 0; i < 8; i++) digest[count++] = numbers[i];
    for (int64_t i = 1020; i < 1028; i++) digest[count++] = numbers[i];
    for (int64_t i = elements - 8; i < elements; i++) digest[count++] = numbers[i];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < elements; i++) {
        sum += numbers[i];
        squares += numbers[i] * numbers[i];
    }
    digest[count++] = sum;
    digest[count++] = squares;
    return count;
}

enum { MOST_DIGEST = 26 };

/* ---- a model that is nothing but those parameters, and its optimizer ---- */

typedef struct bench {
    an_context *ctx;
    an_graph *graph;
    an_groups *groups;
    an_params *params;
    an_optimizer *optimizer;
    an_dtype dtype;
    size_t bytes; /* of the context alone */
} bench;

static inline an_graph *series_graph(an_context *ctx, an_dtype dtype) {
    an_graph *g = NULL;
    OK(ctx, an_graph_create(&g, ctx, "series"));
    an_value sum = AN_NONE;
    for (int i = 0; i < PARAMETERS; i++) {
        const series_parameter *p = &series_parameters[i];
        an_value w = an_param(g, p->name, dtype, AN_INITIALIZER_CONSTANT, 0, p->ndims, p->dims);
        an_value part = an_reduce_sum(g, an_reshape(g, w, AN_DIMS(p->elements)), 1, (const int[]){0}, false);
        sum = i ? an_add(g, sum, part) : part;
    }
    an_graph_set_loss(g, sum, AN_NONE);
    OK(ctx, an_graph_verify(g));
    return g;
}

/* Groups without decay and parameters at the series' weights, unless options say otherwise; each may be NULL. */
static inline void bench_open(bench *b, an_dtype dtype, const an_context_options *context,
                              const an_group_options *groups, const an_optimizer_options *optimizer) {
    an_params_options params;
    an_params_options_init(&params, sizeof params);
    an_group_options no_decay;
    an_group_options_init(&no_decay, sizeof no_decay);
    double numbers[MOST_ELEMENTS] = {0};
    no_decay.weight_decay = 0;
    params.moments = an_optimizer_moments(optimizer);
    *b = (bench){.dtype = dtype};
    assert_int_equal(an_context_create(&b->ctx, context), AN_OK);
    b->bytes = an_context_bytes(b->ctx);
    b->graph = series_graph(b->ctx, dtype);
    OK(b->ctx, an_groups_create(&b->groups, b->graph, groups ? groups : &no_decay));
    OK(b->ctx, an_graph_verify(b->graph));
    OK(b->ctx, an_params_create(&b->params, b->ctx, b->graph, &params));
    OK(b->ctx, an_optimizer_create(&b->optimizer, b->params, b->groups, optimizer));
    for (int p = 0; p < PARAMETERS; p++) {
        for (int64_t i = 0; i < series_parameters[p].elements; i++) numbers[i] = series_weight(p, i);
        series_set(b->ctx, b->params, p, AN_PART_WEIGHT, dtype, numbers);
    }
}

static inline void bench_close(bench *b) {
    an_optimizer_destroy(&b->optimizer);
    an_params_destroy(&b->params);
    an_groups_destroy(&b->groups);
    an_graph_destroy(&b->graph);
    assert_int_equal(an_context_bytes(b->ctx), b->bytes); /* all was given back */
    an_context_destroy(&b->ctx);
}

/* The gradients of a step of the series, times a factor. */
static inline void bench_gradients(bench *b, int64_t step, double factor) {
    double numbers[MOST_ELEMENTS] = {0};
    for (int p = 0; p < PARAMETERS; p++) {
        for (int64_t i = 0; i < series_parameters[p].elements; i++) numbers[i] = series_gradient(p, i, step) * factor;
        series_set(b->ctx, b->params, p, AN_PART_GRADIENT, b->dtype, numbers);
    }
}

static inline const char *series_type(an_dtype dtype) {
    return dtype == AN_DTYPE_F64 ? "f64" : "f32";
}

#endif
