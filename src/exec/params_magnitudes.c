/* Where the magnitudes of DoRA start: the norms of the rows of their weights, by the kernel that divides by these norms
 * in every step. So the first factors are 1, and a new adapter changes no bit of what the model computes. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/word.h"
#include "exec/params.h"
#include "ir/adapter.h"
#include "kernels/norm/row_factors.h"
#include "ops/ops.h"

enum { WEIGHT, FIRST, SECOND, MAGNITUDE, INPUTS };
enum {
    ZEROS,
    FACTORS,
    NORMS,
    PARTS
}; /* of the memory that it takes, each of one number a row; the last two are one after the other */

static const an_stored *find_weight(const an_params *p, const an_stored *magnitude) {
    const size_t length = strlen(magnitude->name) - strlen(AN_ADAPTER_MAGNITUDE);
    for (size_t i = 0; i < p->parameter_count; i++) {
        const an_stored *e = &p->entries[i];
        if (!strncmp(e->name, magnitude->name, length) && !strcmp(e->name + length, ".weight")) return e;
    }
    return NULL;
}

/* The magnitude of a row of zeros is 0, and not what the kernel says so that nothing divides by it. With a magnitude
 * of 0, as here, only such a row has another factor than 0. */
static void clear_zeros(const an_stored *e, void *found) {
    const size_t count = (size_t)e->elements;
    for (size_t i = 0; i < count; i++) {
        if (e->dtype == AN_DTYPE_F64 && ((double *)found)[i] != 0) ((double *)found)[count + i] = 0;
        if (e->dtype == AN_DTYPE_F32 && ((float *)found)[i] != 0) ((float *)found)[count + i] = 0;
    }
}

/* Any rank can start what it has: all ranks have the whole weight, as it is frozen. */
static an_status start(an_params *p, const an_stored *e, const an_stored *weight) {
    an_status status;
    an_context *ctx = p->ctx;
    const an_device *device = p->device;
    const an_row_factors_attributes attributes = {.scale = 0};
    const size_t size = an_dtype_size(e->dtype), bytes = (size_t)e->elements * size;
    const an_kernel *kernel;
    void *memory = NULL;
    char *found = NULL;
    int64_t first, end;
    AN_TRY(an_alloc_raw(ctx, (void **)&found, 2 * bytes));
    AN_TRY(an_params_allocate(p, &memory, (int64_t)(PARTS * bytes)));
    char *parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = (char *)memory + (size_t)i * bytes;
    const an_tensor column = {
        .data = parts[ZEROS], .dtype = e->dtype, .ndims = 1, .dims = {e->elements}, .strides = {1}};
    an_tensor dst[] = {column, column}, src[INPUTS] = {[MAGNITUDE] = column};
    dst[0].data = parts[FACTORS];
    dst[1].data = parts[NORMS];
    src[WEIGHT] = (an_tensor){.data = (char *)p->frozen + weight->offset,
                              .dtype = weight->dtype,
                              .ndims = 2,
                              .dims = {weight->dims[0], weight->dims[1]},
                              .strides = {weight->dims[1], 1}};
    /* a change of rank 0 is none */
    src[FIRST] = (an_tensor){
        .data = memory, .dtype = e->dtype, .ndims = 2, .dims = {0, weight->dims[1]}, .strides = {weight->dims[1], 1}};
    src[SECOND] =
        (an_tensor){.data = memory, .dtype = e->dtype, .ndims = 2, .dims = {weight->dims[0], 0}, .strides = {1, 1}};
    const an_call call = {
        .ctx = ctx, .attributes = &attributes, .src_count = INPUTS, .dst_count = 2, .src = src, .dst = dst};
    AN_TRY(an_device_kernel(ctx, an_op_row_factors.name, &call, &kernel));
    AN_TRY(device->launch(device, kernel, &call));
    AN_TRY(device->copy(device, ctx, found, parts[FACTORS], 2 * bytes, AN_COPY_FROM_DEVICE));
    AN_TRY(device->synchronize(device, ctx));
    clear_zeros(e, found);
    for (int64_t next = 0; an_params_next(p, e, AN_FLAT_MASTERS, next, &first, &end); next = end)
        AN_TRY(device->copy(device, ctx, (char *)p->masters + e->offset + (size_t)first * size,
                            found + bytes + (size_t)first * size, (size_t)(end - first) * size, AN_COPY_TO_DEVICE));
    AN_TRY(device->synchronize(device, ctx));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&found, 2 * bytes, 1);
    device->release(device, ctx, &memory, PARTS * bytes);
    return status;
}

an_status an_params_start_magnitudes(an_params *p) {
    an_context *ctx = p->ctx;
    for (size_t i = 0; i < p->parameter_count; i++) {
        const an_stored *e = &p->entries[i];
        if (!an_ends_in(e->name, AN_ADAPTER_MAGNITUDE)) continue;
        const an_stored *weight = find_weight(p, e);
        if (!weight || weight->storage != AN_STORAGE_FROZEN || weight->ndims != 2 || e->storage != AN_STORAGE_MASTER ||
            e->ndims != 1 || weight->dims[0] != e->elements)
            return AN_ERROR(ctx, AN_ERR_STATE, "'%s' is not the magnitude of a frozen weight of the model", e->name);
        AN_TRY_RETURN(start(p, e, weight));
        p->version++;
    }
    return AN_OK;
}
