/* What tests of the text form share: a context with a ledger, files, comparisons of graphs, round trips. */
#ifndef TESTS_IR_TEXT_SUPPORT_H
#define TESTS_IR_TEXT_SUPPORT_H

#include <dirent.h>

#include "ir/text_form.h"
#include "support/support.h"

static an_context *ctx;
static ledger memory;

static inline int set_up(void **state) {
    (void)state;
    memory = (ledger){0};
    return context_with_ledger(&ctx, &memory, 1) == AN_OK ? 0 : -1;
}

static inline int tear_down(void **state) {
    (void)state;
    an_context_destroy(&ctx);
    return memory.held == 0 && !memory.mismatch ? 0 : -1;
}

/* A test in a context of its own, which must be empty at the end. */
#define IN_CONTEXT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* A whole file, ended by NUL. */
static inline char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(1, *length + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *length, file), *length);
    fclose(file);
    return text;
}

#define CORPUS ANNEAL_SOURCE_DIR "/tests/fuzz/corpus/parse/"

/* Calls `check` with every file of the fuzzer's corpus. */
static inline void each_of_corpus(void (*check)(const char *name, const char *text, size_t length)) {
    DIR *folder = opendir(CORPUS);
    int files = 0;
    if (!folder) fail_msg("%s is not there", CORPUS);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        size_t length;
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s%s", CORPUS, entry->d_name);
        char *text = read_file(path, &length);
        check(entry->d_name, text, length);
        free(text);
        files++;
    }
    closedir(folder);
    assert_true(files > 10);
}

static inline an_graph *must_parse(const char *text) {
    an_graph *g = NULL;
    an_status status = an_graph_parse_dump(&g, ctx, text, strlen(text));
    if (status != AN_OK) fail_msg("%s: %s\nin\n%s", an_status_name(status), an_last_error(ctx), text);
    return g;
}

static inline void assert_same_text(const char *what, const char *first, const char *second) {
    if (strcmp(first, second) != 0) fail_msg("the %s is not the same:\n%s\n---\n%s", what, first, second);
}

/* Dimensions of two graphs are the same if they are written in the same way. */
static inline void assert_same_dims(const an_graph *a, const an_graph *b, int count, const an_dim *x, const an_dim *y) {
    for (int i = 0; i < count; i++) {
        an_text s, t;
        an_text_init(&s, a->ctx);
        an_text_init(&t, b->ctx);
        an_dimensions_print(&a->dimensions, x[i], &s);
        an_dimensions_print(&b->dimensions, y[i], &t);
        assert_string_equal(s.bytes, t.bytes);
        an_text_destroy(&s);
        an_text_destroy(&t);
    }
}

static inline void assert_same_attributes(const an_graph *a, const an_graph *b, const an_node *x, const an_node *y) {
    for (const an_attribute *attribute = x->op->attributes; attribute && attribute->name; attribute++) {
        const void *u = (const char *)x->attributes + attribute->offset;
        const void *v = (const char *)y->attributes + attribute->offset;
        const char *s, *t;
        switch (attribute->type) {
        case AN_ATTRIBUTE_INT: assert_memory_equal(u, v, sizeof(int64_t)); break;
        case AN_ATTRIBUTE_BOOL: assert_int_equal(*(const bool *)u, *(const bool *)v); break;
        case AN_ATTRIBUTE_FLOAT: assert_memory_equal(u, v, sizeof(double)); break;
        case AN_ATTRIBUTE_STRING:
            s = *(const char *const *)u;
            t = *(const char *const *)v;
            assert_int_equal(s == NULL, t == NULL);
            if (s) assert_string_equal(s, t);
            break;
        case AN_ATTRIBUTE_DTYPE: assert_int_equal(*(const an_dtype *)u, *(const an_dtype *)v); break;
        case AN_ATTRIBUTE_DIM: assert_same_dims(a, b, 1, u, v); break;
        case AN_ATTRIBUTE_DIMS:
            assert_int_equal(((const an_dim_list *)u)->count, ((const an_dim_list *)v)->count);
            assert_same_dims(a, b, ((const an_dim_list *)u)->count, ((const an_dim_list *)u)->values,
                             ((const an_dim_list *)v)->values);
            break;
        case AN_ATTRIBUTE_INTS: assert_memory_equal(u, v, sizeof(an_int_list)); break;
        }
    }
}

