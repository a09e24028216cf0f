/* Arrays in NumPy's files. */
#include <inttypes.h>
#include <string.h>

#include "base/guard.h"
#include "data/dataset.h"
#include "data/structs.h"
#include "formats/npy_array.h"

enum { INPUTS, TARGETS, KINDS, WEIGHTS = KINDS, ARRAYS };

typedef struct {
    an_context *ctx;
    int count; /* without weights, which are the last field */
    bool has_weights;
    an_npy_array arrays[ARRAYS];
    int64_t first;
    an_arena arena;
} npy;

/* ---- reading ---- */

static an_status read_weights(const npy *x, int64_t n, const int64_t *indices, double *weights, an_note note) {
    const an_npy_array *a = &x->arrays[WEIGHTS];
    for (int64_t i = 0; i < n; i++) {
        const int64_t number = x->first + indices[i];
        const an_status status = an_npy_array_read(a, number, 1, &weights[i], note);
        if (status != AN_OK) return status;
        if (weights[i] >= 0) continue;
        char place[AN_MESSAGE_BYTES / 2];
        an_npy_array_place(a, number, (an_note){place, sizeof place});
        return AN_NOTE(note, AN_ERR_PARSE, "%s: %g is not a weight: weights are finite numbers that are 0 or more",
                       place, weights[i]);
    }
    return AN_OK;
}

static an_status read_samples(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                              size_t message_capacity) {
    const npy *x = user;
    const an_note note = {message, message_capacity};
    for (int f = 0; f < x->count; f++) {
        const an_npy_array *a = &x->arrays[f];
        const size_t bytes = a->each * an_dtype_size(a->dtype);
        for (int64_t i = 0; i < n; i++) {
            const int64_t number = (x->first + indices[i]) * (int64_t)a->each;
            const an_status status = an_npy_array_read(a, number, a->each, (char *)fields[f] + (size_t)i * bytes, note);
            if (status != AN_OK) return status;
        }
    }
    return x->has_weights ? read_weights(x, n, indices, fields[x->count], note) : AN_OK;
}

static void locate(void *user, int field, int64_t index, int64_t element, char *place, size_t place_capacity) {
    const npy *x = user;
    const an_npy_array *a = &x->arrays[field < x->count ? field : WEIGHTS];
    an_npy_array_place(a, (x->first + index) * (int64_t)a->each + element, (an_note){place, place_capacity});
}

static void close_npy(void *user) {
    npy *x = user;
    an_context *ctx = x->ctx;
    for (int i = 0; i < ARRAYS; i++) an_npy_array_close(&x->arrays[i], ctx);
    an_arena_destroy(&x->arena);
    an_release(ctx, (void **)&x, 1, sizeof *x);
}

/* ---- both ---- */

/* Names that arrays have where nobody chose others: of inputs, and in the same order of targets. */
static const char *const usual[KINDS][5] = {{"inputs", "x", "X", "x_train", "arr_0"},
                                            {"targets", "y", "y", "y_train", "arr_1"}};
enum { USUAL = sizeof usual[0] / sizeof *usual[0] };

static an_status open_file(npy *x, int kind, const char *path, bool *is_zip) {
    an_context *ctx = x->ctx;
    const char *kept;
    if (!path || !*path) return AN_ERROR(ctx, AN_ERR_ARGUMENT, "a file of the data has no name");
    AN_TRY_RETURN(an_arena_string(&x->arena, &kept, path, strlen(path)));
    return an_npy_array_open(&x->arrays[kind], ctx, kept, is_zip);
}

/* An array by the name that was given, or else by the usual ones. */
static an_status load_member(npy *x, int kind, const char *name, const char *const *names, int count, int *found) {
    return an_npy_array_load_member(&x->arrays[kind], x->ctx, name ? &name : names, name ? 1 : count, found);
}

/* Targets of a .npz file. Inputs of a usual name have targets of the name that goes with it, others of any usual one;
 * these may be absent. */
