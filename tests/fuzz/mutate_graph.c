/* Mutations for what comes behind the text form. Random lines are nearly always refused, so half of all mutations grow
 * a graph that can be read: nodes with random inputs and attributes are tried until inference takes one, and the graph
 * is printed again. The others change single words of the text, or leave it to mutate_text.c, so that wrong graphs do
 * not die out. */
#include <stdlib.h>

#define LLVMFuzzerCustomMutator mutate_text
// NOLINTNEXTLINE(bugprone-suspicious-include): libFuzzer takes one mutator by name, and this one wraps it
#include "mutate_text.c"
#undef LLVMFuzzerCustomMutator

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

/* ---- growing ---- */

enum { TRIES = 64, SMALL = 4, READABLE_BYTES = 4096 };

static an_value any_value(writer *w, const an_graph *g) {
    if (g->result_count == 0 || next(w, 24) == 0) return AN_NONE;
    size_t back = next(w, 2) ? g->result_count : 3; /* what is new is read most */
    return an_graph_value(g,
                          g->results[g->result_count - 1 - next(w, back < g->result_count ? back : g->result_count)]);
}

static int64_t any_int(writer *w) {
    static const int64_t hurting[] = {-1, 8, 1 << 16, INT32_MAX, UINT32_MAX, INT64_C(1) << 62, INT64_MAX, INT64_MIN};
    return next(w, 16) ? (int64_t)next(w, SMALL) : hurting[next(w, sizeof hurting / sizeof *hurting)];
}

static double any_float(writer *w) {
    static const double some[] = {0, 0.5, 1, 1e-5, 0.1, 2, 10000, -1, -0.0, 1e300, 5e-324, 1e-40, 1e30};
    if (next(w, 16) == 0) return next(w, 2) ? __builtin_inf() : __builtin_nan("");
    return some[next(w, sizeof some / sizeof *some)];
}

static an_dim any_dim(writer *w, an_graph *g) {
    const an_result *r = g->result_count ? g->results[next(w, g->result_count)] : NULL;
    an_dim dim = 1 + (an_dim)next(w, SMALL);
    if (next(w, 2) && r && r->ndims) dim = r->dims[next(w, (uint64_t)r->ndims)];
    if (next(w, 12) == 0) dim = an_symbol_dim(g, next(w, 2) ? "n" : "t");
    switch (next(w, 12)) {
    case 0: return an_dim_add(g, dim, 1);
    case 1: return an_dim_subtract(g, dim, 1);
    case 2: return an_dim_subtract(g, 1 + (an_dim)next(w, SMALL), dim);
    case 3: return an_dim_multiply(g, dim, next(w, 4) ? 2 : INT64_C(1) << next(w, 62));
    case 4: return an_dim_window(g, dim, 1 + (int64_t)next(w, 3), 1 + (int64_t)next(w, 3));
    default: return dim;
    }
}

/* Of some result as they are, or here and there changed. */
static an_dim_list any_dims(writer *w, an_graph *g) {
    const an_result *r = g->result_count ? g->results[g->result_count - 1 - next(w, g->result_count)] : NULL;
    an_dim_list list = {.count = r && next(w, 3) ? r->ndims : (int)next(w, 5)};
    for (int i = 0; i < list.count; i++) list.values[i] = r && i < r->ndims && next(w, 4) ? r->dims[i] : any_dim(w, g);
    return list;
}

/* Pairs, sets of axes, permutations: whatever the op makes of it. */
static an_int_list any_ints(writer *w) {
    an_int_list list = {.count = (int)next(w, 5)};
    bool rises = next(w, 2);
    for (int i = 0; i < list.count; i++) list.values[i] = rises ? i : any_int(w);
    if (rises && list.count > 1 && next(w, 2)) {
        int64_t first = list.values[0];
        int swap = (int)next(w, (uint64_t)list.count);
        list.values[0] = list.values[swap];
        list.values[swap] = first;
    }
    return list;
}

static void any_attribute(writer *w, an_graph *g, const an_attribute *a, void *to, char *name, size_t capacity) {
    switch (a->type) {
    case AN_ATTRIBUTE_INT: *(int64_t *)to = any_int(w); break;
    case AN_ATTRIBUTE_BOOL: *(bool *)to = next(w, 2); break;
    case AN_ATTRIBUTE_FLOAT: *(double *)to = any_float(w); break;
    case AN_ATTRIBUTE_DTYPE: *(an_dtype *)to = (an_dtype)(next(w, 2) ? AN_DTYPE_F32 : next(w, AN_DTYPE_U8 + 1)); break;
    case AN_ATTRIBUTE_DIM: *(an_dim *)to = next(w, 3) ? any_dim(w, g) : (an_dim)next(w, 2); break;
    case AN_ATTRIBUTE_DIMS: *(an_dim_list *)to = any_dims(w, g); break;
    case AN_ATTRIBUTE_INTS: *(an_int_list *)to = any_ints(w); break;
    case AN_ATTRIBUTE_STRING:
        snprintf(name, capacity, "v%d", (int)next(w, 1000));
        *(const char **)to = name;
        break;
    }
}

