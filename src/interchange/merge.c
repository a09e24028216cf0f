/* Merges an adapter into the model that it was trained on: W + scale · B·A, tensor by tensor. With DoRA, each row of
 * that is multiplied by magnitude ÷ its norm, which is computed from the weights that the run had, while they are
 * in memory for their hash. */
#include "interchange/merge.h"

#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "base/q8_0.h"
#include "base/word.h"
#include "exec/params.h"
#include "interchange/load_model.h"
#include "ir/adapter.h"
#include "store/chosen_weights.h"

const int64_t *an_merge_matrix(const an_merge *m, const char *name) {
    for (size_t i = 0; i < m->graph->parameter_count; i++) {
        const an_result *weight = an_node_output(m->graph->parameters[i].node, 0);
        if (!strcmp(m->graph->parameters[i].name, name)) return weight->ndims == 2 ? weight->dims : NULL;
    }
    return NULL;
}

/* ---- what belongs to a tensor ---- */

/* The tensor of an adapter's part for a weight; -1: the weight is not changed. */
static int64_t find_part(const an_merge *m, const char *name, const char *end) {
    static const char weight[] = ".weight";
    char part[AN_PATH_BYTES + 32];
    if (!an_ends_in(name, weight)) return -1;
    snprintf(part, sizeof part, "%.*s%s", (int)(strlen(name) - strlen(weight)), name, end);
    return an_manifest_find(m->checkpoint->manifest, part);
}

/* A part of an adapter in f64; *count is what there was room for. `ndims` 1: it has one column. */
static an_status read_part(const an_merge *m, int64_t index, int ndims, int64_t rows, int64_t columns, double **numbers,
                           size_t *count) {
    an_context *ctx = m->ctx;
    const an_manifest *manifest = m->checkpoint->manifest;
    int64_t dims[AN_MAX_DIMS] = {0};
    const size_t elements = (size_t)(rows * columns);
    const bool fits = an_manifest_shape(manifest, (size_t)index, dims) == rows * columns && dims[0] == rows;
    if (!fits || manifest->tensors[index].ndims != ndims)
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

/* The blocks of a weight that the run stored in q8_0: the adapter was trained on their numbers, not on those of the
 * file. */
static an_status read_blocks(an_merge *m, const char *name, bool *found) {
    an_context *ctx = m->ctx;
    const an_stored *e = NULL;
    for (size_t i = 0; m->params && i < m->params->parameter_count && !e; i++)
        if (!strcmp(m->params->entries[i].name, name)) e = &m->params->entries[i];
    *found = e && e->dtype == AN_DTYPE_Q8_0;
    if (!*found) return AN_OK;
    const an_device *device = m->params->device;
    const size_t bytes = (size_t)an_dtype_bytes(e->dtype, e->elements);
    if (bytes > m->block_bytes) {
        an_release(ctx, &m->blocks, m->block_bytes, 1);
        m->block_bytes = 0;
        AN_TRY_RETURN(an_alloc_raw(ctx, &m->blocks, bytes));
        m->block_bytes = bytes;
    }
    AN_TRY_RETURN(
        device->copy(device, ctx, m->blocks, (const char *)m->params->frozen + e->offset, bytes, AN_COPY_FROM_DEVICE));
    return device->synchronize(device, ctx);
}

/* Where the factors of a layer are. */
static const double *find_factors(const an_merge *m, const char *name) {
    for (size_t i = 0; m->places && i < m->graph->parameter_count; i++)
        if (!strcmp(m->graph->parameters[i].name, name)) return m->places[i] ? m->factors + m->places[i] - 1 : NULL;
    return NULL;
}

an_status an_merge_find(an_merge *m, const char *name, an_merge_layer *layer, bool *changes) {
    const int64_t a = find_part(m, name, AN_ADAPTER_FIRST), b = find_part(m, name, AN_ADAPTER_SECOND);
    const int64_t rank = m->checkpoint->manifest->adapter.adapter.rank;
    const int64_t *dims = an_merge_matrix(m, name);
    *changes = false;
    *layer = (an_merge_layer){.adapted = a >= 0 && b >= 0 && dims};
    if (!dims) return AN_OK;
    layer->inputs = dims[1];
    layer->outputs = dims[0];
    AN_TRY_RETURN(read_blocks(m, name, &layer->stored));
    *changes = layer->adapted || layer->stored;
    if (!layer->adapted) return AN_OK;
    layer->factors = find_factors(m, name);
    AN_TRY_RETURN(read_part(m, a, 2, rank, layer->inputs, &m->first, &m->first_count));
    return read_part(m, b, 2, layer->outputs, rank, &m->second, &m->second_count);
}

void an_merge_add(const an_merge *m, const an_merge_layer *l, int64_t first, int64_t count, double *numbers) {
    const int64_t rank = m->checkpoint->manifest->adapter.adapter.rank,
                  columns = l->transposed ? l->outputs : l->inputs;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (first + i) / columns, column = (first + i) % columns;
        if (l->stored)
            numbers[i] = (double)an_q8_0_value(m->blocks, l->transposed ? column * l->inputs + row : first + i);
        if (!l->adapted) continue;
        const double *b = m->second + (l->transposed ? column : row) * rank;
        const double *a = m->first + (l->transposed ? row : column);
        double sum = 0;
        for (int64_t k = 0; k < rank; k++) sum += b[k] * a[k * l->inputs];
        numbers[i] += m->scale * sum;
        if (l->factors) numbers[i] *= l->factors[l->transposed ? column : row];
    }
}

