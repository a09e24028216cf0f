#include "exec/params.h"

#include <string.h>

#include "base/convert.h"
#include "base/guard.h"
#include "base/integer.h"
#include "base/parallel.h"
#include "base/philox.h"
#include "exec/structs.h"
#include "ir/adapter.h"
#include "ops/source.h"

/* Run states among the sources. */
static bool is_state(const an_node *node) {
    return node->outputs[0].storage == AN_STORAGE_STATE;
}

static const char *source_name(const an_node *node) {
    return *(const char **)an_node_attribute(node, "name", AN_ATTRIBUTE_STRING);
}

static void count_tables(const an_graph *graph, size_t *entries, size_t *name_bytes) {
    *entries = graph->parameter_count;
    *name_bytes = 0;
    for (size_t i = 0; i < graph->parameter_count; i++) *name_bytes += strlen(graph->parameters[i].name) + 1;
    for (size_t i = 0; i < graph->source_count; i++) {
        if (!is_state(graph->sources[i])) continue;
        ++*entries;
        *name_bytes += strlen(source_name(graph->sources[i])) + 1;
    }
}

int64_t an_params_table_bytes(const an_graph *graph) {
    size_t entries, name_bytes;
    count_tables(graph, &entries, &name_bytes);
    return (int64_t)(sizeof(an_params) + entries * sizeof(an_stored) + name_bytes);
}

static void fill_entry(an_params *p, const an_node *node, const char *name, int depth, char **names) {
    const an_result *r = &node->outputs[0];
    an_stored *e = &p->entries[p->entry_count++];
    size_t length = strlen(name) + 1;
    memcpy(*names, name, length);
    *e = (an_stored){.name = *names, .dtype = r->dtype, .storage = r->storage, .ndims = r->ndims, .depth = depth};
    *names += length;
    e->elements = 1;
    for (int d = 0; d < r->ndims; d++) e->elements *= e->dims[d] = r->dims[d]; /* laid out, so it cannot overflow */
    e->offset = r->place;
    if (node->op == &an_op_param) {
        const an_param_attributes *a = node->attributes;
        e->initializer = (an_initializer)a->initializer;
        e->scale = a->scale;
    } else {
        e->scale = ((const an_state_attributes *)node->attributes)->initial;
    }
}

static an_status start_entry(an_params *p, const an_stored *e, uint64_t seed, void *staging);

enum { STAGING_ELEMENTS = 64 * AN_PAGE }; /* at most: large enough for threads, small enough not to matter */

/* Entries from `first` to before `end` get their starting values. */
static an_status start(an_params *p, size_t first, size_t end, uint64_t seed) {
    an_status status;
    an_context *ctx = p->ctx;
    void *staging = NULL;
    size_t count = 0;
    for (size_t i = first; i < end; i++)
        if ((size_t)p->entries[i].elements > count) count = (size_t)p->entries[i].elements;
    if (count > STAGING_ELEMENTS) count = STAGING_ELEMENTS;
    AN_TRY(an_alloc(ctx, &staging, count, sizeof(double)));
    for (size_t i = first; i < end; i++) AN_TRY(start_entry(p, &p->entries[i], seed, staging));
    status = AN_OK;
fail:
    an_release(ctx, &staging, count, sizeof(double));
    return status;
}

void an_params_drop_gradients(an_params *p) {
    if (p->lender.take_back) {
        p->lender.take_back(p->lender.user);
        p->lender = (an_lender){0};
        p->gradients = NULL;
    }
    an_params_release_flat(p, &p->gradients, AN_FLAT_GRADIENTS, p->sizes.trainable_dtype);
}

an_status an_params_make_gradients(an_params *p) {
    return an_params_allocate_flat(p, &p->gradients, AN_FLAT_GRADIENTS, p->sizes.trainable_dtype);
}

void an_params_borrow_gradients(an_params *p, void *gradients, const an_lender *lender) {
    p->gradients = gradients;
    p->lender = *lender;
}

/* Pieces need addresses without memory, which only the host's memory is known to have. */
static an_status take_pieces(an_params *p, const an_params_pieces *pieces) {
    an_context *ctx = p->ctx;
    if (pieces->shards->pages != p->grid.end)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "the map of pieces has %lld pages, but the parameters have %lld",
                        (long long)pieces->shards->pages, (long long)p->grid.end);
    if (pieces->sharding != AN_SHARD_NONE && p->device != &an_device_host)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "ranks.shard %s needs the host's memory: parameters on device '%s' can only be whole (none)",
                        an_params_pieces_name(pieces), p->device->name);
    p->pieces = *pieces;
    return AN_OK;
}

