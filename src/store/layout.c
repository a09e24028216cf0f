#include "store/layout.h"

#include <stdio.h>
#include <string.h>

#include "anneal/plan.h"
#include "base/integer.h"
#include "base/memory.h"
#include "exec/params.h"
#include "formats/safetensors.h"
#include "ir/adapter.h"

/* ---- tensors ---- */

static const char *const prefixes[AN_KEPT_END] = {
    [AN_PART_MOMENT_1] = "moment_1/", [AN_PART_MOMENT_2] = "moment_2/", [AN_PART_AVERAGE] = "ema/"};

const char *an_part_prefix(an_param_part part) {
    return prefixes[part] ? prefixes[part] : "";
}

an_param_part an_part_of(const char *name) {
    for (int part = AN_KEPT_BEGIN; part < AN_KEPT_END; part++)
        if (!strncmp(name, prefixes[part], strlen(prefixes[part]))) return (an_param_part)part;
    return AN_PART_WEIGHT;
}

static bool is_state(const an_node *node) {
    return node->outputs[0].storage == AN_STORAGE_STATE;
}

static an_status add_tensor(an_save_layout *l, const an_node *node, const char *name, size_t entry, an_param_part part,
                            int64_t grid) {
    enum { PREFIX = 32 };
    an_context *ctx = l->ctx;
    const an_result *r = &node->outputs[0];
    an_saved_tensor *t = &l->tensors[l->tensor_count++];
    if (an_part_of(name) != AN_PART_WEIGHT || strchr(name, '#'))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "'%s' cannot be saved: names that begin with moment_1/, moment_2/ or ema/ or contain # are "
                        "reserved for moments, averages and parts of tensors",
                        name);
    char *full;
    *t = (an_saved_tensor){
        .entry = entry, .part = part, .dtype = r->dtype, .ndims = r->ndims, .elements = 1, .grid = grid};
    for (int d = 0; d < r->ndims; d++) t->elements *= t->dims[d] = r->dims[d]; /* laid out, so it cannot overflow */
    const size_t capacity = strlen(name) + PREFIX;
    AN_TRY_RETURN(an_arena_alloc(&l->arena, (void **)&full, capacity, 1));
    snprintf(full, capacity, "%s%s", an_part_prefix(part), name);
    t->name = full;
    return AN_OK;
}

/* Where a parameter is on the grid; *next is where the one after it will be. The graph need not be laid out: this is
 * the rule of ir/layout.c. */
static int64_t take_place(const an_parameter *p, int64_t *next) {
    const an_result *r = &p->node->outputs[0];
    const int64_t place = *next;
    if (r->storage != AN_STORAGE_MASTER) return -1;
    int64_t elements = 1;
    for (int d = 0; d < r->ndims; d++) elements *= r->dims[d];
    *next += an_divide_up(elements, AN_PAGE) * AN_PAGE;
    return place;
}

/* A checkpoint of an adapter names the model that it was trained on, and does not hold it. */
static bool is_left_out(const an_parameter *p, bool adapts) {
    return adapts && p->node->outputs[0].storage != AN_STORAGE_MASTER;
}

