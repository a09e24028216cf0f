/* A look before the first step: numbers out of range, classes that training never sees, and batch norm over too few samples. */
#include <string.h>

#include "config/config.h"
#include "open/open.h"

/* Classes that were seen. Larger ones are not told apart: no file of labels has as many. */
enum { MOST_CLASSES = 1 << 20, BITS = 64 };
typedef struct {
    uint64_t bits[MOST_CLASSES / BITS];
    int64_t count;   /* of different ones */
    int64_t classes; /* the largest and one */
} seen_classes;

static void see(seen_classes *seen, const int32_t *targets, int64_t count) {
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
    an_field field = AN_INIT(field);
    for (int i = 0; i < an_dataset_field_count(dataset); i++) {
        if (an_dataset_field(dataset, i, &field) != AN_OK || !field.target || field.dtype != AN_DTYPE_I32) continue;
        *each = an_open_elements(&field);
        return i;
    }
    return -1;
}

/* Reads a source that is in memory once. O(samples). */
static an_status look_through(an_config *config, an_context *ctx, an_dataset *dataset, const char *type,
                              seen_classes *seen) {
    enum { AT_ONCE = 1024 };
    an_status status;
    an_sample_buffer b = {0};
    int64_t each = 0;
    if (!dataset || !(an_config_is(config, type, "csv") || an_config_is(config, type, "idx"))) return AN_OK;
    const int64_t count = an_dataset_count(dataset);
    const int field = find_classes(dataset, &each);
    AN_TRY(an_sample_buffer_create(&b, ctx, dataset, AT_ONCE));
    for (int64_t begin = 0; begin < count; begin += AT_ONCE) {
        const int64_t n = count - begin < AT_ONCE ? count - begin : AT_ONCE;
        for (int64_t i = 0; i < n; i++) b.indices[i] = begin + i;
        AN_TRY(an_dataset_read(dataset, n, b.indices, b.fields));
        if (field >= 0) see(seen, b.fields[field], n * each);
    }
    status = AN_OK;
fail:
    an_sample_buffer_destroy(&b, ctx);
    return status;
}

/* A class that training never sees is never predicted. Files that are sorted by class lose one where they are split. */
static an_status tell_missing(an_config *config, const seen_classes *training, int64_t classes) {
    const an_config_node *node = an_config_find(config, "data.train");
    const int64_t missing = classes - training->count;
    int64_t first = 0;
    if (training->count == 0 || missing <= 0) return AN_OK;
    if (missing > training->count)
        return an_config_warn(
            config, node->place,
            "the largest class is %lld, so there are %lld classes, but data.train has samples of %lld "
            "only; is one label wrong? Number classes from 0 without gaps",
            (long long)classes - 1, (long long)classes, (long long)training->count);
    while (training->bits[first / BITS] >> first % BITS & 1) first++;
    return an_config_warn(config, node->place,
                          "data.train has no sample of class %lld%s, of %lld classes; if the file is sorted by class, "
                          "shuffle its lines before it is split",
                          (long long)first, missing > 1 ? " and others" : "", (long long)classes);
}

an_status an_open_look(an_config *config, an_context *ctx, an_dataset *training, an_dataset *evaluation) {
    an_status status;
    seen_classes *seen = NULL; /* of training, of evaluation */
    AN_TRY(an_alloc(ctx, (void **)&seen, 2, sizeof *seen));
    AN_TRY(look_through(config, ctx, training, "data.train.type", &seen[0]));
    AN_TRY(look_through(config, ctx, evaluation, "data.eval.type", &seen[1]));
    AN_TRY(tell_missing(config, &seen[0], seen[0].classes > seen[1].classes ? seen[0].classes : seen[1].classes));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&seen, 2, sizeof *seen);
    return status;
}

/* ---- batch norm ---- */

/* The fewest samples of a micro-batch of a step. */
static int64_t fewest_in_step(const an_batches *b, int64_t count) {
    const int64_t leaves[] = {count / b->leaves, (count + b->leaves - 1) / b->leaves};
    int64_t fewest = count;
    for (int i = 0; i < 2; i++) {
        const int64_t rest = leaves[i] % b->micro, least = rest > 0 ? rest : b->micro;
        if (leaves[i] > 0 && least < fewest) fewest = least;
    }
    return fewest;
}

/* … of a run. Only the first and the last step of an epoch differ. */
static int64_t fewest_in_run(const an_batches *b, int64_t steps) {
    int64_t fewest = b->micro;
    for (int i = 0; i < b->entry_count; i++) {
        const int64_t first = an_batches_steps_before(b, b->entries[i].epoch),
                      last = first + an_batches_steps_in(b, b->entries[i].epoch) - 1;
        const int64_t ends[] = {first, last};
        for (int k = 0; k < 2; k++) {
            if (ends[k] >= steps) continue;
            const int64_t least = fewest_in_step(b, an_batches_at(b, ends[k]).count);
            if (least < fewest) fewest = least;
        }
    }
    return fewest;
}

an_status an_open_look_at_batches(an_config *config, const an_graph *graph, const an_batches *batches, int64_t steps) {
    enum { USUAL = 16 };
    an_context *ctx = graph->ctx;
    const an_config_node *batch = an_config_find(config, "batch"),
                         *place = batch ? batch : an_config_find(config, "model");
    bool found = false, rows = false; /* in images, one sample has many numbers of a channel */
    for (const an_node *n = graph->first; n; n = n->next) {
        if (strcmp(n->op->name, "batch_norm") != 0) continue;
        found = true;
        rows = rows || an_node_input(n, 0)->ndims == 2;
    }
    if (found && batches->micro < USUAL && an_config_is(config, "batch.micro", "auto"))
        AN_TRY_RETURN(an_config_warn(config, place->place,
                                     "batch norm over micro-batches of %lld sample%s is noisy; %d or more are usual",
                                     (long long)batches->micro, batches->micro == 1 ? "" : "s", (int)USUAL));
    if (!rows || batches->samples == AN_STREAM_SAMPLES || fewest_in_run(batches, steps) > 1) return AN_OK;
    return an_config_warn(
        config, place->place,
        "some micro-batches have one sample, and batch norm over one sample gives its biases, whatever "
        "the sample is; change batch.global or batch.micro so that none is left alone, or set "
        "data.drop_last to on");
}