an_status an_params_create(an_params **params, an_context *ctx, const an_graph *graph, const an_params_options *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, params, graph);
    return an_params_create_in(params, ctx, graph, given, NULL);
}

an_status an_params_create_in(an_params **params, an_context *ctx, const an_graph *graph,
                              const an_params_options *given, const an_params_pieces *pieces) {
    an_status status;
    an_params *p = NULL;
    an_graph *clone = NULL;
    an_params_options options;
    char *names;
    *params = NULL;
    AN_TRY(an_params_options_read(ctx, &options, given));
    AN_CHECK(ctx, graph->is_verified, AN_ERR_STATE,
             "graph '%s' is not verified: call an_graph_verify after the last change", graph->name);
    AN_CHECK(ctx, options.moments >= 0 && options.moments <= AN_MOST_MOMENTS, AN_ERR_ARGUMENT,
             "moments is %d; it must be from 0 to %d", options.moments, AN_MOST_MOMENTS);
    AN_CHECK(ctx, options.gradients || !options.average, AN_ERR_ARGUMENT,
             "parameters without gradients are never updated, so they cannot have a moving average");
    AN_TRY(an_alloc(ctx, (void **)&p, 1, sizeof *p));
    p->ctx = ctx;
    p->device = ctx->device;
    AN_TRY(an_graph_clone(&clone, graph)); /* the layout is an annotation: the caller's graph stays as it is */
    AN_TRY(an_graph_lay_out(clone, false, &p->sizes));
    p->grid.end = p->sizes.trainable_elements / AN_PAGE;
    if (pieces) AN_TRY(take_pieces(p, pieces));
    size_t entries, name_bytes;
    count_tables(clone, &entries, &name_bytes);
    AN_TRY(an_alloc(ctx, (void **)&p->entries, entries, sizeof *p->entries));
    p->entry_capacity = entries;
    AN_TRY(an_alloc(ctx, (void **)&p->names, name_bytes, 1));
    p->name_bytes = name_bytes;
    names = p->names;
    for (size_t i = 0; i < clone->parameter_count; i++)
        fill_entry(p, clone->parameters[i].node, clone->parameters[i].name, clone->parameters[i].depth, &names);
    p->parameter_count = p->entry_count;
    for (size_t i = 0; i < clone->source_count; i++)
        if (is_state(clone->sources[i])) fill_entry(p, clone->sources[i], source_name(clone->sources[i]), 0, &names);
    an_graph_destroy(&clone);

    p->has_gradients = options.gradients;
    p->moment_count = p->has_gradients ? options.moments : 0;
    const an_dtype dtype = p->sizes.trainable_dtype;
    AN_TRY(an_params_allocate_flat(p, &p->masters, AN_FLAT_MASTERS, dtype));
    AN_TRY(an_params_allocate(p, &p->frozen, p->sizes.frozen_bytes));
    AN_TRY(an_params_allocate(p, &p->states, p->sizes.state_bytes));
    if (p->has_gradients) AN_TRY(an_params_make_gradients(p));
    for (int i = 0; i < p->moment_count; i++)
        AN_TRY(an_params_allocate_flat(p, &p->moments[i], AN_FLAT_MOMENTS, dtype));
    if (options.average) AN_TRY(an_params_make_average(p));
    AN_TRY(start(p, p->parameter_count, p->entry_count, 0));
    *params = p;
    return AN_OK;

fail:
    an_graph_destroy(&clone);
    an_params_destroy(&p);
    return status;
}

void an_params_destroy(an_params **params) {
    an_params *p = params ? *params : NULL;
    if (!p) return;
    an_context *ctx = p->ctx;
    const an_dtype dtype = p->sizes.trainable_dtype;
    an_params_release_flat(p, &p->average.flat, AN_FLAT_MOMENTS, dtype);
    for (int i = 0; i < AN_MOST_MOMENTS; i++) an_params_release_flat(p, &p->moments[i], AN_FLAT_MOMENTS, dtype);
    an_params_drop_gradients(p);
    p->device->release(p->device, ctx, &p->states, (size_t)p->sizes.state_bytes);
    p->device->release(p->device, ctx, &p->frozen, (size_t)p->sizes.frozen_bytes);
    an_params_release_flat(p, &p->low, AN_FLAT_LOW, p->low_dtype);
    an_params_release_flat(p, &p->masters, AN_FLAT_MASTERS, dtype);
    an_release(ctx, (void **)&p->names, p->name_bytes, 1);
    an_release(ctx, (void **)&p->entries, p->entry_capacity, sizeof *p->entries);
    an_release(ctx, (void **)params, 1, sizeof *p);
}