static inline void assert_same_node(const an_graph *a, const an_graph *b, const an_node *x, const an_node *y) {
    assert_ptr_equal(x->op, y->op);
    assert_int_equal(x->input_count, y->input_count);
    assert_int_equal(x->output_count, y->output_count);
    assert_int_equal(x->block, y->block);
    assert_string_equal(x->path, y->path);
    for (int i = 0; i < x->input_count; i++) {
        assert_int_equal(x->inputs[i].result == NULL, y->inputs[i].result == NULL);
        if (x->inputs[i].result) assert_int_equal(x->inputs[i].result->number, y->inputs[i].result->number);
    }
    for (int i = 0; i < x->output_count; i++) {
        const an_result *r = &x->outputs[i], *s = &y->outputs[i];
        assert_int_equal(r->number, s->number);
        assert_int_equal(r->dtype, s->dtype);
        assert_int_equal(r->ndims, s->ndims);
        assert_int_equal(r->storage, s->storage);
        assert_int_equal(r->root->number, s->root->number);
        assert_memory_equal(r->order, s->order, sizeof r->order);
        assert_same_dims(a, b, r->ndims, r->dims, s->dims);
        assert_same_dims(a, b, r->ndims, r->strides, s->strides);
    }
    assert_same_attributes(a, b, x, y);
}

/* All that belongs to the model. */
static inline void assert_same_graph(const an_graph *a, const an_graph *b) {
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->node_count, b->node_count);
    assert_int_equal(a->result_count, b->result_count);
    assert_int_equal(a->dimensions.symbol_count, b->dimensions.symbol_count);
    for (size_t i = 0; i < a->dimensions.symbol_count; i++)
        assert_string_equal(a->dimensions.symbols[i].name, b->dimensions.symbols[i].name);
    assert_int_equal(a->block_count, b->block_count);
    for (size_t i = 0; i < a->block_count; i++) {
        assert_string_equal(a->blocks[i].name, b->blocks[i].name);
        assert_string_equal(a->blocks[i].path, b->blocks[i].path);
        assert_int_equal(a->blocks[i].depth, b->blocks[i].depth);
        assert_int_equal(a->blocks[i].parent, b->blocks[i].parent);
        assert_int_equal(a->blocks[i].is_scope, b->blocks[i].is_scope);
    }
    const an_node *y = b->first;
    for (const an_node *x = a->first; x; x = x->next, y = y->next) assert_same_node(a, b, x, y);
    assert_int_equal(a->parameter_count, b->parameter_count);
    for (size_t i = 0; i < a->parameter_count; i++) {
        assert_string_equal(a->parameters[i].name, b->parameters[i].name);
        assert_int_equal(a->parameters[i].depth, b->parameters[i].depth);
        assert_int_equal(a->parameters[i].node->number, b->parameters[i].node->number);
    }
    assert_int_equal(a->source_count, b->source_count);
    for (size_t i = 0; i < a->source_count; i++) assert_int_equal(a->sources[i]->number, b->sources[i]->number);
    assert_int_equal(a->scalar_count, b->scalar_count);
    assert_int_equal((uint32_t)a->loss, (uint32_t)b->loss); /* the upper half is the graph's serial */
    assert_int_equal((uint32_t)a->targets, (uint32_t)b->targets);
}

/* Print, read, print: the same text and the same graph. */
static inline void check_model_round_trip(const an_graph *g) {
    char *first = NULL, *second = NULL;
    an_graph *again = NULL;
    OK(ctx, an_graph_print(g, &first));
    OK(ctx, an_graph_parse(&again, ctx, first, strlen(first)));
    OK(ctx, an_graph_print(again, &second));
    assert_same_text("model", first, second);
    assert_same_graph(g, again);
    OK(ctx, an_graph_verify(again));
    an_graph_destroy(&again);
    an_string_release(ctx, &first);
    an_string_release(ctx, &second);
}

static inline void check_dump_round_trip(const an_graph *g) {
    an_text first, second;
    an_text_init(&first, ctx);
    an_text_init(&second, ctx);
    OK(ctx, an_graph_dump(g, &first));
    an_graph *again = must_parse(first.bytes);
    OK(ctx, an_graph_dump(again, &second));
    assert_same_text("dump", first.bytes, second.bytes);
    an_graph_destroy(&again);
    an_text_destroy(&first);
    an_text_destroy(&second);
}

#endif
