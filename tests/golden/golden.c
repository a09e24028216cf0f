#include "golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256, MOST_ELEMENTS = 1 << 24 };

static const char magic[] = "anneal golden 2\n", end_of_header[] = "end\n";

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (memory) return memory;
    fprintf(stderr, "golden: out of memory\n");
    exit(EXIT_FAILURE);
}

char *golden_read_text(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long size = 0;
    if (!file) return NULL;
    if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) >= 0 && !fseek(file, 0, SEEK_SET)) {
        text = allocate((size_t)size + 1);
        *length = fread(text, 1, (size_t)size, file);
        text[*length] = 0;
    }
    fclose(file);
    return text;
}

/* ---- the header ---- */

static an_dtype find_dtype(const char *name) {
    static const an_dtype stored[] = {AN_DTYPE_F64, AN_DTYPE_I32, AN_DTYPE_I64};
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++)
        if (!strcmp(name, an_dtype_name(stored[i]))) return stored[i];
    return AN_DTYPE_NONE;
}

/* A number from `*at` on, which moves behind it; -1 if there is none in the range. */
static int64_t parse_number(const char **at, int64_t maximum) {
    char *end;
    long long number = strtoll(*at, &end, 10);
    bool is_fine = end != *at && number >= 0 && number <= maximum;
    *at = end;
    return is_fine ? number : -1;
}

/* "param x f64 2 3 5" */
static bool parse_line(const char *line, golden_array *array) {
    char dtype[GOLDEN_NAME_BYTES];
    int length = 0;
    *array = (golden_array){.count = 1};
    if (sscanf(line, "%63s %63s %63s%n", array->role, array->name, dtype, &length) != 3) return false;
    const char *at = line + length;
    array->dtype = find_dtype(dtype);
    array->ndims = (int)parse_number(&at, AN_MAX_DIMS);
    if (array->dtype == AN_DTYPE_NONE || array->ndims < 0) return false;
    for (int i = 0; i < array->ndims; i++) {
        array->dims[i] = parse_number(&at, MOST_ELEMENTS);
        array->count *= array->dims[i];
        if (array->dims[i] < 0 || array->count > MOST_ELEMENTS) return false;
    }
    return *at == '\n';
}

/* ---- the data ---- Little-endian, as every machine that we build for. */

static bool read_values(FILE *file, golden_array *array) {
    size_t size = an_dtype_size(array->dtype), count = (size_t)array->count;
    char *raw = allocate(count * size);
    array->values = allocate(count * sizeof *array->values);
    bool whole = fread(raw, size, count, file) == count;
    for (size_t i = 0; i < count && whole; i++) {
        const void *at = raw + i * size;
        switch (array->dtype) {
        case AN_DTYPE_F64: array->values[i] = *(const double *)at; break;
        case AN_DTYPE_I32: array->values[i] = (double)*(const int32_t *)at; break;
        default: array->values[i] = (double)*(const int64_t *)at; break;
        }
    }
    free(raw);
    return whole;
}

/* The text of the graph, with a NUL behind it. */
static bool read_graph(FILE *file, golden_case *c, size_t bytes) {
    if (bytes == 0) return true;
    c->graph = allocate(bytes + 1);
    c->graph[bytes] = 0;
    return fread(c->graph, 1, bytes, file) == bytes;
}

/* ---- a file ---- */

FILE *golden_open(const char *path) {
    char line[LINE_BYTES];
    FILE *file = fopen(path, "rb");
    if (!file || (fgets(line, sizeof line, file) && !strcmp(line, magic))) return file;
    fclose(file);
    return NULL;
}

/* Up to the line that ends the header; what is wrong, or NULL. */
static const char *read_header(FILE *file, golden_case *c, int64_t *graph_bytes) {
    char line[LINE_BYTES];
    int length = 0;
    if (!fgets(line, sizeof line, file) || sscanf(line, "case %63s%n", c->name, &length) != 1)
        return "a case does not begin with its name";
    const char *at = line + length;
    *graph_bytes = parse_number(&at, MOST_ELEMENTS);
    if (*graph_bytes < 0 || *at != '\n') return "a case does not say how long its graph is";
    while (fgets(line, sizeof line, file)) {
        if (!strcmp(line, end_of_header)) return NULL;
        if (c->count == GOLDEN_ARRAYS || !parse_line(line, &c->arrays[c->count])) return "a line of a header is wrong";
        c->count++;
    }
    return "a header has no end";
}

bool golden_read(golden_case *c, FILE *file, const char **wrong) {
    int64_t graph_bytes = 0;
    const int next = fgetc(file);
    c->graph = NULL;
    c->count = 0;
    *wrong = NULL;
    if (next == EOF) return false;
    ungetc(next, file);
    *wrong = read_header(file, c, &graph_bytes);
    if (!*wrong && !read_graph(file, c, (size_t)graph_bytes)) *wrong = "it ends too early";
    for (int i = 0; i < c->count && !*wrong; i++)
        if (!read_values(file, &c->arrays[i])) *wrong = "it ends too early";
    if (*wrong) golden_release(c);
    return !*wrong;
}

void golden_release(golden_case *c) {
    for (int i = 0; i < c->count; i++) free(c->arrays[i].values);
    free(c->graph);
    c->graph = NULL;
    c->count = 0;
}

/* ---- arrays ---- */

const golden_array *golden_find(const golden_case *c, const char *role, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->arrays[i].role, role) && (!name || !strcmp(c->arrays[i].name, name))) return &c->arrays[i];
    return NULL;
}

an_array golden_room(const golden_array *array, an_dtype dtype) {
    bool is_integer = array->dtype == AN_DTYPE_I32 || array->dtype == AN_DTYPE_I64;
    an_array room = {0};
    room.dtype = is_integer ? array->dtype : dtype;
    room.ndims = array->ndims;
    memcpy(room.dims, array->dims, sizeof room.dims);
    size_t bytes = (size_t)array->count * an_dtype_size(room.dtype);
    room.data = allocate(bytes);
    memset(room.data, 0xff, bytes);
    return room;
}

an_array golden_convert(const golden_array *array, an_dtype dtype) {
    an_array converted = golden_room(array, dtype);
    for (int64_t i = 0; i < array->count; i++) switch (converted.dtype) {
        case AN_DTYPE_F32: ((float *)converted.data)[i] = (float)array->values[i]; break;
        case AN_DTYPE_F64: ((double *)converted.data)[i] = array->values[i]; break;
        case AN_DTYPE_I32: ((int32_t *)converted.data)[i] = (int32_t)array->values[i]; break;
        default: ((int64_t *)converted.data)[i] = (int64_t)array->values[i]; break;
        }
    return converted;
}

double golden_element(const an_array *array, int64_t i) {
    return array->dtype == AN_DTYPE_F32 ? (double)((const float *)array->data)[i] : ((const double *)array->data)[i];
}