/* In the store's order: parameters, run states, then what is kept of those that are trained. */
static an_status add_tensors(an_save_layout *l, const an_graph *graph, an_kept kept) {
    const size_t maximum = graph->parameter_count * (size_t)(1 + an_kept_count(kept)) + graph->source_count;
    AN_TRY_RETURN(an_arena_alloc(&l->arena, (void **)&l->tensors, maximum, sizeof *l->tensors));
    const bool adapts = an_graph_has_adapter(graph);
    size_t entry = graph->parameter_count;
    int64_t next = 0;
    for (size_t i = 0; i < graph->parameter_count; i++)
        if (!is_left_out(&graph->parameters[i], adapts))
            AN_TRY_RETURN(add_tensor(l, graph->parameters[i].node, graph->parameters[i].name, i, AN_PART_WEIGHT,
                                     take_place(&graph->parameters[i], &next)));
    for (size_t i = 0; i < graph->source_count; i++)
        if (is_state(graph->sources[i])) {
            const char *name = *(const char **)an_node_attribute(graph->sources[i], "name", AN_ATTRIBUTE_STRING);
            AN_TRY_RETURN(add_tensor(l, graph->sources[i], name, entry++, AN_PART_WEIGHT, -1));
        }
    for (int part = AN_KEPT_BEGIN; part < AN_KEPT_END; part++) {
        if (!an_kept_has(kept, (an_param_part)part)) continue;
        next = 0;
        for (size_t i = 0; i < graph->parameter_count; i++)
            if (graph->parameters[i].node->outputs[0].storage == AN_STORAGE_MASTER)
                AN_TRY_RETURN(add_tensor(l, graph->parameters[i].node, graph->parameters[i].name, i,
                                         (an_param_part)part, take_place(&graph->parameters[i], &next)));
    }
    return AN_OK;
}

/* ---- files ---- */

static int64_t piece_bytes(const an_save_layout *l, const an_saved_piece *p) {
    return (p->end - p->begin) * (int64_t)an_dtype_size(l->tensors[p->tensor].dtype);
}

/* Cuts the tensors, one after another, where a file has its share of all bytes: as many pieces as
 * tensors and files at most. */
static an_status cut(an_save_layout *l, int64_t total) {
    size_t file = 0;
    int64_t done = 0;
    AN_TRY_RETURN(an_arena_alloc(&l->arena, (void **)&l->pieces, l->tensor_count + l->file_count, sizeof *l->pieces));
    for (size_t i = 0; i < l->tensor_count; i++) {
        const an_saved_tensor *t = &l->tensors[i];
        const int64_t size = (int64_t)an_dtype_size(t->dtype);
        int64_t begin = 0;
        do {
            const int64_t share = (int64_t)((__int128)total * (int64_t)(file + 1) / (int64_t)l->file_count);
            int64_t end = begin + (share - done) / size;
            if (file + 1 == l->file_count || end > t->elements) end = t->elements;
            if (end > begin || t->elements == 0)
                l->pieces[l->piece_count++] = (an_saved_piece){.tensor = i, .file = file, .begin = begin, .end = end};
            done += (end - begin) * size;
            begin = end;
            if (begin < t->elements) file++;
        } while (begin < t->elements);
    }
    l->file_count = file + 1; /* a model may be too small for so many */
    return AN_OK;
}

/* The header of a file, and where its pieces begin; *next is the first of them, and then of the next file. */
static an_status make_header(an_save_layout *l, size_t file, size_t *next) {
    an_status status;
    an_context *ctx = l->ctx;
    an_saved_file *f = &l->files[file];
    an_safetensor *entries = NULL;
    an_text text;
    const size_t first = *next;
    size_t count = 0;
    int64_t at = 0;
    an_text_init(&text, ctx);
    while (first + count < l->piece_count && l->pieces[first + count].file == file) count++;
    AN_TRY(an_alloc(ctx, (void **)&entries, count, sizeof *entries));
    for (size_t i = 0; i < count; i++) {
        an_saved_piece *p = &l->pieces[first + i];
        const an_saved_tensor *t = &l->tensors[p->tensor];
        an_safetensor *e = &entries[i];
        *e = (an_safetensor){.name = t->name, .type = an_safetensors_type_of(t->dtype), .ndims = t->ndims, .begin = at};
        memcpy(e->dims, t->dims, sizeof e->dims);
        if (p->end - p->begin < t->elements) {
            char *name;
            const size_t capacity = strlen(t->name) + 24;
            AN_TRY(an_arena_alloc(&l->arena, (void **)&name, capacity, 1));
            snprintf(name, capacity, "%s#%lld", t->name, (long long)p->begin);
            e->name = name;
            e->ndims = 1;
            e->dims[0] = p->end - p->begin;
        }
        e->bytes = piece_bytes(l, p);
        p->offset = at;
        at += e->bytes;
    }
    AN_TRY(an_safetensors_header(&text, entries, count, AN_SAVE_ALIGNMENT, NULL));
    for (size_t i = 0; i < count; i++) l->pieces[first + i].offset += (int64_t)text.length;
    AN_TRY(an_arena_alloc(&l->arena, (void **)&f->header, text.length, 1));
    memcpy(f->header, text.bytes, text.length);
    f->header_bytes = text.length;
    f->bytes = text.length + (size_t)at;
    snprintf(f->name, sizeof f->name, "part-%05zu.safetensors", file);
    *next += count;
    status = AN_OK;
fail:
    an_text_destroy(&text);
    an_release(ctx, (void **)&entries, count, sizeof *entries);
    return status;
}

