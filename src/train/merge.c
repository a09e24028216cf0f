/* Merges an adapter into the model that it was trained on: W + scale · B·A, tensor by tensor, by the names and in the types and layout of the files that
 * the model came from. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "base/word.h"
#include "exec/array.h"
#include "ir/adapter.h"
#include "pretrained/weights.h"
#include "store/chosen_weights.h"
#include "store/conv1d.h"
#include "store/export_file.h"
#include "store/gguf.h"
#include "train/adapter.h"

enum { PART = 1 << 18, ALIGNMENT = 64 }; /* elements in memory at a time */

typedef struct {
    const an_checkpoint *checkpoint;
    an_context *ctx;
    an_graph *graph;
    an_params *params; /* of the graph, for the shapes of weights and for their hash */
    an_weights base;
    an_safetensor *entries;
    size_t capacity;
    double scale;
    bool average, transposes;
    size_t applied; /* layers that were changed */
    double *first, *second, *part;
    size_t first_count, second_count;
    an_text header;
    an_export_file file;
} merging;

/* ---- what belongs to a tensor ---- */

/* As the model has it. */
static const char *own_name(const char *name) {
    static const char prefix[] = "transformer.";
    return strncmp(name, prefix, strlen(prefix)) ? name : name + strlen(prefix);
}

static const an_stored *find_stored(const merging *m, const char *name) {
    for (size_t i = 0; i < m->params->parameter_count; i++)
        if (!strcmp(m->params->entries[i].name, own_name(name))) return &m->params->entries[i];
    return NULL;
}

/* The tensor of an adapter's part for a weight; -1: the weight is not changed. */
static int64_t find_part(const merging *m, const char *name, const char *end) {
    static const char weight[] = ".weight";
    char part[AN_PATH_BYTES + 32];
    if (!an_ends_in(name, weight)) return -1;
    snprintf(part, sizeof part, "%.*s%s", (int)(strlen(name) - strlen(weight)), name, end);
    return an_manifest_find(m->checkpoint->manifest, part);
}

/* A part of an adapter in f64; *count is what there was room for. */
static an_status read_part(const merging *m, int64_t index, int64_t rows, int64_t columns, double **numbers,
                           size_t *count) {
    an_context *ctx = m->ctx;
    const an_manifest *manifest = m->checkpoint->manifest;
    int64_t dims[AN_MAX_DIMS] = {0};
    const size_t elements = (size_t)(rows * columns);
    const bool fits = an_manifest_shape(manifest, (size_t)index, dims) == rows * columns && dims[0] == rows;
    if (!fits || manifest->tensors[index].ndims != 2)
        return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: '%s' does not have the shape of its layer", m->checkpoint->path,
                        manifest->tensors[index].name);
    if (elements > *count) {
        an_release(ctx, (void **)numbers, *count, sizeof **numbers);
        *count = 0;
        AN_TRY_RETURN(an_alloc(ctx, (void **)numbers, elements, sizeof **numbers));
        *count = elements;
    }
    AN_TRY_RETURN(an_checkpoint_read(m->checkpoint, an_manifest_source(manifest, index, m->average), 0,
                                     (int64_t)elements, *numbers));
    an_convert_to_f64((an_dtype)manifest->tensors[index].dtype, (int64_t)elements, *numbers);
    return AN_OK;
}

/* ---- one tensor ---- */

/* What the change of a weight is made of. */
typedef struct {
    int64_t inputs, outputs;
    bool transposed; /* the file has [in, out] */
} layer;

/* Adds the change of elements `first` and following. */
static void add_change(const merging *m, const layer *l, int64_t first, int64_t count) {
    const int64_t rank = m->checkpoint->manifest->adapter.adapter.rank,
                  columns = l->transposed ? l->outputs : l->inputs;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (first + i) / columns, column = (first + i) % columns;
        const double *b = m->second + (l->transposed ? column : row) * rank;
        const double *a = m->first + (l->transposed ? row : column);
        double sum = 0;
        for (int64_t k = 0; k < rank; k++) sum += b[k] * a[k * l->inputs];
        m->part[i] += m->scale * sum;
    }
}

static an_status find_change(merging *m, const an_safetensor *tensor, layer *l, bool *changes) {
    an_context *ctx = m->ctx;
    const char *name = own_name(tensor->name);
    const int64_t a = find_part(m, name, AN_ADAPTER_FIRST), b = find_part(m, name, AN_ADAPTER_SECOND);
    const int64_t rank = m->checkpoint->manifest->adapter.adapter.rank;
    const an_stored *e = find_stored(m, name);
    *changes = a >= 0 && b >= 0 && e && e->ndims == 2 && tensor->ndims == 2;
    if (!*changes) return AN_OK;
    *l = (layer){.inputs = e->dims[1], .outputs = e->dims[0], .transposed = m->transposes && an_conv1d_has(name)};
    AN_TRY_RETURN(read_part(m, a, rank, l->inputs, &m->first, &m->first_count));
    AN_TRY_RETURN(read_part(m, b, l->outputs, rank, &m->second, &m->second_count));
    m->applied++;
    return AN_OK;
}

