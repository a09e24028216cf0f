#include "train/default_leaves.h"

#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/system/limits.h"
#include "base/tree.h"
#include "exec/plan.h"
#include "train/trainer.h"

enum {
    ROWS = 32,
    ROWS_LOW = 512,
    ROWS_LOW_ADAPTER = 256,
    CONVOLUTION_SAMPLES = 4,
    USUAL_LEAVES = 64,
    MOST_ROWS = 4096,
    STREAM_LEAVES = 8,
    EVALUATED_ROWS = 512,
    EVALUATED_IMAGES = 32
};

/* Images that are evaluated at a time have so many numbers at most in the result of a convolution, 256 MiB in f32. */
static const int64_t evaluated_numbers = INT64_C(1) << 26;

/* Gradient buffers of so many bytes are never a reason for fewer leaves. */
static const int64_t free_bytes = INT64_C(64) << 20;

/* ---- rows ---- */

typedef struct {
    int64_t rows; /* that a sample is in products: its tokens, or 1 */
    bool has_convolution;
    int64_t numbers; /* that a sample has in the largest result of a convolution */
} sample_shape;

static bool is_trainable(const an_result *r) {
    return r && r->root->storage == AN_STORAGE_MASTER;
}

/* The rows of a sample in a result: all dimensions but the last, without the number of samples. */
static an_status count_rows(an_graph *g, const an_result *r, an_dim batch, int64_t *rows) {
    *rows = 1;
    for (int i = 0; i + 1 < r->ndims; i++) {
        an_dim each = r->dims[i];
        int64_t value = 1;
        if (each < 0 && an_dimensions_share_symbol(&g->dimensions, each, batch))
            AN_TRY_RETURN(an_dimensions_divide(&g->dimensions, &g->arena, r->dims[i], batch, &each));
        if (!an_dimensions_maximum(&g->dimensions, each, &value) || !an_multiply_i64(*rows, value, rows)) *rows = 1;
    }
    return AN_OK;
}

static an_status look_at(an_graph *g, const an_node *node, an_dim batch, sample_shape *shape) {
    bool learns = false;
    for (int i = 0; i < node->input_count; i++) learns = learns || is_trainable(an_node_input(node, i));
    if (!learns || node->op->flags & AN_OP_VIEW) return AN_OK;
    int64_t rows;
    AN_TRY_RETURN(count_rows(g, &node->outputs[0], batch, &rows));
    shape->rows = an_larger(shape->rows, rows);
    if (strcmp(node->op->name, "convolution") != 0) return AN_OK;
    shape->has_convolution = true;
    const an_result *r = &node->outputs[0];
    int64_t width, numbers;
    if (an_dimensions_maximum(&g->dimensions, r->dims[r->ndims - 1], &width) && an_multiply_i64(rows, width, &numbers))
        shape->numbers = an_larger(shape->numbers, numbers);
    return AN_OK;
}

static an_symbol *find_symbol(an_dimensions *d, const char *name) {
    size_t i = 0;
    while (strcmp(d->symbols[i].name, name) != 0) i++;
    return &d->symbols[i];
}

/* At the largest sizes that the data have. The graph's own maxima stay as they are. */
static an_status find_shape(an_trainer *t, sample_shape *shape) {
    an_graph *g = t->graph;
    an_dimensions *d = &g->dimensions;
    const an_dim batch = an_symbol_dim(g, t->samples.feed.batch);
    an_status status = AN_OK;
    int64_t maxima[AN_MAX_FEED_SYMBOLS];
    *shape = (sample_shape){.rows = 1};
    for (int i = 0; i < t->samples.feed.symbol_count; i++) {
        an_symbol *symbol = find_symbol(d, t->samples.feed.symbols[i]);
        maxima[i] = symbol->maximum;
        symbol->maximum = t->samples.feed.values[i];
    }
    for (const an_node *n = g->first; n && status == AN_OK; n = n->next) status = look_at(g, n, batch, shape);
    for (int i = 0; i < t->samples.feed.symbol_count; i++)
        find_symbol(d, t->samples.feed.symbols[i])->maximum = maxima[i];
    if (shape->has_convolution) shape->rows = 1;
    return status;
}

/* ---- leaves ---- */

static int64_t round_up_to_power(int64_t n) {
    int64_t power = 1;
    while (power < n) power *= 2;
    return power;
}

/* A leaf for each rank, and a power of two, so that a run can go on with half as many and fewer. */
static int64_t for_ranks(const an_trainer *t) {
    return an_smaller(round_up_to_power(t->ranks), t->samples.batches.global);
}