static an_status load_targets(npy *x, const an_npy_source *source, int usual_name) {
    an_context *ctx = x->ctx;
    int found;
    const bool required = source->targets || source->labels, is_usual = source->inputs == NULL;
    const an_status status = load_member(x, TARGETS, source->targets, &usual[TARGETS][is_usual ? usual_name : 0],
                                         is_usual ? 1 : USUAL, &found);
    if (status != AN_ERR_UNKNOWN || required) return status;
    an_npy_array_close(&x->arrays[TARGETS], ctx);
    x->count = 1;
    return AN_OK;
}

/* An array of the .npz file that has the inputs. */
static an_status load_weights(npy *x, const an_npy_source *source) {
    an_context *ctx = x->ctx;
    bool is_zip;
    int found;
    AN_TRY_RETURN(open_file(x, WEIGHTS, source->path, &is_zip));
    an_npy_array *a = &x->arrays[WEIGHTS];
    const an_status status = an_npy_array_load_member(a, ctx, &source->weights, 1, &found);
    if (status == AN_ERR_UNKNOWN && source->weights_optional) return AN_OK;
    AN_TRY_RETURN(status);
    if (a->header.count != a->header.dims[0] || a->header.count != x->arrays[INPUTS].header.dims[0])
        return AN_ERROR(ctx, AN_ERR_SHAPE, "%s: '%s' has %" PRId64 " numbers, but there are %" PRId64 " samples",
                        source->path, source->weights, a->header.count, x->arrays[INPUTS].header.dims[0]);
    a->dtype = AN_DTYPE_F64;
    a->divisor = 1.0f;
    a->each = 1;
    x->has_weights = true;
    return AN_OK;
}

static an_status open_arrays(npy *x, const an_npy_source *source) {
    an_context *ctx = x->ctx;
    bool is_zip;
    int found = 0;
    x->count = KINDS;
    AN_TRY_RETURN(open_file(x, INPUTS, source->path, &is_zip));
    if (!is_zip && source->weights && !source->weights_optional)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: this is a .npy file, which has one array; weights are an array of a .npz file",
                        source->path);
    AN_TRY_RETURN(is_zip ? load_member(x, INPUTS, source->inputs, usual[INPUTS], USUAL, &found)
                         : an_npy_array_load(&x->arrays[INPUTS], ctx));
    if (is_zip && source->weights) AN_TRY_RETURN(load_weights(x, source));
    if (!is_zip && (source->inputs || (source->targets && !source->labels)))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: this is a .npy file, which has one array without a name; names are for .npz files",
                        source->path);
    if (!is_zip && !source->labels) {
        x->count = 1;
        return AN_OK;
    }
    AN_TRY_RETURN(open_file(x, TARGETS, source->labels ? source->labels : source->path, &is_zip));
    return is_zip ? load_targets(x, source, found) : an_npy_array_load(&x->arrays[TARGETS], ctx);
}

static void choose_types(npy *x, const an_npy_source *source) {
    an_npy_array *inputs = &x->arrays[INPUTS], *targets = &x->arrays[TARGETS];
    const an_dtype dtype = source->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32;
    inputs->dtype = dtype;
    inputs->divisor = source->scaled && !strcmp(inputs->header.type->name, "u1") ? 255.0f : 1.0f;
    for (int f = 0; f < x->count; f++) {
        an_npy_array *a = &x->arrays[f];
        a->each = (size_t)(a->header.count / a->header.dims[0]);
    }
    if (x->count < KINDS) return;
    targets->dtype = targets->header.type->integer ? AN_DTYPE_I32 : dtype;
    targets->divisor = 1.0f;
}

