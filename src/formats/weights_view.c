#include "formats/weights_view.h"

#include <string.h>

#include "base/convert.h"
#include "base/dtype.h"
#include "base/integer.h"
#include "formats/conv1d.h"

typedef struct {
    an_weights from;
    an_arena arena;
    an_view_tensor *tensors;
    size_t count;
    char *whole; /* the matrix that is transposed */
    size_t whole_bytes;
    int64_t held; /* its number; -1: none */
} view;

static int64_t elements_of(const an_safetensor *tensor) {
    return tensor->bytes / (int64_t)tensor->type->size;
}

/* The type that holds the numbers of both. */
static const an_safetensors_type *wider(const an_safetensors_type *a, const an_safetensors_type *b) {
    if (a == b) return a;
    return an_safetensors_type_of(a->dtype == AN_DTYPE_F64 || b->dtype == AN_DTYPE_F64 ? AN_DTYPE_F64 : AN_DTYPE_F32);
}

/* Of the tensor that a view's tensor begins with, as all of it, or as the part of it. */
static an_status measure(const view *v, const an_view_tensor *t, an_safetensor *tensor) {
    int64_t elements = elements_of(tensor);
    for (int i = 0; i < t->joined_count; i++) {
        an_safetensor next;
        AN_TRY_RETURN(v->from.get(&v->from, t->joined[i], &next));
        tensor->type = wider(tensor->type, next.type);
        tensor->dims[0] += next.dims[0];
        elements += elements_of(&next);
    }
    if (t->rows > 0) {
        elements = elements / tensor->dims[0] * t->rows;
        tensor->dims[0] = t->rows;
    }
    tensor->bytes = elements * (int64_t)tensor->type->size;
    return AN_OK;
}

static an_status get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const view *v = w->state;
    const an_view_tensor *t = &v->tensors[index];
    AN_TRY_RETURN(v->from.get(&v->from, t->index, tensor));
    tensor->name = t->name;
    if (t->rows > 0 || t->joined_count > 0) AN_TRY_RETURN(measure(v, t, tensor));
    if (t->transposed) {
        const int64_t rows = tensor->dims[0];
        tensor->dims[0] = tensor->dims[1];
        tensor->dims[1] = rows;
    }
    return AN_OK;
}

static an_status hold(const an_weights *w, int64_t index, const an_safetensor *source) {
    view *v = w->state;
    an_context *ctx = w->ctx;
    const size_t bytes = (size_t)source->bytes;
    if (v->held == index) return AN_OK;
    v->held = -1;
    if (bytes > v->whole_bytes) {
        an_release(ctx, (void **)&v->whole, v->whole_bytes, 1);
        v->whole_bytes = 0;
        AN_TRY_RETURN(an_alloc_raw(ctx, (void **)&v->whole, bytes));
        v->whole_bytes = bytes;
    }
    AN_TRY_RETURN(v->from.read(&v->from, v->tensors[index].index, source, 0,
                               source->bytes / (int64_t)source->type->size, v->whole));
    v->held = index;
    return AN_OK;
}

/* Row i of a head is row i / 2 of its first half, or of its second. */
static int64_t row_viewed(int64_t row, int64_t half) {
    const int64_t head = row / (2 * half), inside = row % (2 * half);
    return head * 2 * half + inside % 2 * half + inside / 2;
}

/* Elements of one of the tensors that are joined, as those of the joined one. */
static an_status read_converted(const view *v, int64_t index, const an_safetensor *source, an_dtype dtype,
                                int64_t first, int64_t count, char *to) {
    enum { PART = 512 };
    double part[PART];
    if (source->type->dtype == dtype) return v->from.read(&v->from, index, source, first, count, to);
    for (int64_t done = 0; done < count; done += PART) {
        const int64_t some = an_smaller(count - done, PART);
        AN_TRY_RETURN(v->from.read(&v->from, index, source, first + done, some, part));
        an_convert_to_f64(source->type->dtype, some, part);
        an_convert_from_f64(dtype, some, part);
        memcpy(to + an_dtype_bytes(dtype, done), part, (size_t)an_dtype_bytes(dtype, some));
    }
    return AN_OK;
}