an_status an_merge_check(const an_merge *m) {
    if (m->applied == m->layers) return AN_OK;
    return AN_ERROR(
        m->ctx, AN_ERR_UNSUPPORTED,
        "%s: has %zu of the %zu layers that the adapter changes, by the names of the model: weights that were "
        "renamed when they were loaded cannot be merged",
        m->checkpoint->manifest->adapter.base, m->applied, m->layers);
}

/* ---- the factors of DoRA ---- */

static double norm_of(const an_merge *m, const double *row, int64_t inputs, const double *second) {
    const int64_t rank = m->checkpoint->manifest->adapter.adapter.rank;
    double squares = 0;
    for (int64_t c = 0; c < inputs; c++) {
        double sum = 0;
        for (int64_t k = 0; k < rank; k++) sum += second[k] * m->first[k * inputs + c];
        squares += (row[c] + m->scale * sum) * (row[c] + m->scale * sum);
    }
    return __builtin_sqrt(squares);
}

/* Of one weight, which `e` of the store has. `row` has room for one of its rows. */
static an_status take_factors(an_merge *m, const an_params *params, const an_stored *e, double *row, double *factors) {
    an_context *ctx = m->ctx;
    const an_device *device = params->device;
    const int64_t rank = m->checkpoint->manifest->adapter.adapter.rank, outputs = e->dims[0], inputs = e->dims[1];
    const size_t bytes = (size_t)an_dtype_bytes(e->dtype, inputs);
    double *magnitude = NULL;
    size_t count = 0;
    an_status status;
    AN_TRY(read_part(m, find_part(m, e->name, AN_ADAPTER_FIRST), 2, rank, inputs, &m->first, &m->first_count));
    AN_TRY(read_part(m, find_part(m, e->name, AN_ADAPTER_SECOND), 2, outputs, rank, &m->second, &m->second_count));
    AN_TRY(read_part(m, find_part(m, e->name, AN_ADAPTER_MAGNITUDE), 1, outputs, 1, &magnitude, &count));
    for (int64_t i = 0; i < outputs; i++) {
        const char *from = (const char *)params->frozen + e->offset + (size_t)i * bytes;
        AN_TRY(device->copy(device, ctx, row, from, bytes, AN_COPY_FROM_DEVICE));
        AN_TRY(device->synchronize(device, ctx));
        if (e->dtype == AN_DTYPE_Q8_0)
            for (int64_t c = inputs; c-- > 0;) row[c] = (double)an_q8_0_value(row, c); /* from the end: they grow */
        else
            an_convert_to_f64(e->dtype, inputs, row);
        const double norm = norm_of(m, row, inputs, m->second + i * rank);
        factors[i] = norm == 0 ? 1 : magnitude[i] / norm; /* as kernels/norm/row_factors.c has it */
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&magnitude, count, sizeof *magnitude);
    return status;
}

