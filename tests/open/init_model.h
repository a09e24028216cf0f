/* A model whose initial weights come from files, for tests: files with its tensors, and whether they were loaded. */
#ifndef TESTS_OPEN_INIT_MODEL_H
#define TESTS_OPEN_INIT_MODEL_H

#include "base/float16.h"
#include "exec/params.h"
#include "formats/safetensors.h"
#include "train/trainer.h"

#include "open/init_support.h" /* last, as its ctx would be shadowed */

#define SUMS "data: {train: {type: csv, path: sums.csv, inputs: [a, b], targets: sum}}\n"
#define REST "run: {steps: 3, seed: 5}\nbatch: {global: 8}\n"
#define MODEL(init) "model: {type: mlp, hidden: [4], init: " init "}\n" SUMS REST
#define FROM(path) MODEL("{from: " path "}")

/* ---- files ---- */

enum { MOST_TENSORS = 64, MOST_BYTES = 1 << 20 };

typedef struct {
    an_safetensor tensors[MOST_TENSORS];
    size_t count;
    unsigned char *data; /* MOST_BYTES */
    int64_t bytes;
} builder;

static inline builder begin(void) {
    builder b = {.data = calloc(1, MOST_BYTES)};
    assert_non_null(b.data);
    return b;
}

/* Numbers that every type has: a few bits of mantissa. */
static inline double value_of(int64_t i) {
    return (double)(i * 7 % 61 - 30) / 16;
}

static inline void put(unsigned char *at, const char *type, double x) {
    const float f = (float)x;
    const uint16_t bf16 = an_f32_to_bf16(f), f16 = an_f32_to_f16(f);
    if (!strcmp(type, "F64")) memcpy(at, &x, sizeof x);
    if (!strcmp(type, "F32")) memcpy(at, &f, sizeof f);
    if (!strcmp(type, "BF16")) memcpy(at, &bf16, sizeof bf16);
    if (!strcmp(type, "F16")) memcpy(at, &f16, sizeof f16);
}

static inline void add(builder *b, const char *name, const char *type, int ndims, int64_t rows, int64_t columns) {
    assert_true(b->count < MOST_TENSORS);
    an_safetensor *t = &b->tensors[b->count++];
    *t = (an_safetensor){.name = name,
                         .type = an_safetensors_type_named(type),
                         .ndims = ndims,
                         .dims = {rows, columns},
                         .begin = b->bytes};
    assert_true(an_safetensor_measure(t, &t->bytes) && b->bytes + t->bytes <= MOST_BYTES);
    const int64_t size = (int64_t)t->type->size;
    for (int64_t i = 0; i < t->bytes / size; i++) put(b->data + t->begin + i * size, type, value_of(i));
    b->bytes += t->bytes;
}

static inline void end(builder *b, const char *path) {
    write_tensors(path, b->tensors, b->count, b->data, (size_t)b->bytes);
    free(b->data);
    b->data = NULL;
}

/* The tensors of MODEL, with something before their names. */
static inline void write_model(const char *path, const char *type, const char *prefix) {
    static const struct {
        const char *name;
        int ndims;
        int64_t rows, columns;
    } parts[] = {
        {"hidden.0.weight", 2, 4, 2}, {"hidden.0.bias", 1, 4, 0}, {"output.weight", 2, 1, 4}, {"output.bias", 1, 1, 0}};
    char names[4][64];
    builder b = begin();
    for (int i = 3; i >= 0; i--) { /* not in the model's order */
        snprintf(names[i], sizeof names[i], "%s%s", prefix, parts[i].name);
        add(&b, names[i], type, parts[i].ndims, parts[i].rows, parts[i].columns);
    }
    end(&b, path);
}

/* ---- models ---- */

static inline void assert_weight(const an_trainer *t, const char *name, int64_t element, double expected) {
    const an_params *p = t->params;
    for (size_t i = 0; i < p->entry_count; i++) {
        const an_stored *e = &p->entries[i];
        if (strcmp(e->name, name) != 0) continue;
        const char *base = (const char *)an_params_base(p, e->storage) + e->offset;
        double x = 0;
        float f;
        assert_true(element < e->elements);
        if (e->dtype == AN_DTYPE_F64) memcpy(&x, base + (size_t)element * sizeof x, sizeof x);
        if (e->dtype == AN_DTYPE_F32) {
            memcpy(&f, base + (size_t)element * sizeof f, sizeof f);
            x = (double)f;
        }
        if (x != expected) fail_msg("%s[%lld] is %g, not %g", name, (long long)element, x, expected);
        return;
    }
    fail_msg("there is no %s", name);
}

static inline void assert_loaded(const an_trainer *t) {
    for (int64_t i = 0; i < 8; i++) assert_weight(t, "hidden.0.weight", i, value_of(i));
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "hidden.0.bias", i, value_of(i));
    for (int64_t i = 0; i < 4; i++) assert_weight(t, "output.weight", i, value_of(i));
    assert_weight(t, "output.bias", 0, value_of(0));
}

static inline void assert_loads(const char *config) {
    an_trainer *t = open_run(config);
    assert_loaded(t);
    assert_int_equal(an_trainer_next_step(t), 0);
    train(t);
    an_trainer_destroy(&t);
}

#endif
