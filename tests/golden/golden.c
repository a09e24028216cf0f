#include "golden/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 256, MOST_ELEMENTS = 1 << 24 };

static const char magic[] = "anneal golden 1\n", end_of_header[] = "end\n";

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
static int64_t parse_number(const char **at, int64_t most) {
    char *end;
    long long number = strtoll(*at, &end, 10);
    bool is_fine = end != *at && number >= 0 && number <= most;
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

bool golden_read(golden_file *file, const char *path, char *message, size_t capacity) {
    char line[LINE_BYTES];
    FILE *stream = fopen(path, "rb");
    const char *wrong = NULL;
    file->count = 0;
    if (!stream) {
        snprintf(message, capacity, "%s cannot be opened", path);
        return false;
    }
    if (!fgets(line, sizeof line, stream) || strcmp(line, magic) != 0) wrong = "it does not begin as a golden file";
    while (!wrong && fgets(line, sizeof line, stream) && strcmp(line, end_of_header) != 0) {
        if (file->count == GOLDEN_ARRAYS || !parse_line(line, &file->arrays[file->count]))
            wrong = "a line of its header is wrong";
        else
            file->count++;
    }
    for (int i = 0; i < file->count && !wrong; i++)
        if (!read_values(stream, &file->arrays[i])) wrong = "it ends too early";
    if (!wrong && fgetc(stream) != EOF) wrong = "something follows the last array";
    fclose(stream);
    if (!wrong) return true;
    snprintf(message, capacity, "%s: %s", path, wrong);
    golden_release(file);
    return false;
}

void golden_release(golden_file *file) {
    for (int i = 0; i < file->count; i++) free(file->arrays[i].values);
    file->count = 0;
}

/* ---- arrays ---- */

const golden_array *golden_find(const golden_file *file, const char *role, const char *name) {
    for (int i = 0; i < file->count; i++)
        if (!strcmp(file->arrays[i].role, role) && (!name || !strcmp(file->arrays[i].name, name)))
            return &file->arrays[i];
    return NULL;
}

an_array golden_room(const golden_array *array, an_dtype dtype) {
    bool is_integer = array->dtype == AN_DTYPE_I32 || array->dtype == AN_DTYPE_I64;
    an_array room = AN_INIT(room);
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
