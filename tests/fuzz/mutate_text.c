/* Mutations that know the text form: lines are written, doubled, moved and dropped, so that the fuzzer gets past the
 * grammar and into the ops. Nodes are made from the table of ops, so a new op is fuzzed without a change here. Half of
 * all mutations are left to libFuzzer's own, which knows bytes. */
#include <stdio.h>
#include <string.h>

#include "ir/text_form.h"
#include "ops/ops.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

enum { LINE_BYTES = 1024 };

typedef struct writer {
    uint64_t random;
    const char *text; /* that is mutated: names come from it */
    size_t size;
    char line[LINE_BYTES];
    size_t length;
} writer;

/* SplitMix64. */
static uint64_t next(writer *w, uint64_t below) {
    uint64_t z = (w->random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void put(writer *w, const char *piece, size_t length) {
    if (length > LINE_BYTES - w->length) return;
    memcpy(w->line + w->length, piece, length);
    w->length += length;
}

static void put_string(writer *w, const char *piece) {
    put(w, piece, strlen(piece));
}

/* One of some pieces. */
#define PUT_ANY(w, ...)                                                          \
    do {                                                                         \
        static const char *const pieces_[] = {__VA_ARGS__};                      \
        put_string((w), pieces_[next((w), sizeof pieces_ / sizeof pieces_[0])]); \
    } while (0)

static bool is_name_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

/* A word of the text that follows `mark` (% or the blank after symbol), looked for from a random place on. */
static void put_word(writer *w, char mark, const char *otherwise) {
    size_t start = w->size ? (size_t)next(w, w->size) : 0;
    for (size_t i = 0; i < w->size; i++) {
        size_t at = (start + i) % w->size, end = at + 1;
        if (w->text[at] != mark) continue;
        if (mark == ' ' && (at < 6 || memcmp(w->text + at - 6, "symbol", 6) != 0)) continue;
        while (end < w->size && is_name_part(w->text[end])) end++;
        if (end == at + 1) continue;
        put(w, w->text + at + 1, end - at - 1);
        return;
    }
    put_string(w, otherwise);
}

static void put_int(writer *w) {
    PUT_ANY(w, "0", "0", "1", "1", "2", "2", "3", "4", "-1", "-2", "7", "8", "16", "2147483647", "2147483648",
            "4294967296", "-2147483649", "9223372036854775807", "-9223372036854775808", "4611686018427387904");
}

static void put_dim(writer *w) {
    switch (next(w, 8)) {
    case 0: put_word(w, ' ', "3"); break;
    case 1:
        put_word(w, ' ', "3");
        PUT_ANY(w, "+1", "-1", "*2", "*3-1");
        break;
    case 2:
        put_string(w, "window(");
        put_word(w, ' ', "9");
        PUT_ANY(w, ",3,2)", ",1,1)", ",2,3)", "*2,5,7)");
        break;
    case 3: PUT_ANY(w, "0", "9223372036854775807", "4611686018427387904", "3037000500", "65536"); break;
    default: PUT_ANY(w, "1", "2", "3", "4", "6", "8", "12"); break;
    }
}

static void put_list(writer *w, void (*element)(writer *w)) {
    int count = next(w, 4) ? (int)next(w, 5) : (int)next(w, AN_MAX_DIMS + 1);
    put_string(w, "[");
    for (int i = 0; i < count; i++) {
        if (i > 0) put_string(w, ",");
        element(w);
    }
    put_string(w, "]");
}

static void put_dtype(writer *w) {
    PUT_ANY(w, "f32", "f32", "f32", "f64", "bf16", "f16", "i32", "i64", "u8");
}

static void put_attribute(writer *w, const an_attribute *a) {
    put_string(w, a->name);
    put_string(w, "=");
    switch (a->type) {
    case AN_ATTRIBUTE_INT: put_int(w); break;
    case AN_ATTRIBUTE_BOOL: PUT_ANY(w, "true", "false"); break;
    case AN_ATTRIBUTE_FLOAT:
        PUT_ANY(w, "0", "1", "0.5", "1e-5", "-1", "-0", "inf", "-inf", "nan", "1e308", "5e-324");
        break;
    case AN_ATTRIBUTE_STRING: PUT_ANY(w, "\"\"", "\"a\"", "\"b\"", "\"x\"", "\"step\"", "\"\\xff\""); break;
    case AN_ATTRIBUTE_DTYPE: put_dtype(w); break;
    case AN_ATTRIBUTE_DIM: put_dim(w); break;
    case AN_ATTRIBUTE_DIMS: put_list(w, put_dim); break;
    case AN_ATTRIBUTE_INTS: put_list(w, put_int); break;
    }
}

/* %m12, %m7 = split(%x, axis=1) */
static void put_node(writer *w) {
    enum { SOME_OUTPUTS = 4, NAMES = 64 };
    size_t ops = 0;
    while (an_op_table[ops]) ops++;
    const an_op *op = an_op_table[next(w, ops)];
    int outputs = op->outputs == AN_OUTPUTS_ANY ? 1 + (int)next(w, SOME_OUTPUTS) : op->outputs;
    int inputs = op->inputs_min + (int)next(w, (uint64_t)(op->inputs_max - op->inputs_min) + 1);
    const char *separator = "";
    for (int i = 0; i < outputs; i++) {
        char name[16];
        snprintf(name, sizeof name, "%s%%m%d", i ? ", " : "", (int)next(w, NAMES));
        put_string(w, name);
    }
    if (outputs > 0) put_string(w, " = ");
    put_string(w, op->name);
    put_string(w, "(");
    for (int i = 0; i < inputs; i++, separator = ", ") {
        put_string(w, separator);
        if (next(w, 16)) {
            put_string(w, "%");
            put_word(w, '%', "x");
        } else {
            put_string(w, "_");
        }
    }
    for (const an_attribute *a = op->attributes; a && a->name; a++) {
        if (next(w, 4) == 0) continue;
        put_string(w, separator);
        put_attribute(w, a);
        separator = ", ";
    }
    put_string(w, ")");
    if (op->flags & AN_OP_SOURCE && next(w, 4)) {
        put_string(w, " : ");
        put_dtype(w);
        put_list(w, put_dim);
    }
}

static void put_statement(writer *w) {
    switch (next(w, 16)) {
    case 0: PUT_ANY(w, "symbol n", "symbol m", "symbol batch"); break;
    case 1: PUT_ANY(w, "block 1 \"h\" depth=1", "scope 1 \"s\"", "scope 2 \"t\" parent=1"); break;
    case 2:
        put_string(w, "loss %");
        put_word(w, '%', "x");
        break;
    default: put_node(w); break;
    }
    put_string(w, "\n");
}

/* The beginning of a random line, and where the next begins. */
static size_t any_line(writer *w, size_t *end) {
    size_t at = w->size ? (size_t)next(w, w->size) : 0;
    while (at > 0 && w->text[at - 1] != '\n') at--;
    *end = at;
    while (*end < w->size && w->text[*end] != '\n') ++*end;
    if (*end < w->size) ++*end;
    return at;
}

/* Puts the writer's line into the data at a place. */
static size_t insert(uint8_t *data, size_t size, size_t max_size, size_t at, const writer *w) {
    if (w->length > max_size - size) return size;
    memmove(data + at + w->length, data + at, size - at);
    memcpy(data + at, w->line, w->length);
    return size + w->length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    writer w = {.random = seed, .text = (const char *)data, .size = size};
    size_t end, begin;
    switch (next(&w, 12)) {
    case 0:
    case 1:
    case 2: put_statement(&w); return insert(data, size, max_size, size, &w);
    case 3: /* in between */
        put_statement(&w);
        begin = any_line(&w, &end);
        return insert(data, size, max_size, begin, &w);
    case 4: /* without a line */
        begin = any_line(&w, &end);
        memmove(data + begin, data + end, size - end);
        return size - (end - begin);
    case 5: /* a line again, elsewhere */
        begin = any_line(&w, &end);
        put(&w, w.text + begin, end - begin);
        begin = any_line(&w, &end);
        return insert(data, size, max_size, begin, &w);
    default: return LLVMFuzzerMutate(data, size, max_size);
    }
}
