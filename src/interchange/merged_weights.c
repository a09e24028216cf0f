/* Merged weights, read as any others. */
#include <string.h>

#include "base/convert.h"
#include "base/integer.h"
#include "interchange/merge.h"

enum { PART = 1 << 16 }; /* elements in f64 at a time */

typedef struct {
    an_weights from;
    an_merge *merge;
    bool *changes;        /* of each tensor: it has other numbers than in its file */
    int64_t held;         /* the tensor whose change was found last; -1: none */
    an_merge_layer layer; /* its */
    double part[PART];
} merged;

static an_status get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const merged *m = w->state;
    AN_TRY_RETURN(m->from.get(&m->from, index, tensor));
    if (!m->changes[index] || tensor->type->dtype == AN_DTYPE_F64) return AN_OK;
    const int64_t elements = tensor->bytes / (int64_t)tensor->type->size;
    tensor->type = an_safetensors_type_of(AN_DTYPE_F32);
    tensor->bytes = elements * (int64_t)tensor->type->size;
    return AN_OK;
}

static an_status read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first, int64_t count,
                      void *to) {
    merged *m = w->state;
    an_safetensor source;
    bool changes;
    AN_TRY_RETURN(m->from.get(&m->from, index, &source));
    if (!m->changes[index]) return m->from.read(&m->from, index, &source, first, count, to);
    if (m->held != index) {
        AN_TRY_RETURN(an_merge_find(m->merge, source.name, &m->layer, &changes));
        m->held = index;
    }
    const size_t size = tensor->type->size;
    for (int64_t done = 0; done < count; done += PART) {
        const int64_t some = an_smaller(count - done, PART);
        AN_TRY_RETURN(m->from.read(&m->from, index, &source, first + done, some, m->part));
        an_convert_to_f64(source.type->dtype, some, m->part);
        an_merge_add(m->merge, &m->layer, first + done, some, m->part);
        an_convert_from_f64(tensor->type->dtype, some, m->part);
        memcpy((char *)to + (size_t)done * size, m->part, (size_t)some * size);
    }
    return AN_OK;
}

static void close_all(an_weights *w) {
    merged *m = w->state;
    an_weights_close(&m->from);
    an_release(w->ctx, (void **)&m->changes, (size_t)w->count, sizeof *m->changes);
    an_release(w->ctx, &w->state, 1, sizeof *m);
}

an_status an_weights_merge(an_weights *weights, an_merge *merge) {
    an_status status;
    an_context *ctx = weights->ctx;
    merged *m = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m, 1, sizeof *m));
    m->merge = merge;
    m->held = -1;
    if (weights->count > 0) AN_TRY(an_alloc(ctx, (void **)&m->changes, (size_t)weights->count, sizeof *m->changes));
    for (int64_t i = 0; i < weights->count; i++) {
        an_safetensor tensor;
        AN_TRY(weights->get(weights, i, &tensor));
        AN_TRY(an_merge_find(merge, tensor.name, &m->layer, &m->changes[i]));
        merge->applied += m->layer.adapted;
    }
    AN_TRY(an_merge_check(merge));
    m->from = *weights;
    *weights =
        (an_weights){.ctx = ctx, .state = m, .count = m->from.count, .get = get, .read = read, .close = close_all};
    return AN_OK;
fail:
    an_release(ctx, (void **)&m->changes, (size_t)weights->count, sizeof *m->changes);
    an_release(ctx, (void **)&m, 1, sizeof *m);
    return status;
}