static an_status make_factors(an_merge *m, const an_params *params) {
    an_status status;
    an_context *ctx = m->ctx;
    double *row = NULL;
    size_t widest = 0, done = 0;
    for (size_t i = 0; i < params->parameter_count; i++) {
        const an_stored *e = &params->entries[i];
        if (find_part(m, e->name, AN_ADAPTER_MAGNITUDE) < 0) continue;
        AN_CHECK(ctx,
                 e->storage == AN_STORAGE_FROZEN && e->ndims == 2 && find_part(m, e->name, AN_ADAPTER_FIRST) >= 0 &&
                     find_part(m, e->name, AN_ADAPTER_SECOND) >= 0,
                 AN_ERR_DAMAGED, "%s: '%s' is not a matrix with a whole adapter", m->checkpoint->path, e->name);
        m->factor_count += (size_t)e->dims[0];
        if ((size_t)e->dims[1] > widest) widest = (size_t)e->dims[1];
    }
    if (m->factor_count == 0) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&m->factors, m->factor_count, sizeof *m->factors));
    AN_TRY(an_alloc(ctx, (void **)&m->places, m->graph->parameter_count, sizeof *m->places));
    AN_TRY(an_alloc(ctx, (void **)&row, widest, sizeof *row));
    for (size_t i = 0; i < params->parameter_count; i++) {
        const an_stored *e = &params->entries[i];
        if (find_part(m, e->name, AN_ADAPTER_MAGNITUDE) < 0) continue;
        AN_TRY(take_factors(m, params, e, row, m->factors + done));
        m->places[i] = done + 1;
        done += (size_t)e->dims[0];
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&row, widest, sizeof *row);
    return status;
}

/* ---- all of them ---- */

static bool has_blocks(const an_params *params) {
    for (size_t i = 0; i < params->parameter_count; i++)
        if (params->entries[i].dtype == AN_DTYPE_Q8_0) return true;
    return false;
}

/* A store of the model holds all of its weights, for their hash. It is kept if their numbers are not those of the
 * file. */
static an_status check_base(an_merge *m) {
    an_status status;
    an_context *ctx = m->ctx;
    const an_checkpoint *c = m->checkpoint;
    an_params *params = NULL;
    char *text = NULL;
    an_params_options options;
    an_params_options_init(&options, sizeof options);
    options.gradients = false;
    AN_TRY(an_checkpoint_text(c, "graph.ang", &text));
    AN_TRY(an_graph_parse(&m->graph, ctx, text, strlen(text)));
    AN_TRY(an_graph_verify(m->graph));
    AN_TRY(an_params_create(&params, ctx, m->graph, &options));
    AN_TRY(an_base_load(params, &c->manifest->adapter, c->path));
    AN_TRY(make_factors(m, params));
    for (size_t i = 0; i < m->graph->parameter_count; i++)
        m->layers += an_ends_in(m->graph->parameters[i].name, AN_ADAPTER_FIRST);
    if (has_blocks(params)) {
        m->params = params;
        params = NULL;
    }
    status = AN_OK;
fail:
    an_params_destroy(&params);
    an_string_release(ctx, &text);
    return status;
}

an_status an_merge_begin(an_merge *m, const an_checkpoint *checkpoint) {
    const an_checkpoint *c = checkpoint;
    an_context *ctx = c->ctx;
    *m = (an_merge){.checkpoint = c, .ctx = ctx};
    if (!c->manifest || c->manifest->adapter.adapter.rank == 0)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED, "%s: has no adapter to merge; only a run with lora.targets has one",
                        c->path);
    m->scale = an_adapter_scale(&c->manifest->adapter.adapter);
    AN_TRY_RETURN(an_checkpoint_verify(ctx, c->path));
    AN_TRY_RETURN(an_choose_weights(ctx, c->manifest, c->path, c->chosen, &m->average));
    return check_base(m);
}

void an_merge_end(an_merge *m) {
    an_context *ctx = m->ctx;
    if (!ctx) return;
    an_release(ctx, (void **)&m->factors, m->factor_count, sizeof *m->factors);
    if (m->graph) an_release(ctx, (void **)&m->places, m->graph->parameter_count, sizeof *m->places);
    an_release(ctx, (void **)&m->second, m->second_count, sizeof *m->second);
    an_release(ctx, (void **)&m->first, m->first_count, sizeof *m->first);
    an_release(ctx, &m->blocks, m->block_bytes, 1);
    an_params_destroy(&m->params);
    an_graph_destroy(&m->graph);
}