static an_status read_joined(const view *v, const an_view_tensor *t, const an_safetensor *tensor, int64_t first,
                             int64_t count, char *to) {
    for (int i = 0; i <= t->joined_count && count > 0; i++) {
        const int64_t index = i == 0 ? t->index : t->joined[i - 1];
        an_safetensor source;
        AN_TRY_RETURN(v->from.get(&v->from, index, &source));
        const int64_t elements = elements_of(&source), some = an_smaller(elements - first, count);
        if (some > 0) {
            AN_TRY_RETURN(read_converted(v, index, &source, tensor->type->dtype, first, some, to));
            to += some * (int64_t)tensor->type->size;
            count -= some;
            first += some;
        }
        first -= elements;
    }
    return AN_OK;
}

/* Where a part begins in its tensor. */
static int64_t begin_of(const an_view_tensor *t, const an_safetensor *source) {
    return t->rows > 0 ? elements_of(source) / source->dims[0] * t->first_row : 0;
}

static an_status read_q8_0(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                           int64_t count, void *to) {
    const view *v = w->state;
    const an_view_tensor *t = &v->tensors[index];
    an_safetensor source;
    (void)tensor;
    AN_TRY_RETURN(v->from.get(&v->from, t->index, &source));
    return v->from.read_q8_0(&v->from, t->index, &source, begin_of(t, &source) + first, count, to);
}

static an_status read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first, int64_t count,
                      void *to) {
    const view *v = w->state;
    const an_view_tensor *t = &v->tensors[index];
    an_safetensor source;
    AN_TRY_RETURN(v->from.get(&v->from, t->index, &source));
    if (t->transposed) {
        AN_TRY_RETURN(hold(w, index, &source));
        an_conv1d_transpose(&source, v->whole, first, count, to);
        return AN_OK;
    }
    if (t->joined_count > 0) return read_joined(v, t, tensor, first, count, to);
    if (t->half == 0) return v->from.read(&v->from, t->index, &source, begin_of(t, &source) + first, count, to);
    const int64_t columns = tensor->ndims > 1 ? tensor->dims[1] : 1, end = first + count;
    char *next = to;
    for (int64_t at = first; at < end;) {
        const int64_t row = at / columns, column = at % columns, part = an_smaller(columns - column, end - at);
        AN_TRY_RETURN(
            v->from.read(&v->from, t->index, &source, row_viewed(row, t->half) * columns + column, part, next));
        next += part * (int64_t)tensor->type->size;
        at += part;
    }
    return AN_OK;
}

static void destroy(an_context *ctx, view **made) {
    view *v = *made;
    an_release(ctx, (void **)&v->whole, v->whole_bytes, 1);
    an_release(ctx, (void **)&v->tensors, v->count, sizeof *v->tensors);
    an_arena_destroy(&v->arena);
    an_release(ctx, (void **)made, 1, sizeof *v);
}

static void close_all(an_weights *w) {
    view *v = w->state;
    an_weights_close(&v->from);
    destroy(w->ctx, &v);
    w->state = NULL;
}

an_status an_weights_view(an_weights *weights, const an_view_tensor *tensors, size_t count) {
    an_status status;
    an_context *ctx = weights->ctx;
    view *v = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&v, 1, sizeof *v));
    an_arena_init(&v->arena, ctx);
    v->held = -1;
    if (count > 0) AN_TRY(an_alloc(ctx, (void **)&v->tensors, count, sizeof *v->tensors));
    v->count = count;
    bool has_parts = false; /* whose blocks are those of the file */
    for (size_t i = 0; i < count; i++) {
        has_parts = has_parts || tensors[i].rows > 0;
        v->tensors[i] = tensors[i];
        AN_TRY(an_arena_string(&v->arena, &v->tensors[i].name, tensors[i].name, strlen(tensors[i].name)));
    }
    v->from = *weights;
    *weights =
        (an_weights){.ctx = ctx, .state = v, .count = (int64_t)count, .get = get, .read = read, .close = close_all};
    if (has_parts && v->from.read_q8_0) weights->read_q8_0 = read_q8_0;
    return AN_OK;
fail:
    destroy(ctx, &v);
    return status;
}