static bool try_node(writer *w, an_graph *g) {
    enum { ATTRIBUTE_BYTES = 1024 };
    static _Alignas(16) char attributes[ATTRIBUTE_BYTES];
    char name[16];
    an_value inputs[AN_MAX_INPUTS];
    size_t ops = 0;
    while (an_op_table[ops]) ops++;
    const an_op *op = an_op_table[next(w, ops)];
    int outputs = op->outputs == AN_OUTPUTS_ANY ? 1 + (int)next(w, SMALL) : op->outputs;
    int maximum = op->inputs_max < 9 ? op->inputs_max : op->inputs_min + 2;
    int count = op->inputs_min + (int)next(w, (uint64_t)(maximum - op->inputs_min) + 1);
    memset(attributes, 0, sizeof attributes);
    for (int i = 0; i < count; i++) inputs[i] = i > 0 && next(w, 4) == 0 ? inputs[i - 1] : any_value(w, g);
    for (const an_attribute *a = op->attributes; a && a->name; a++)
        if (!a->noted && next(w, 8)) any_attribute(w, g, a, attributes + a->offset, name, sizeof name);
    if (g->status == AN_OK) an_graph_add_outputs(g, op, count, inputs, attributes, outputs);
    bool added = g->status == AN_OK;
    g->status = AN_OK; /* what was refused left nothing behind */
    return added;
}

/* The sum of some value is the loss, if there is none. */
static void add_loss(writer *w, an_graph *g) {
    const an_value value = any_value(w, g);
    const an_result *r = an_graph_result(g, value);
    if (g->loss || !r || !an_dtype_is_float(r->dtype)) return;
    an_value sum = an_reduce_sum(g, value, AN_ALL_AXES, false);
    an_graph_set_loss(g, r->dtype == AN_DTYPE_F64 ? sum : an_cast(g, sum, AN_DTYPE_F32), AN_NONE);
    g->status = AN_OK;
}

/* Reads a text without the lines that cannot be read. Changes the text. */
static an_graph *read_rest(an_context *context, char *text, size_t size) {
    enum { MOST_LINES = 16 };
    an_graph *g = NULL;
    for (int i = 0; i < MOST_LINES; i++) {
        char *rest = NULL;
        size_t begin = 0, end;
        if (an_graph_parse(&g, context, text, size) == AN_OK) return g;
        long line = strtol(an_last_error(context), &rest, 10); /* the message begins with line:column: */
        if (*rest != ':') return NULL;
        for (; line > 1 && begin < size; line -= text[begin++] == '\n') continue;
        for (end = begin; end < size && text[end++] != '\n';) continue;
        if (begin == 0 || begin == end) return NULL;
        memmove(text + begin, text + end, size - end);
        size -= end - begin;
    }
    return NULL;
}

/* 0: the text cannot be read, or what it became is too long. */
static size_t grow(writer *w, uint8_t *data, size_t size, size_t max_size) {
    static an_context *context;
    an_context_options options;
    an_context_options_init(&options, sizeof options);
    static char readable[READABLE_BYTES];
    char *text = NULL;
    size_t length = 0;
    options.threads = 1;
    if (size > sizeof readable || (!context && an_context_create(&context, &options))) return 0;
    memcpy(readable, data, size);
    an_graph *g = read_rest(context, readable, size);
    if (!g) return 0;
    for (uint64_t nodes = 1 + next(w, 3); nodes > 0; nodes--)
        for (int i = 0; i < TRIES && !try_node(w, g); i++) continue;
    if (next(w, 2)) {
        char name[16];
        snprintf(name, sizeof name, "o%d", (int)next(w, SMALL));
        if (g->result_count) an_graph_set_output(g, an_graph_value(g, g->results[g->result_count - 1]), name);
        g->status = AN_OK;
    }
    if (next(w, 4) == 0) add_loss(w, g);
    if (an_graph_print(g, &text) == AN_OK && strlen(text) <= max_size) {
        length = strlen(text);
        memcpy(data, text, length);
    }
    an_string_release(context, &text);
    an_graph_destroy(&g);
    return length;
}

/* ---- changing words ---- */

static bool is_word(char c) {
    return is_name_part(c) || c == '%' || c == '-';
}

/* A word of the same kind instead of one that a random place lies in or before. */
static size_t change_word(writer *w, uint8_t *data, size_t size, size_t max_size) {
    static const char *const types[] = {"f32", "f64", "bf16", "f16", "i32", "i64", "u8"};
    const char *text = w->text;
    size_t begin = size ? (size_t)next(w, size) : 0, end;
    while (begin > 0 && is_word(text[begin - 1])) begin--;
    while (begin < size && !is_word(text[begin])) begin++;
    for (end = begin; end < size && is_word(text[end]); end++) continue;
    if (begin == end) return size;
    if (text[begin] == '%') {
        put_string(w, "%");
        put_word(w, '%', "x");
    } else if ((text[begin] >= '0' && text[begin] <= '9') || text[begin] == '-') {
        put_int(w);
    } else if (next(w, 2)) {
        put_dim(w);
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i]) == end - begin && !memcmp(types[i], text + begin, end - begin)) {
            w->length = 0;
            put_dtype(w);
        }
    if (w->length == 0 || size - (end - begin) + w->length > max_size) return size;
    memmove(data + begin + w->length, data + end, size - end);
    memcpy(data + begin, w->line, w->length);
    return size - (end - begin) + w->length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed) {
    writer w = {.random = seed, .text = (const char *)data, .size = size};
    size_t grown = 0;
    switch (next(&w, 8)) {
    case 0: return mutate_text(data, size, max_size, seed);
    case 1:
    case 2:
    case 3: return change_word(&w, data, size, max_size);
    default: grown = grow(&w, data, size, max_size); break;
    }
    return grown ? grown : mutate_text(data, size, max_size, seed);
}
