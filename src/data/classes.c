/* Counts the classes in a dataset's targets. Files of labels do not state them. */
#include "base/guard.h"
#include "base/integer.h"
#include "data/samples.h"
#include "data/structs.h"

/* Classes that were seen. Larger ones are not told apart: no file of labels has as many. */
enum { MOST_CLASSES = 1 << 20, BITS = 64, AT_ONCE = 1024 };
typedef struct {
    uint64_t bits[MOST_CLASSES / BITS];
    int64_t count;   /* of different ones */
    int64_t classes; /* the largest and one */
} seen_classes;

static void see(void *user, int64_t begin, const int32_t *targets, int64_t count) {
    seen_classes *seen = user;
    (void)begin;
    for (int64_t i = 0; i < count; i++) {
        const int32_t class = targets[i];
        if (class >= seen->classes) seen->classes = (int64_t) class + 1;
        if (class < 0 || class >= MOST_CLASSES) continue; /* not counted in the loss */
        const uint64_t bit = (uint64_t)1 << class % BITS;
        seen->count += !(seen->bits[class / BITS] & bit);
        seen->bits[class / BITS] |= bit;
    }
}

/* The field of classes; -1: targets are numbers. */
static int find_classes(const an_dataset *dataset, int64_t *each) {
    for (int i = 0; i < dataset->record.field_count; i++) {
        const an_field *field = &dataset->fields[i];
        if (!field->target || field->dtype != AN_DTYPE_I32) continue;
        *each = (int64_t)(dataset->bytes[i] / sizeof(int32_t));
        return i;
    }
    return -1;
}

static void see_known(an_dataset *dataset, an_see_classes *see_some, void *user) {
    int32_t classes[AT_ONCE];
    const int64_t count = an_dataset_count(dataset);
    for (int64_t begin = 0; begin < count; begin += AT_ONCE) {
        const int64_t n = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        for (int64_t i = 0; i < n; i++) classes[i] = dataset->class_at(dataset->record.user, begin + i);
        see_some(user, begin, classes, n);
    }
}

an_status an_dataset_see_classes(an_dataset *dataset, an_see_classes *see_some, void *user) {
    an_status status;
    an_context *ctx = dataset->ctx;
    an_sample_buffer b = {0};
    int64_t each = 0;
    const int64_t count = an_dataset_count(dataset);
    const int field = find_classes(dataset, &each);
    if (dataset->class_at) {
        see_known(dataset, see_some, user);
        return AN_OK;
    }
    AN_TRY(an_sample_buffer_create(&b, ctx, dataset, an_smaller(AT_ONCE, count)));
    for (int64_t begin = 0; begin < count; begin += AT_ONCE) {
        const int64_t n = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        for (int64_t i = 0; i < n; i++) b.indices[i] = begin + i;
        AN_TRY(an_dataset_read(dataset, n, b.indices, b.fields));
        if (field >= 0) see_some(user, begin, b.fields[field], n * each);
    }
    status = AN_OK;
fail:
    an_sample_buffer_destroy(&b, ctx);
    return status;
}

an_status an_dataset_class_info(an_dataset *dataset, an_class_info *info) {
    AN_GUARD;
    AN_NEED(dataset, info);
    an_status status;
    an_context *ctx = dataset->ctx;
    seen_classes *seen = NULL;
    AN_TRY(an_class_info_check(ctx, info));
    if (dataset->class_info) return an_class_info_write(ctx, info, dataset->class_info);
    AN_TRY(an_alloc(ctx, (void **)&seen, 1, sizeof *seen));
    AN_TRY(an_dataset_see_classes(dataset, see, seen));
    int64_t absent = 0;
    while (absent < seen->classes && absent < MOST_CLASSES && seen->bits[absent / BITS] >> absent % BITS & 1) absent++;
    const an_class_info own = {.classes = seen->classes, .seen = seen->count, .first_absent = absent};
    status = an_class_info_write(ctx, info, &own);
fail:
    an_release(ctx, (void **)&seen, 1, sizeof *seen);
    return status;
}

typedef struct {
    int64_t count, *targets;
} class_counts;

static void count_some(void *user, int64_t begin, const int32_t *classes, int64_t count) {
    const class_counts *c = user;
    (void)begin;
    for (int64_t i = 0; i < count; i++)
        if (classes[i] >= 0 && classes[i] < c->count) c->targets[classes[i]]++;
}

an_status an_dataset_count_classes(an_dataset *dataset, int64_t count, int64_t *targets) {
    AN_NEED(dataset, targets);
    an_context *ctx = dataset->ctx;
    class_counts counts = {count, targets};
    int64_t each = 0;
    for (int64_t i = 0; i < count; i++) targets[i] = 0;
    if (find_classes(dataset, &each) < 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the targets of the data are not classes, so there is nothing to count");
    return an_dataset_see_classes(dataset, count_some, &counts);
}
