#include "store/weights_view.h"

#include <string.h>

#include "base/integer.h"
#include "store/conv1d.h"

typedef struct {
    an_weights from;
    an_arena arena;
    an_view_tensor *tensors;
    size_t count;
    char *whole; /* the matrix that is transposed */
    size_t whole_bytes;
    int64_t held; /* its number; -1: none */
} view;

static an_status get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const view *v = w->state;
    const an_view_tensor *t = &v->tensors[index];
    an_context *ctx = w->ctx;
    AN_TRY_RETURN(v->from.get(&v->from, t->index, tensor));
    tensor->name = t->name;
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

static an_status read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first, int64_t count,
                      void *to) {
    const view *v = w->state;
    const an_view_tensor *t = &v->tensors[index];
    an_context *ctx = w->ctx;
    an_safetensor source;
    AN_TRY_RETURN(v->from.get(&v->from, t->index, &source));
    if (t->transposed) {
        AN_TRY_RETURN(hold(w, index, &source));
        an_conv1d_transpose(&source, v->whole, first, count, to);
        return AN_OK;
    }
    if (t->half == 0) return v->from.read(&v->from, t->index, &source, first, count, to);
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
    for (size_t i = 0; i < count; i++) {
        v->tensors[i] = tensors[i];
        AN_TRY(an_arena_string(&v->arena, &v->tensors[i].name, tensors[i].name, strlen(tensors[i].name)));
    }
    v->from = *weights;
    *weights =
        (an_weights){.ctx = ctx, .state = v, .count = (int64_t)count, .get = get, .read = read, .close = close_all};
    return AN_OK;
fail:
    destroy(ctx, &v);
    return status;
}
