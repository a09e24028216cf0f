/* NumPy's .npy format: a magic word, a version, the length of a header in Python, the header, the numbers. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/predict/predict.h"

static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
enum { MAGIC = sizeof magic, HEAD = MAGIC + 4, MOST_HEAD = 65535 };

static double of_f32(const char *at) {
    float number;
    memcpy(&number, at, sizeof number);
    return (double)number;
}

static double of_f64(const char *at) {
    double number;
    memcpy(&number, at, sizeof number);
    return number;
}

static double of_u8(const char *at) {
    return (unsigned char)*at;
}

static double of_u16(const char *at) {
    uint16_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static double of_i32(const char *at) {
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static double of_i64(const char *at) {
    int64_t number;
    memcpy(&number, at, sizeof number);
    return (double)number;
}

typedef struct {
    const char *name;
    size_t size;
    double (*get)(const char *at);
} type;

static const type types[] = {{"'<f4'", 4, of_f32}, {"'<f8'", 8, of_f64}, {"'|u1'", 1, of_u8},
                             {"'<u2'", 2, of_u16}, {"'<i4'", 4, of_i32}, {"'<i8'", 8, of_i64}};

/* 'descr' and 'shape' of a head that NumPy wrote; the first dimension, and the product of the others.
 * NULL: `problem` says why. */
static const type *read_head(const char *head, int64_t *first, int64_t *rest, const char **problem) {
    const char *descr = strstr(head, "'descr':"), *shape = strstr(head, "'shape': (");
    const type *found = NULL;
    *problem = "is not a supported .npy file";
    if (!descr || !shape) return NULL;
    *problem = "its numbers are in Fortran order; convert it to C order with numpy.ascontiguousarray";
    if (!strstr(head, "'fortran_order': False")) return NULL;
    *problem = "its type is not one of f4, f8, u1, u2, i4 and i8 in this machine's byte order";
    descr += strlen("'descr':");
    descr += strspn(descr, " ");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strncmp(descr, types[i].name, strlen(types[i].name))) found = &types[i];
    if (!found) return NULL;
    *problem = "its shape cannot be read";
    shape += strlen("'shape': (");
    *first = *rest = 1;
    for (int d = 0; *shape != ')'; d++) {
        char *end;
        const long long size = strtoll(shape, &end, 10);
        if (end == shape || size < 0 || size > INT32_MAX) return NULL;
        if (d == 0)
            *first = size;
        else if (__builtin_mul_overflow(*rest, size, rest) || *rest > INT32_MAX)
            return NULL;
        shape = end + strspn(end, ", ");
    }
    return found;
}

static bool is_token(double number) {
    return number >= 0 && number <= INT32_MAX && number == (double)(int32_t)number;
}

static bool convert(const type *t, const char *raw, int64_t count, an_dtype dtype, void *numbers) {
    for (int64_t i = 0; i < count; i++) {
        const double number = t->get(raw + (size_t)i * t->size);
        if (dtype == AN_DTYPE_F32)
            ((float *)numbers)[i] = (float)number;
        else if (dtype == AN_DTYPE_F64)
            ((double *)numbers)[i] = number;
        else if (is_token(number))
            ((int32_t *)numbers)[i] = (int32_t)number;
        else
            return false;
    }
    return true;
}

/* The numbers behind the head, of which the file must have exactly so many. */
static void *read_numbers(FILE *file, const type *t, int64_t count, an_dtype dtype, const char **problem) {
    const size_t bytes = (size_t)count * t->size;
    struct stat about;
    const long at = ftell(file);
    char *raw = NULL;
    void *numbers = NULL;
    *problem = "its length does not match its header";
    if (at < 0 || fstat(fileno(file), &about) != 0 || about.st_size - at != (off_t)bytes) return NULL;
    *problem = "is too large for memory";
    raw = malloc(bytes);
    numbers = malloc((size_t)count * an_dtype_size(dtype));
    if (raw && numbers) *problem = fread(raw, 1, bytes, file) == bytes ? NULL : "cannot be read to the end";
    if (!*problem && !convert(t, raw, count, dtype, numbers)) *problem = "has numbers that are not tokens";
    free(raw);
    if (!*problem) return numbers;
    free(numbers);
    return NULL;
}

void *cli_npy_read(const char *file, an_dtype dtype, int64_t elements, int64_t *count, char *problem, size_t capacity) {
    unsigned char begin[HEAD];
    const char *why = "is not a supported .npy file";
    void *numbers = NULL;
    int64_t rest = 0;
    *count = 0;
    FILE *stream = fopen(file, "rb");
    char *head = calloc(1, MOST_HEAD + 1);
    const type *t = NULL;
    if (!stream) why = "cannot be opened";
    if (stream && head && fread(begin, 1, HEAD, stream) == HEAD && !memcmp(begin, magic, MAGIC) && begin[MAGIC] == 1) {
        const size_t length = (size_t)begin[HEAD - 2] | (size_t)begin[HEAD - 1] << 8;
        if (fread(head, 1, length, stream) == length) t = read_head(head, count, &rest, &why);
    }
    if (t && (*count < 1 || rest != elements))
        snprintf(problem, capacity, "has %lld samples of %lld numbers, but the model reads %lld", (long long)*count,
                 (long long)rest, (long long)elements);
    else {
        if (t) numbers = read_numbers(stream, t, *count * rest, dtype, &why);
        if (!numbers) snprintf(problem, capacity, "%s", why);
    }
    free(head);
    if (stream) fclose(stream);
    return numbers;
}

/* The numbers begin at a multiple of 64, as NumPy has it. */
void cli_npy_begin(FILE *file, an_dtype dtype, int ndims, const int64_t *dims) {
    enum { ALIGNMENT = 64 };
    char head[256];
    int used =
        snprintf(head, sizeof head, "{'descr': '<f%zu', 'fortran_order': False, 'shape': (", an_dtype_size(dtype));
    for (int d = 0; d < ndims; d++)
        used += snprintf(head + used, sizeof head - (size_t)used, "%lld, ", (long long)dims[d]);
    used += snprintf(head + used, sizeof head - (size_t)used, "), }");
    const int length = (HEAD + used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT - HEAD;
    fwrite(magic, 1, MAGIC, file);
    putc(1, file);
    putc(0, file);
    putc(length & 255, file);
    putc(length >> 8, file);
    fprintf(file, "%-*s\n", length - 1, head);
}