/* ---- starting values ---- */

typedef struct {
    const an_stored *entry;
    an_philox_key key;
    int64_t first, count;
    double *values;
} drawing;

enum { DRAWN = 256 }; /* numbers at a time: few enough for a small stack */

static void draw(const drawing *d, int64_t begin, int64_t n) {
    const bool normal = d->entry->initializer == AN_INITIALIZER_NORMAL;
    const uint64_t first = (uint64_t)(d->first + begin);
    double *values = d->values + begin;
    float narrow[DRAWN];
    if (d->entry->dtype == AN_DTYPE_F64) {
        (normal ? an_random_block_normal_f64 : an_random_block_uniform_f64)(d->key, first, n, values);
    } else {
        (normal ? an_random_block_normal_f32 : an_random_block_uniform_f32)(d->key, first, n, narrow);
        for (int64_t i = 0; i < n; i++) values[i] = (double)narrow[i];
    }
    for (int64_t i = 0; i < n; i++) values[i] = (normal ? values[i] : 2 * values[i] - 1) * d->entry->scale;
}

static void draw_page(void *user, int64_t index, int thread) {
    const drawing *d = user;
    const an_initializer initializer = d->entry->initializer;
    int64_t begin = index * AN_PAGE, end = begin + AN_PAGE < d->count ? begin + AN_PAGE : d->count;
    (void)thread;
    if (initializer == AN_INITIALIZER_NORMAL || initializer == AN_INITIALIZER_UNIFORM)
        for (int64_t i = begin; i < end; i += DRAWN) draw(d, i, an_smaller(end - i, DRAWN));
    else
        for (int64_t i = begin; i < end; i++) d->values[i] = d->entry->scale;
}

/* The number of an element depends on seed, name and place alone, so any rank can start any shard. */
static an_status start_entry(an_params *p, const an_stored *e, uint64_t seed, void *staging) {
    an_context *ctx = p->ctx;
    drawing d = {.entry = e, .key = {.seed = seed, .site = an_hash(e->name, strlen(e->name), 0)}, .values = staging};
    char *base = (char *)an_params_base(p, e->storage) + e->offset;
    for (int64_t end = 0; an_params_next(p, e, AN_FLAT_MASTERS, end, &d.first, &end);) {
        for (; d.first < end; d.first += STAGING_ELEMENTS) {
            d.count = an_smaller(end - d.first, STAGING_ELEMENTS);
            an_parallel(ctx, (d.count + AN_PAGE - 1) / AN_PAGE, draw_page, &d);
            an_convert_from_f64(e->dtype, d.count, staging); /* in place: no type is wider */
            AN_TRY_RETURN(p->device->copy(p->device, ctx, base + an_dtype_bytes(e->dtype, d.first), staging,
                                          (size_t)an_dtype_bytes(e->dtype, d.count), AN_COPY_TO_DEVICE));
        }
    }
    return AN_OK;
}

an_status an_params_reset(an_params *params, uint64_t seed) {
    AN_GUARD;
    AN_NEED(params);
    an_context *ctx = params->ctx;
    AN_TRY_RETURN(an_context_check_threads(ctx));
    params->version++;
    params->deferred = false;
    an_status status = start(params, 0, params->parameter_count, seed); /* run states keep what they learned */
    if (status == AN_OK) status = an_params_start_magnitudes(params);
    if (status != AN_OK) an_error_frame(__func__, __FILE__, __LINE__);
    return status;
}

an_status an_params_defer(an_params *p, uint64_t seed) {
    p->version++;
    p->seed = seed;
    p->deferred = true;
    for (size_t i = 0; i < p->parameter_count; i++)
        if (an_adapter_has(p->entries[i].name)) AN_TRY_RETURN(start(p, i, i + 1, seed));
    return AN_OK;
}

an_status an_params_start(an_params *p, size_t entry) {
    return p->deferred && entry < p->parameter_count ? start(p, entry, entry + 1, p->seed) : AN_OK;
}

/* ---- low copies ---- */

/* The call that makes them; it points into itself, so it stays where it is. */
typedef struct {
    an_tensor src, dst;
    an_call call;
} low_cast;

static void low_cast_make(const an_params *p, an_dtype low, const an_page_range *pages, low_cast *c) {
    c->src = an_flat_tensor(p->masters, p->sizes.trainable_dtype, pages);
    c->dst = an_flat_tensor(p->low, low, pages);
    c->call = (an_call){.ctx = p->ctx, .src_count = 1, .dst_count = 1, .src = &c->src, .dst = &c->dst};
}