static an_status write_tensor(merging *m, int64_t index) {
    an_context *ctx = m->ctx;
    an_safetensor tensor;
    layer l = {0};
    bool changes;
    AN_TRY_RETURN(m->base.get(&m->base, index, &tensor));
    AN_TRY_RETURN(find_change(m, &tensor, &l, &changes));
    const int64_t size = (int64_t)tensor.type->size, elements = tensor.bytes / size;
    for (int64_t begin = 0; begin < elements; begin += PART) {
        const int64_t count = elements - begin < PART ? elements - begin : PART;
        AN_TRY_RETURN(m->base.read(&m->base, index, &tensor, begin, count, m->part));
        if (changes) {
            an_convert_to_f64(tensor.type->dtype, count, m->part);
            add_change(m, &l, begin, count);
            an_convert_from_f64(tensor.type->dtype, count, m->part);
        }
        AN_TRY_RETURN(an_export_file_bytes(&m->file, m->part, (size_t)(count * size)));
    }
    return AN_OK;
}

/* ---- all of them ---- */

/* Of a square weight only the others tell whether the file has [in, out], as when it was read. */
static an_status list_tensors(merging *m) {
    an_context *ctx = m->ctx;
    int64_t at = 0;
    m->capacity = (size_t)m->base.count;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->entries, m->capacity, sizeof *m->entries));
    for (int64_t i = 0; i < m->base.count; i++) {
        an_safetensor *t = &m->entries[i];
        AN_TRY_RETURN(m->base.get(&m->base, i, t));
        if (t->type->dtype != AN_DTYPE_NONE)
            t->type = an_safetensors_type_of(t->type->dtype); /* it may be a quantised one */
        const an_stored *e = find_stored(m, t->name);
        if (e && e->ndims == 2 && t->ndims == 2 && an_conv1d_has(e->name) && e->dims[0] != e->dims[1])
            m->transposes = m->transposes || t->dims[0] == e->dims[1];
        t->begin = at;
        at += t->bytes;
    }
    return an_safetensors_header(&m->header, m->entries, m->capacity, ALIGNMENT, NULL);
}

/* The model, with the weights that the adapter was trained on: it holds all of them, for their hash. */
static an_status check_base(merging *m) {
    an_status status;
    an_context *ctx = m->ctx;
    const an_checkpoint *c = m->checkpoint;
    char *text = NULL;
    an_params_options options;
    an_params_options_init(&options, sizeof options);
    options.gradients = false;
    AN_TRY(an_checkpoint_text(c, "graph.ang", &text));
    AN_TRY(an_graph_parse(&m->graph, ctx, text, strlen(text)));
    AN_TRY(an_graph_verify(m->graph));
    AN_TRY(an_params_create(&m->params, ctx, m->graph, &options));
    AN_TRY(an_base_load(m->params, &c->manifest->adapter, c->path));
    status = AN_OK;
fail:
    an_string_release(ctx, &text);
    return status;
}

static an_status write_file(merging *m) {
    an_context *ctx = m->ctx;
    size_t layers = 0;
    for (size_t i = 0; i < m->graph->parameter_count; i++)
        layers += an_ends_in(m->graph->parameters[i].name, AN_ADAPTER_FIRST);
    AN_TRY_RETURN(an_export_file_bytes(&m->file, m->header.bytes, m->header.length));
    for (int64_t i = 0; i < m->base.count; i++) AN_TRY_RETURN(write_tensor(m, i));
    if (m->applied != layers)
        return AN_ERROR(
            ctx, AN_ERR_UNSUPPORTED,
            "%s: has %zu of the %zu layers that the adapter changes, by the names of the model: weights that were "
            "renamed when they were loaded cannot be merged",
            m->checkpoint->manifest->adapter.base, m->applied, layers);
    return an_export_file_finish(&m->file);
}

static an_status merge(merging *m, const char *file) {
    an_context *ctx = m->ctx;
    const an_checkpoint *c = m->checkpoint;
    m->scale = an_adapter_scale(&c->manifest->adapter.adapter);
    AN_TRY_RETURN(an_checkpoint_verify(ctx, c->path));
    AN_TRY_RETURN(an_choose_weights(ctx, c->manifest, c->path, c->chosen, &m->average));
    AN_TRY_RETURN(check_base(m));
    AN_TRY_RETURN(an_weights_open(&m->base, ctx, c->manifest->adapter.base, AN_MODEL_WEIGHTS_AUTO));
    if (an_weights_gguf(&m->base)) AN_TRY_RETURN(an_weights_rename_gguf(&m->base, c->manifest->adapter.base));
    AN_TRY_RETURN(list_tensors(m));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->part, PART, sizeof *m->part));
    AN_TRY_RETURN(an_export_file_open(&m->file, ctx, file));
    return write_file(m);
}

an_status an_checkpoint_export_merged(const an_checkpoint *checkpoint, const char *file) {
    AN_GUARD;
    AN_NEED(checkpoint, file);
    an_context *ctx = checkpoint->ctx;
    merging m = {.checkpoint = checkpoint, .ctx = ctx};
    if (!checkpoint->manifest || checkpoint->manifest->adapter.adapter.rank == 0)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has no adapter to merge; only a run with lora.targets has one",
                        checkpoint->path);
    an_text_init(&m.header, ctx);
    const an_status status = merge(&m, file);
    an_export_file_close(&m.file);
    an_release(ctx, (void **)&m.part, PART, sizeof *m.part);
    an_release(ctx, (void **)&m.second, m.second_count, sizeof *m.second);
    an_release(ctx, (void **)&m.first, m.first_count, sizeof *m.first);
    an_release(ctx, (void **)&m.entries, m.capacity, sizeof *m.entries);
    if (m.base.close) an_weights_close(&m.base);
    an_params_destroy(&m.params);
    an_graph_destroy(&m.graph);
    an_text_destroy(&m.header);
    return status;
}
