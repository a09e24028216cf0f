/* Parameters by name, whole: for programs, tools and tests. A trainer works on the flat buffers.
 *
 * A store in pieces gives a parameter to all ranks, from its owners: those calls are collective. */
#include <string.h>

#include "anneal/plan.h"
#include "base/guard.h"
#include "base/integer.h"
#include "base/q8_0.h"
#include "base/status.h"
#include "comm/comm.h"
#include "exec/array.h"
#include "exec/params.h"

/* What a call asks for. */
typedef struct {
    const an_stored *stored;
    an_flat flat; /* of a parameter that is trained */
    char *base;
} place;

static an_flat flat_of(an_param_part part) {
    return part == AN_PART_WEIGHT ? AN_FLAT_MASTERS : part == AN_PART_GRADIENT ? AN_FLAT_GRADIENTS : AN_FLAT_MOMENTS;
}

static bool is_divided(const an_params *p, const an_stored *e) {
    return p->pieces.shards && e->storage == AN_STORAGE_MASTER;
}

/* O(parameters). */
static an_status locate(const an_params *p, const char *name, an_param_part part, const an_array *array, place *found) {
    an_context *ctx = p->ctx;
    const an_stored *e = NULL;
    for (size_t i = 0; i < p->entry_count && !e; i++)
        if (!strcmp(p->entries[i].name, name)) e = &p->entries[i];
    if (!e) return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there is no parameter or run state '%s'", name);
    char *base = an_params_part(p, e, part);
    if (!base)
        return AN_ERROR(ctx, AN_ERR_STATE,
                        "'%s' does not have this part: it is frozen, or the parameters were created without it", name);
    const an_dtype dtype = e->dtype == AN_DTYPE_Q8_0 ? AN_DTYPE_F32 : e->dtype;
    AN_TRY_RETURN(an_array_check(ctx, array, name, dtype, e->ndims, e->dims));
    *found = (place){.stored = e, .flat = flat_of(part), .base = base};
    return AN_OK;
}

an_status an_params_spread(const an_params *p, const void *base, const an_page_range *pages, void *to) {
    an_context *ctx = p->ctx;
    an_comm *comm = an_shards_comm(p->pieces.shards);
    const size_t page_bytes = AN_PAGE * an_dtype_size(p->sizes.trainable_dtype);
    if (comm->ranks != p->pieces.shards->ranks)
        return AN_ERROR(ctx, AN_ERR_STATE, "the parameters are divided among %d ranks, but the context has %d",
                        p->pieces.shards->ranks, comm->ranks);
    for (int64_t page = pages->begin, end; page < pages->end; page = end) {
        const int owner = an_shards_owner(p->pieces.shards, page, &end);
        end = an_smaller(end, pages->end);
        char *part = (char *)to + (size_t)(page - pages->begin) * page_bytes;
        const size_t bytes = (size_t)(end - page) * page_bytes;
        if (owner == comm->rank) {
            const char *from = (const char *)base + (size_t)page * page_bytes;
            AN_TRY_RETURN(p->device->copy(p->device, ctx, part, from, bytes, AN_COPY_FROM_DEVICE));
            AN_TRY_RETURN(p->device->synchronize(p->device, ctx));
        }
        AN_TRY_RETURN(an_comm_spread(ctx, comm, part, bytes, owner, AN_TAG_PIECES, "a parameter from its owners"));
    }
    return AN_OK;
}

/* All of one that is divided, in memory that is released again. */
static an_status get_divided(const an_params *p, const place *at, an_array *array) {
    an_context *ctx = p->ctx;
    const int64_t page_bytes = AN_PAGE * (int64_t)an_dtype_size(at->stored->dtype);
    const int64_t first = at->stored->offset / page_bytes;
    const an_page_range pages = {first, first + an_divide_up(at->stored->elements, AN_PAGE)};
    const size_t bytes = (size_t)((pages.end - pages.begin) * page_bytes);
    void *whole = NULL;
    AN_TRY_RETURN(an_alloc_raw(ctx, &whole, bytes));
    an_status status = an_params_spread(p, at->base, &pages, whole);
    if (status == AN_OK) status = an_array_copy_out(ctx, p->device, array, whole);
    an_release(ctx, &whole, bytes, 1);
    return status;
}