/* Labels are looked through once, so that it is known how many classes there are. */
static an_status find_limit(const npy *x, int64_t *limit) {
    enum { AT_ONCE = 1024 };
    const an_npy_array *a = &x->arrays[TARGETS];
    int32_t classes[AT_ONCE];
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    *limit = 0;
    if (x->count < KINDS || a->dtype != AN_DTYPE_I32) return AN_OK;
    for (int64_t at = 0; at < a->header.count; at += AT_ONCE) {
        const int64_t left = a->header.count - at, some = left < AT_ONCE ? left : AT_ONCE;
        const an_status status = an_npy_array_read(a, at, (size_t)some, classes, note);
        if (status != AN_OK) return an_note_raise(x->ctx, status, note);
        for (int64_t i = 0; i < some; i++)
            if (classes[i] >= *limit) *limit = (int64_t)classes[i] + 1;
    }
    return AN_OK;
}

/* What a sample of an array is: everything but the first dimension. */
static an_field make_field(const an_npy_array *a, const char *name, bool flat, bool channel) {
    return an_array_field(name, a->dtype, a->header.rank, a->header.dims, flat, channel);
}

static an_status make_dataset(an_dataset **dataset, npy *x, const an_npy_source *source) {
    an_context *ctx = x->ctx;
    const an_npy_array *inputs = &x->arrays[INPUTS], *targets = &x->arrays[TARGETS];
    an_field fields[ARRAYS];
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    int64_t last, limit;
    if (x->count == KINDS && targets->header.dims[0] != inputs->header.dims[0])
        return AN_ERROR(ctx, AN_ERR_SHAPE, "%s: there are %" PRId64 " targets, but %s has %" PRId64 " inputs",
                        targets->path, targets->header.dims[0], inputs->path, inputs->header.dims[0]);
    choose_types(x, source);
    AN_TRY_RETURN(find_limit(x, &limit));
    AN_TRY_RETURN(an_data_part(ctx, source->begin, source->end, inputs->header.dims[0], &x->first, &last));
    fields[INPUTS] = make_field(inputs, "inputs", source->flat || inputs->header.rank == 1, source->channel);
    if (x->count == KINDS) {
        const bool number = targets->dtype != AN_DTYPE_I32 && targets->header.rank == 1; /* y[n] is y[n, 1] */
        fields[TARGETS] = make_field(targets, "targets", number, false);
        fields[TARGETS].limit = limit;
        fields[TARGETS].target = true;
    }
    if (x->has_weights) {
        an_field_init(&fields[x->count], sizeof fields[x->count]);
        fields[x->count].name = "weights";
        fields[x->count].dtype = AN_DTYPE_F64;
    }
    record.count = last - x->first;
    record.field_count = x->count + x->has_weights;
    record.fields = fields;
    record.read = read_samples;
    record.locate = locate;
    record.close = close_npy;
    record.user = x;
    AN_TRY_RETURN(an_dataset_create(dataset, ctx, &record));
    if (inputs->header.rank == 3) /* matrices */
        memcpy((*dataset)->image, (int64_t[]){1, inputs->header.dims[1], inputs->header.dims[2]},
               sizeof(*dataset)->image);
    return AN_OK;
}

an_status an_dataset_create_npy(an_dataset **dataset, an_context *ctx, const an_npy_source *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, dataset, given);
    an_npy_source own;
    an_status status;
    npy *x = NULL;
    *dataset = NULL;
    AN_TRY(an_npy_source_read(ctx, &own, given));
    AN_CHECK(ctx, own.dtype == AN_DTYPE_NONE || own.dtype == AN_DTYPE_F32 || own.dtype == AN_DTYPE_F64, AN_ERR_DTYPE,
             "the numbers of samples are f32 or f64, not %s", an_dtype_name(own.dtype));
    AN_TRY(an_alloc(ctx, (void **)&x, 1, sizeof *x));
    x->ctx = ctx;
    an_arena_init(&x->arena, ctx);
    AN_TRY(open_arrays(x, &own));
    AN_TRY(make_dataset(dataset, x, &own));
    return AN_OK;
fail:
    if (x) close_npy(x);
    return status;
}