an_status an_save_layout_create(an_save_layout **layout, an_context *ctx, const an_graph *graph, an_kept kept,
                                int64_t writers) {
    an_status status;
    an_save_layout *l = NULL;
    int64_t total = 0;
    size_t piece = 0;
    *layout = NULL;
    AN_TRY(an_alloc(ctx, (void **)&l, 1, sizeof *l));
    l->ctx = ctx;
    an_arena_init(&l->arena, ctx);
    AN_TRY(add_tensors(l, graph, kept));
    for (size_t i = 0; i < l->tensor_count; i++) /* safetensors has no such type; the base of an adapter is not saved */
        AN_CHECK(ctx, l->tensors[i].dtype != AN_DTYPE_Q8_0, AN_ERR_UNSUPPORTED,
                 "'%s' is q8_0: only the base of an adapter can be, because checkpoints cannot hold it",
                 l->tensors[i].name);
    for (size_t i = 0; i < l->tensor_count; i++)
        total += l->tensors[i].elements * (int64_t)an_dtype_size(l->tensors[i].dtype);
    l->file_count = (size_t)(writers < 1 ? 1 : writers > AN_MOST_WRITERS ? AN_MOST_WRITERS : writers);
    AN_TRY(cut(l, total));
    AN_TRY(an_arena_alloc(&l->arena, (void **)&l->files, l->file_count, sizeof *l->files));
    for (size_t i = 0; i < l->file_count; i++) AN_TRY(make_header(l, i, &piece));
    *layout = l;
    return AN_OK;
fail:
    an_save_layout_destroy(&l);
    return status;
}

void an_save_layout_destroy(an_save_layout **layout) {
    an_save_layout *l = layout ? *layout : NULL;
    if (!l) return;
    an_context *ctx = l->ctx;
    an_arena_destroy(&l->arena);
    an_release(ctx, (void **)layout, 1, sizeof *l);
}

size_t an_save_image_offset(const an_save_layout *l, an_file_range files, size_t file) {
    size_t offset = 0;
    for (size_t i = files.begin; i < file; i++) offset += an_round_up(l->files[i].bytes, AN_SAVE_ALIGNMENT);
    return offset;
}

size_t an_save_image_bytes(const an_save_layout *l, an_file_range files) {
    return files.begin == files.end ? 0 : AN_SAVE_ALIGNMENT + an_save_image_offset(l, files, files.end);
}

size_t an_save_layout_bytes(const an_save_layout *l) {
    return an_save_image_bytes(l, (an_file_range){0, l->file_count});
}

size_t an_save_layout_describe(const an_save_layout *l, an_manifest_text *m) {
    const size_t first_part = m->file_count;
    for (size_t i = 0; i < l->file_count; i++)
        an_manifest_add_file(m, l->files[i].name, (int64_t)l->files[i].bytes, NULL);
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < l->piece_count; i++) {
        const an_saved_piece *p = &l->pieces[i];
        const an_saved_tensor *t = &l->tensors[p->tensor];
        if (p->tensor != last) an_manifest_add_tensor(m, t->name, t->dtype, t->ndims, t->dims);
        last = p->tensor;
        an_manifest_add_slice(
            m, &(an_manifest_slice){
                   .file = (int64_t)(first_part + p->file), .begin = p->begin, .end = p->end, .offset = p->offset});
    }
    return first_part;
}