static int64_t for_rows(const an_trainer *t, const an_trainer_options *o, const sample_shape *shape) {
    const int64_t samples = t->samples.batches.global;
    const bool is_low = o->precision != AN_DTYPE_NONE;
    const int64_t need = !is_low ? ROWS : t->graph->adapter.rank > 0 ? ROWS_LOW_ADAPTER : ROWS_LOW;
    const int64_t each = shape->has_convolution ? CONVOLUTION_SAMPLES : an_divide_up(need, shape->rows);
    int64_t leaves = 1;
    while (2 * leaves <= samples && samples / (2 * leaves) >= each &&
           (2 * leaves <= USUAL_LEAVES || samples / leaves > MOST_ROWS / shape->rows))
        leaves *= 2;
    return leaves;
}

an_status an_default_leaves_choose(an_trainer *t, const an_trainer_options *o) {
    sample_shape shape;
    AN_TRY_RETURN(find_shape(t, &shape));
    t->cut.chooses = o->batch->leaves == 0;
    if (t->cut.chooses) {
        const int64_t leaves =
            t->samples.streams ? an_smaller(STREAM_LEAVES, t->samples.batches.global) : for_rows(t, o, &shape);
        an_batches_set_leaves(&t->samples.batches, an_larger(leaves, for_ranks(t)));
        if (for_ranks(t) > leaves) t->cut.below = leaves;
    }
    const int64_t images = an_smaller(EVALUATED_IMAGES, evaluated_numbers / an_larger(shape.numbers, 1));
    const int64_t evaluated = shape.has_convolution ? an_larger(images, 1) : an_divide_up(EVALUATED_ROWS, shape.rows);
    t->evaluator.default_micro = an_smaller(t->samples.batches.global, evaluated);
    return AN_OK;
}

/* Gradient buffers beyond the first. */
static bool costs_little(int64_t bytes, int64_t state) {
    return bytes <= free_bytes || bytes <= state / 10;
}

/* Where a pass has one leaf and the run says what a pass has, as many as there are passes, unless that takes much
 * memory. */
static int64_t for_passes(const an_trainer *t, int64_t gradient, int64_t state) {
    const an_batches *b = &t->samples.batches;
    const int64_t passes = b->chooses ? 1 : an_divide_up(b->global, b->maximum);
    return costs_little((an_tree_nodes(passes) - 1) * gradient, state) ? an_larger(passes, for_ranks(t)) : for_ranks(t);
}

static an_status take(an_trainer *t, int64_t leaves, bool *changed, const char *why) {
    char note[640];
    *changed = leaves != t->samples.batches.leaves;
    t->cut.below = 0;
    an_batches_set_leaves(&t->samples.batches, leaves);
    snprintf(note, sizeof note, "batch.leaves: auto is %lld, because %s: the same bits on up to %lld rank%s\n",
             (long long)leaves, why, (long long)leaves, leaves == 1 ? "" : "s");
    return an_trainer_add_note(t, note);
}

static an_status note_ranks(an_trainer *t) {
    char note[256];
    if (t->cut.below == 0) return AN_OK;
    snprintf(
        note, sizeof note,
        "batch.leaves: auto is %lld, because there are %d ranks; with fewer it would be %lld, and the bits others\n",
        (long long)t->samples.batches.leaves, t->ranks, (long long)t->cut.below);
    return an_trainer_add_note(t, note);
}

/* Gradient buffers for the micro-batches that the run asks for, beyond the first, with so many leaves. */
static int64_t buffers_of(const an_trainer *t, int64_t leaves) {
    const an_batches *b = &t->samples.batches;
    return b->chooses ? 0 : an_tree_nodes(an_smaller(leaves, an_divide_up(b->global, b->maximum))) - 1;
}

an_status an_default_leaves_settle(an_trainer *t, bool *changed) {
    const an_flat_sizes *sizes = &t->plan->sizes;
    const int64_t gradient = sizes->gradient_elements * (int64_t)an_dtype_size(sizes->trainable_dtype);
    const int64_t state = sizes->frozen_bytes + (2 + an_kept_count(t->plan->kept)) * gradient;
    const char *reason = t->division.reduces_bf16 ? "ranks.precision.reduce rounds the gradient of each leaf" : NULL;
    char text[512];
    *changed = false;
    if (!t->cut.chooses) return AN_OK;
    t->cut.chooses = false;
    if (!reason && an_plan_one_leaf(t->plan)) {
        snprintf(text, sizeof text, "a pass has one leaf (%s)", an_plan_one_leaf(t->plan));
        reason = text;
    }
    if (reason) return take(t, for_passes(t, gradient, state), changed, reason);
    int64_t leaves = t->samples.batches.leaves;
    const int64_t bytes = buffers_of(t, leaves) * gradient;
    while (!costs_little(buffers_of(t, leaves) * gradient, state)) leaves /= 2;
    if (leaves == t->samples.batches.leaves) return note_ranks(t);
    snprintf(text, sizeof text, "batch.micro %lld with %lld leaves would need %s of gradient buffers",
             (long long)t->samples.batches.maximum, (long long)t->samples.batches.leaves,
             an_bytes_in_words(bytes).text);
    return take(t, an_larger(leaves, for_ranks(t)), changed, text);
}
