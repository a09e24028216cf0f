/* Arrays in HDF5 files. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/dataset.h"
#include "data/structs.h"
#include "formats/hdf5_array.h"

enum { INPUTS, TARGETS, KINDS };

typedef struct {
    an_context *ctx;
    an_hdf5_file file;
    an_hdf5_array arrays[KINDS];
    int count;
    int64_t first;
    an_arena arena;
} hdf5;

/* ---- reading ---- */

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    hdf5 *x = user;
    const an_note note = {message, message_capacity};
    for (int f = 0; f < x->count; f++) {
        an_hdf5_array *a = &x->arrays[f];
        const size_t bytes = a->each * an_dtype_size(a->dtype);
        for (int64_t i = 0; i < n; i++) {
            const an_status status =
                an_hdf5_array_read(a, x->first + indices[i], (char *)fields[f] + (size_t)i * bytes, note);
            if (status != AN_OK) return status;
        }
    }
    return AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const hdf5 *x = user;
    an_hdf5_array_place(&x->arrays[field], x->first + index, element, (an_note){place, place_capacity});
}

static void close_hdf5(void *user) {
    hdf5 *x = user;
    an_context *ctx = x->ctx;
    for (int f = 0; f < KINDS; f++) an_hdf5_array_close(&x->arrays[f], ctx);
    an_hdf5_file_close(&x->file);
    an_arena_destroy(&x->arena);
    an_release(ctx, (void **)&x, 1, sizeof *x);
}

/* ---- opening ---- */

static an_status open_array(hdf5 *x, int kind, const char *given) {
    static const char *const usual[KINDS][3] = {{"inputs", "x", "X"}, {"targets", "y", "Y"}};
    an_context *ctx = x->ctx;
    if (given && !*given) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: an array of the data has no name", x->file.path);
    if (given) AN_TRY_RETURN(an_arena_string(&x->arena, &given, given, strlen(given)));
    const an_status status =
        an_hdf5_array_open(&x->arrays[kind], ctx, &x->file, given ? &given : usual[kind], given ? 1 : 3);
    if (status == AN_ERR_UNKNOWN && !given && kind == TARGETS) { /* there are none */
        an_hdf5_array_close(&x->arrays[kind], ctx);
        return AN_OK;
    }
    if (status == AN_ERR_UNKNOWN && !given)
        return AN_ERROR(ctx, status,
                        "%s: there is no array 'inputs', 'x' or 'X' in this file: data.train.inputs names another one "
                        "('h5ls -r' lists what is in the file)",
                        x->file.path);
    AN_TRY_RETURN(status);
    x->count = kind + 1;
    return AN_OK;
}

static an_status open_arrays(hdf5 *x, const an_hdf5_source *source) {
    an_context *ctx = x->ctx;
    const char *path = source->path ? source->path : "";
    const an_hdf5_array *inputs = &x->arrays[INPUTS], *targets = &x->arrays[TARGETS];
    AN_TRY_RETURN(an_arena_string(&x->arena, &path, path, strlen(path)));
    AN_TRY_RETURN(an_hdf5_file_open(&x->file, ctx, path));
    AN_TRY_RETURN(open_array(x, INPUTS, source->inputs));
    if (source->has_targets) AN_TRY_RETURN(open_array(x, TARGETS, source->targets));
    if (x->count == KINDS && targets->layout.dims[0] != inputs->layout.dims[0])
        return AN_ERROR(ctx, AN_ERR_SHAPE, "%s: there are %" PRId64 " targets, but '%s' has %" PRId64 " inputs", path,
                        targets->layout.dims[0], inputs->name, inputs->layout.dims[0]);
    return AN_OK;
}

static void choose_types(hdf5 *x, const an_hdf5_source *source) {
    an_hdf5_array *inputs = &x->arrays[INPUTS], *targets = &x->arrays[TARGETS];
    inputs->dtype = source->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    inputs->divisor = source->scaled && !strcmp(inputs->type->name, "u1") ? 255.0f : 1.0f;
    if (x->count < KINDS) return;
    targets->dtype = targets->type->integer ? AN_DTYPE_I32 : inputs->dtype;
    targets->divisor = 1.0f;
}

/* Labels are looked through once, so that it is known how many classes there are: O(samples). */
static an_status find_limit(hdf5 *x, int64_t *limit) {
    an_status status;
    an_context *ctx = x->ctx;
    an_hdf5_array *a = &x->arrays[TARGETS];
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    int32_t *classes = NULL;
    *limit = 0;
    if (x->count < KINDS || a->dtype != AN_DTYPE_I32) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&classes, a->each, sizeof *classes));
    for (int64_t i = 0; i < a->layout.dims[0]; i++) {
        AN_TRY(an_note_raise(ctx, an_hdf5_array_read(a, i, classes, note), note));
        for (size_t k = 0; k < a->each; k++)
            if (classes[k] >= *limit) *limit = (int64_t)classes[k] + 1;
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&classes, a->each, sizeof *classes);
    return status;
}

/* What a sample of an array is: everything but the first dimension. */
static an_field make_field(const an_hdf5_array *a, const char *name, bool flat, bool channel) {
    return an_array_field(name, a->dtype, a->layout.rank, a->layout.dims, flat, channel);
}

static an_status make_dataset(an_dataset **dataset, hdf5 *x, const an_hdf5_source *source) {
    an_context *ctx = x->ctx;
    const an_hdf5_array *inputs = &x->arrays[INPUTS], *targets = &x->arrays[TARGETS];
    const int64_t *dims = inputs->layout.dims;
    an_field fields[KINDS];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    int64_t last, limit;
    choose_types(x, source);
    AN_TRY_RETURN(find_limit(x, &limit));
    AN_TRY_RETURN(an_data_part(ctx, source->begin, source->end, dims[0], &x->first, &last));
    fields[INPUTS] = make_field(inputs, "inputs", source->flat || inputs->layout.rank == 1, source->channel);
    if (x->count == KINDS) {
        const bool number = targets->dtype != AN_DTYPE_I32 && targets->layout.rank == 1; /* y[n] is y[n, 1] */
        fields[TARGETS] = make_field(targets, "targets", number, false);
        fields[TARGETS].limit = limit;
        fields[TARGETS].target = true;
    }
    record.count = last - x->first;
    record.field_count = x->count;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_hdf5;
    record.user = x;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    if (inputs->layout.rank == 3) /* matrices */
        memcpy((*dataset)->image, (int64_t[]){1, dims[1], dims[2]}, sizeof(*dataset)->image);
    return AN_OK;
}

an_status an_dataset_create_hdf5(an_dataset **dataset, an_context *ctx, const an_hdf5_source *source) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, source);
    an_hdf5_source own;
    an_status status;
    hdf5 *x = NULL;
    *dataset = NULL;
    AN_TRY(an_hdf5_source_read(ctx, &own, source));
    AN_CHECK(ctx, own.dtype == AN_DTYPE_NONE || own.dtype == AN_DTYPE_F32 || own.dtype == AN_DTYPE_F64, AN_ERR_DTYPE,
             "the numbers of samples are f32 or f64, not %s", an_dtype_name(own.dtype));
    AN_TRY(an_alloc(ctx, (void **)&x, 1, sizeof *x));
    x->ctx = ctx;
    an_arena_init(&x->arena, ctx);
    AN_TRY(open_arrays(x, &own));
    AN_TRY(make_dataset(dataset, x, &own));
    return AN_OK;
fail:
    if (x) close_hdf5(x);
    return status;
}