/* Blocks are widened when they are read, and made when they are set. */
static an_status move_blocks(const an_params *p, const place *at, const an_array *array, bool set) {
    an_status status;
    an_context *ctx = p->ctx;
    const an_stored *e = at->stored;
    const size_t count = (size_t)e->elements, bytes = (size_t)an_dtype_bytes(e->dtype, e->elements);
    void *blocks = NULL;
    float *numbers = NULL;
    AN_TRY(an_alloc_raw(ctx, &blocks, bytes));
    AN_TRY(an_alloc(ctx, (void **)&numbers, count, sizeof *numbers));
    if (set) {
        AN_TRY(an_array_copy_in(ctx, p->device, numbers, array));
        an_q8_0_from_f32(numbers, e->elements, blocks);
        AN_TRY(p->device->copy(p->device, ctx, at->base + e->offset, blocks, bytes, AN_COPY_TO_DEVICE));
    } else {
        AN_TRY(p->device->copy(p->device, ctx, blocks, at->base + e->offset, bytes, AN_COPY_FROM_DEVICE));
        AN_TRY(p->device->synchronize(p->device, ctx));
        an_q8_0_to_f32(blocks, e->elements, numbers);
        AN_TRY(an_array_copy_out(ctx, p->device, array, numbers));
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&numbers, count, sizeof *numbers);
    an_release(ctx, &blocks, bytes, 1);
    return status;
}

an_status an_params_get(const an_params *params, const char *name, an_param_part part, an_array *array) {
    AN_GUARD;
    AN_NEED(params, name, array);
    an_context *ctx = params->ctx;
    place at;
    AN_TRY_RETURN(locate(params, name, part, array, &at));
    if (at.stored->dtype == AN_DTYPE_Q8_0) return move_blocks(params, &at, array, false);
    if (is_divided(params, at.stored)) return get_divided(params, &at, array);
    return an_array_copy_out(ctx, params->device, array, at.base + at.stored->offset);
}

/* What this rank has of it. */
static an_status set_divided(an_params *p, const place *at, const an_array *array) {
    an_status status;
    an_context *ctx = p->ctx;
    const an_stored *e = at->stored;
    const size_t size = an_dtype_size(e->dtype), bytes = (size_t)e->elements * size;
    char *whole = NULL;
    AN_TRY(an_alloc_raw(ctx, (void **)&whole, bytes));
    AN_TRY(an_array_copy_in(ctx, p->device, whole, array));
    for (int64_t first, end = 0; an_params_next(p, e, at->flat, end, &first, &end);)
        AN_TRY(p->device->copy(p->device, ctx, at->base + e->offset + (size_t)first * size,
                               whole + (size_t)first * size, (size_t)(end - first) * size, AN_COPY_TO_DEVICE));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&whole, bytes, 1);
    return status;
}

an_status an_params_set(an_params *params, const char *name, an_param_part part, const an_array *array) {
    AN_GUARD;
    AN_NEED(params, name, array);
    an_context *ctx = params->ctx;
    place at;
    AN_TRY_RETURN(locate(params, name, part, array, &at));
    if (part == AN_PART_AVERAGE && !params->average.begun) {
        AN_TRY_RETURN(an_params_begin_average(params));
        AN_TRY_RETURN(locate(params, name, part, array, &at)); /* until now it was the weights */
    }
    /* Run states have no copies of low precision: setting one, as every step of a batch norm does, makes none anew. */
    if (part == AN_PART_WEIGHT && at.stored->storage != AN_STORAGE_STATE) params->version++;
    if (at.stored->dtype == AN_DTYPE_Q8_0) return move_blocks(params, &at, array, true);
    if (is_divided(params, at.stored)) return set_divided(params, &at, array);
    return an_array_copy_in(ctx, params->device, at.base + at.stored->offset, array);
}