an_status an_params_need_low(an_params *p, an_dtype low) {
    an_context *ctx = p->ctx;
    if (low == AN_DTYPE_NONE || low == p->low_dtype) return AN_OK;
    if (p->low_dtype != AN_DTYPE_NONE)
        return AN_ERROR(
            ctx, AN_ERR_STATE,
            "the parameters already have copies in %s for another program; a program in %s needs parameters of its own",
            an_dtype_name(p->low_dtype), an_dtype_name(low));
    low_cast c;
    low_cast_make(p, low, &p->grid, &c);
    AN_TRY_RETURN(an_device_kernel(ctx, an_op_cast.name, &c.call, &p->low_kernel));
    AN_TRY_RETURN(an_params_allocate_flat(p, &p->low, AN_FLAT_LOW, low));
    p->low_dtype = low;
    p->low_version = p->version - 1;
    return AN_OK;
}

an_status an_params_need_extras(an_params *p, const an_flat_sizes *sizes) {
    if (sizes->gradient_elements <= p->sizes.gradient_elements) return AN_OK;
    if (p->lender.is_busy)
        return AN_ERROR(p->ctx, AN_ERR_STATE,
                        "these parameters have a stepper, which uses their gradients: destroy it before another "
                        "program is created");
    an_params_drop_gradients(p);
    p->sizes.gradient_elements = sizes->gradient_elements;
    return an_params_make_gradients(p);
}

static an_status refresh_piece(an_params *p, const an_page_range *piece) {
    an_page_range part;
    for (an_page_range rest = *piece; rest.begin < rest.end; rest.begin = part.end) {
        bool has_low;
        low_cast c;
        part = an_params_low_part(p, &rest, &has_low);
        if (!has_low) continue;
        low_cast_make(p, p->low_dtype, &part, &c);
        AN_TRY_RETURN(p->device->launch(p->device, p->low_kernel, &c.call));
    }
    return AN_OK;
}

an_status an_params_refresh(an_params *p) {
    if (!p->low || p->low_version == p->version) return AN_OK;
    for (int i = 0; i < an_params_piece_count(p); i++) {
        const an_page_range piece = an_params_piece(p, i);
        AN_TRY_RETURN(refresh_piece(p, &piece));
    }
    p->low_version = p->version;
    return AN_OK;
}

/* ---- access by name ---- */

void *an_params_base(const an_params *p, an_storage storage) {
    switch (storage) {
    case AN_STORAGE_MASTER: return p->masters;
    case AN_STORAGE_FROZEN: return p->frozen;
    case AN_STORAGE_STATE: return p->states;
    case AN_STORAGE_GRADIENT: return p->gradients;
    case AN_STORAGE_LOW: return p->low;
    default: return NULL;
    }
}

void *an_params_part(const an_params *p, const an_stored *e, an_param_part part) {
    if (part == AN_PART_WEIGHT) return an_params_base(p, e->storage);
    if (e->storage != AN_STORAGE_MASTER) return NULL;
    if (part == AN_PART_GRADIENT) return p->gradients;
    if ((unsigned)part >= AN_KEPT_END || !an_kept_has(an_params_kept(p), part)) return NULL;
    if (part != AN_PART_AVERAGE) return p->moments[part - AN_PART_MOMENT_1];
    return an_params_average(p);
}

int64_t an_params_count(const an_params *params) {
    AN_NEED_OR(0, params);
    return (int64_t)params->parameter_count;
}

an_status an_params_info(const an_params *params, int64_t index, an_param_info *info) {
    AN_NEED(params, info);
    an_context *ctx = params->ctx;
    AN_TRY_RETURN(an_param_info_check(ctx, info));
    if (index < 0 || index >= (int64_t)params->parameter_count)
        return AN_ERROR(params->ctx, AN_ERR_ARGUMENT, "parameter %lld does not exist; there are %zu", (long long)index,
                        params->parameter_count);
    const an_stored *e = &params->entries[index];
    an_param_info own = {.name = e->name,
                         .dtype = e->dtype,
                         .ndims = e->ndims,
                         .elements = e->elements,
                         .trainable = e->storage == AN_STORAGE_MASTER,
                         .offset = e->offset / an_dtype_bytes(e->dtype, AN_PAGE) * AN_PAGE,
                         .depth = e->depth};
    memcpy(own.dims, e->dims, sizeof own.dims);
    return an_param_info_write(ctx, info, &own);
}
