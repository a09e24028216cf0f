#include "cli/summary/layers.h"

#include <stdlib.h>
#include <string.h>

/* ---- layers ---- */

/* The layer of a path, which is added if it is new; NULL: out of memory. Neighbouring nodes are often of one layer, so
 * it is sought from the end. What has no path is no layer. */
static summary_layer *layer_of(summary *s, const char *path, const char *block) {
    if (!*path) return &s->other;
    for (int i = s->count - 1; i >= 0; i--)
        if (!strcmp(s->layers[i].path, path)) return &s->layers[i];
    if ((s->count & (s->count - 1)) == 0) { /* it is full at every power of two */
        summary_layer *grown = realloc(s->layers, (s->count ? 2 * (size_t)s->count : 1) * sizeof *grown);
        if (!grown) return NULL;
        s->layers = grown;
    }
    summary_layer *layer = &s->layers[s->count++];
    *layer = (summary_layer){.path = path, .block = block ? block : "", .ndims = -1};
    return layer;
}

/* A parameter that has several nodes counts once. */
static void take_parameter(summary_layer *layer, const an_plan_node *node, bool *seen) {
    if (node->parameter < 0 || seen[node->parameter]) return;
    seen[node->parameter] = true;
    layer->parameters += node->elements;
    layer->trainable += node->trainable ? node->elements : 0;
}

static void take_output(summary_layer *layer, const an_plan_node *node) {
    if (!*layer->path || !node->runs || node->backward || node->dtype == AN_DTYPE_NONE) return;
    layer->ndims = node->ndims; /* the last one is what the layer gives to others */
    layer->dtype = node->dtype;
    memcpy(layer->dims, node->dims, sizeof layer->dims);
}

static an_status collect_nodes(summary *s) {
    const cli_report *r = s->report;
    const int64_t count = an_plan_node_count(r->plan, r->form);
    bool *seen = calloc((size_t)count + 1, sizeof *seen); /* there are fewer parameters than nodes of parameters */
    an_status status = seen ? AN_OK : AN_ERR_MEMORY;
    for (int64_t i = 0; status == AN_OK && i < count; i++) {
        an_plan_node node;
        an_plan_node_init(&node, sizeof node);
        status = an_plan_node_get(r->plan, r->form, i, &node);
        if (status != AN_OK) break;
        summary_layer *layer = layer_of(s, node.path, node.block);
        if (!layer) {
            status = AN_ERR_MEMORY;
            break;
        }
        if (node.parameter < count) take_parameter(layer, &node, seen);
        take_output(layer, &node);
        layer->flops += node.flops;
    }
    free(seen);
    return status;
}

/* ---- memory ---- */

/* The instruction at which most bytes of the arena are in use; -1: out of memory. */
static int64_t fullest_moment(const an_plan_life *lives, int64_t count, int64_t instructions) {
    int64_t *change = calloc((size_t)instructions + 2, sizeof *change);
    int64_t alive = 0, maximum = 0, at = 0;
    if (!change) return -1;
    for (int64_t i = 0; i < count; i++) {
        change[lives[i].begin] += lives[i].bytes;
        change[lives[i].end + 1] -= lives[i].bytes;
    }
    for (int64_t step = 0; step < instructions; step++) {
        alive += change[step];
        if (alive <= maximum) continue;
        maximum = alive;
        at = step;
    }
    free(change);
    return at;
}

/* Values and scratch memory of each layer at that moment. */
static an_status collect_values(summary *s) {
    const cli_report *r = s->report;
    const int64_t count = an_plan_life_count(r->plan, r->form);
    an_plan_life *lives = malloc(((size_t)count + 1) * sizeof *lives);
    int64_t instructions = 0;
    an_status status = lives ? AN_OK : AN_ERR_MEMORY;
    for (int64_t i = 0; status == AN_OK && i < count; i++) {
        an_plan_life_init(&lives[i], sizeof lives[i]);
        status = an_plan_life_get(r->plan, r->form, i, &lives[i]);
        if (lives[i].end >= instructions) instructions = lives[i].end + 1;
    }
    const int64_t at = status == AN_OK ? fullest_moment(lives, count, instructions) : 0;
    if (at < 0) status = AN_ERR_MEMORY;
    for (int64_t i = 0; status == AN_OK && i < count; i++) {
        if (lives[i].begin > at || lives[i].end < at) continue;
        summary_layer *layer = layer_of(s, lives[i].path, NULL);
        if (layer)
            layer->bytes += lives[i].bytes;
        else
            status = AN_ERR_MEMORY;
    }
    free(lives);
    return status;
}

/* Divides bytes among layers by their parts of a whole. What is rounded off goes to the next, so the sum is exact. */
typedef struct {
    int64_t bytes, whole, given, parts;
} division;

static int64_t divide(division *d, int64_t part) {
    d->parts += part;
    if (d->whole == 0) return 0;
    const int64_t until = (int64_t)((double)d->bytes * ((double)d->parts / (double)d->whole));
    const int64_t now = until - d->given;
    d->given = until;
    return now;
}

static void collect_parameters(summary *s) {
    const an_plan_memory *m = &s->report->memory;
    division all = {.bytes = m->weights + m->checkpoint, .whole = s->total.parameters};
    division trained = {.bytes = m->gradients + m->leaves + m->optimizer, .whole = s->total.trainable};
    for (int i = 0; i < s->count; i++)
        s->layers[i].bytes += divide(&all, s->layers[i].parameters) + divide(&trained, s->layers[i].trainable);
}

/* ---- all of it ---- */

an_status summary_make(summary *s, const cli_report *report) {
    *s = (summary){.report = report, .other = {.path = "", .block = "", .ndims = -1}, .total = {.ndims = -1}};
    an_status status = collect_nodes(s);
    if (status == AN_OK) status = collect_values(s);
    if (status != AN_OK) return status;
    s->total.parameters = s->other.parameters;
    s->total.trainable = s->other.trainable;
    s->total.flops = s->other.flops;
    for (int i = 0; i < s->count; i++) {
        s->total.parameters += s->layers[i].parameters;
        s->total.trainable += s->layers[i].trainable;
        s->total.flops += s->layers[i].flops;
    }
    collect_parameters(s);
    s->total.bytes = s->other.bytes = report->memory.peak;
    for (int i = 0; i < s->count; i++) s->other.bytes -= s->layers[i].bytes;
    return AN_OK;
}

void summary_free(summary *s) {
    free(s->layers);
    *s = (summary){0};
}

/* ---- blocks ---- */

static int layers_in_block(const summary *s, int first) {
    const char *block = s->layers[first].block;
    int count = 1;
    while (*block && first + count < s->count && !strcmp(s->layers[first + count].block, block)) count++;
    return count;
}

static bool are_alike(const summary_layer *a, const summary_layer *b) {
    return !strcmp(a->path + strlen(a->block), b->path + strlen(b->block)) && a->ndims == b->ndims &&
           !memcmp(a->dims, b->dims, sizeof a->dims) && a->parameters == b->parameters && a->trainable == b->trainable;
}

int summary_repeats(const summary *s, int first, int *layers) {
    const int count = layers_in_block(s, first);
    int repeats = 1;
    *layers = count;
    if (!*s->layers[first].block) return 1;
    for (int next = first + count; next < s->count && *s->layers[next].block; next += count, repeats++) {
        if (layers_in_block(s, next) != count) break;
        int alike = 0;
        while (alike < count && are_alike(&s->layers[first + alike], &s->layers[next + alike])) alike++;
        if (alike < count) break;
    }
    return repeats;
}
