#include "pretrained/weights.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/integer.h"
#include "base/status.h"
#include "base/word.h"
#include "formats/gguf_keys.h"
#include "pretrained/description.h"
#include "pretrained/names.h"

typedef struct {
    int64_t index; /* in the file */
    int64_t half;  /* of a head's rows, which lie as pairs; 0: rows are in order */
    char name[AN_LAYER_NAME];
} renamed;

typedef struct {
    an_weights file;
    size_t count, capacity;
    renamed *tensors;
} mapping;

/* ---- names ---- */

/* false: the tensor is no weight of the model. A name that the family does not have stays. */
static bool rename_tensor(const an_family *family, const char *name, renamed *to) {
    to->half = 0;
    snprintf(to->name, sizeof to->name, "%s", name);
    for (const an_family_name *n = family->names; n->gguf; n++) {
        if (!an_layer_rename(n->gguf, n->ours, name, to->name)) continue;
        to->half = n->turns;
        return n->ours != NULL;
    }
    return true;
}

/* ---- as weights ---- */

static an_status get(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const mapping *m = w->state;
    AN_TRY_RETURN(m->file.get(&m->file, m->tensors[index].index, tensor));
    tensor->name = m->tensors[index].name;
    return AN_OK;
}

/* Row i of a head, of its first half or its second, is row 2 i or 2 i + 1 of the file. */
static int64_t row_in_file(int64_t row, int64_t half) {
    const int64_t head = row / (2 * half), inside = row % (2 * half);
    return head * 2 * half + inside % half * 2 + inside / half;
}

typedef an_status read_part(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                            int64_t count, void *to);

/* With a function of the file that gives elements of this type. */
static an_status read_with(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                           int64_t count, void *to, read_part *read_file, an_dtype dtype) {
    const mapping *m = w->state;
    const renamed *r = &m->tensors[index];
    if (r->half == 0) return read_file(&m->file, r->index, tensor, first, count, to);
    const int64_t columns = tensor->ndims > 1 ? tensor->dims[1] : 1, end = first + count;
    char *next = to;
    for (int64_t at = first; at < end;) {
        const int64_t row = at / columns, column = at % columns, part = an_smaller(columns - column, end - at);
        AN_TRY_RETURN(read_file(&m->file, r->index, tensor, row_in_file(row, r->half) * columns + column, part, next));
        next += an_dtype_bytes(dtype, part);
        at += part;
    }
    return AN_OK;
}

static an_status read(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first, int64_t count,
                      void *to) {
    const mapping *m = w->state;
    return read_with(w, index, tensor, first, count, to, m->file.read, tensor->type->dtype);
}

static an_status read_q8_0(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                           int64_t count, void *to) {
    const mapping *m = w->state;
    return read_with(w, index, tensor, first, count, to, m->file.read_q8_0, AN_DTYPE_Q8_0);
}

static void close_all(an_weights *w) {
    mapping *m = w->state;
    an_context *ctx = w->ctx;
    an_weights_close(&m->file);
    an_release(ctx, (void **)&m->tensors, m->capacity, sizeof *m->tensors);
    an_release(ctx, &w->state, 1, sizeof *m);
}

/* ---- opening ---- */

static an_status map_tensors(mapping *m, const an_description *d, const char *path) {
    an_context *ctx = m->file.ctx;
    int64_t head_size = 0;
    AN_TRY_RETURN(an_description_count(d, AN_FACT_HEAD_SIZE, "head size", &head_size));
    m->capacity = (size_t)m->file.count;
    if (m->capacity > 0) AN_TRY_RETURN(an_alloc(ctx, (void **)&m->tensors, m->capacity, sizeof *m->tensors));
    for (int64_t i = 0; i < m->file.count; i++) {
        an_safetensor tensor;
        renamed *r = &m->tensors[m->count];
        AN_TRY_RETURN(m->file.get(&m->file, i, &tensor));
        if (strlen(tensor.name) >= AN_LAYER_NAME || !rename_tensor(d->family, tensor.name, r)) continue;
        r->index = i;
        if (r->half) r->half = head_size / 2;
        if (r->half && (head_size % 2 != 0 || tensor.ndims < 1 || tensor.ndims > 2 || tensor.dims[0] % head_size != 0))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: the rows of '%s' are not heads of %lld", path,
                            AN_QUOTE(tensor.name), (long long)head_size);
        m->count++;
    }
    return AN_OK;
}

an_status an_weights_rename_gguf(an_weights *weights, const char *path) {
    an_status status;
    an_context *ctx = weights->ctx;
    an_description *d = NULL;
    mapping *m = NULL;
    const char *name = NULL;
    size_t length = 0;
    AN_TRY_RETURN(an_gguf_string(an_weights_gguf(weights), "general.architecture", &name, &length));
    if (!name || !an_family_find_gguf(name, length)) return AN_OK;
    AN_TRY(an_alloc(ctx, (void **)&d, 1, sizeof *d));
    AN_TRY(an_description_read_gguf(d, ctx, path, weights));
    AN_TRY(an_alloc(ctx, (void **)&m, 1, sizeof *m));
    m->file = *weights;
    status = map_tensors(m, d, path);
    if (status != AN_OK) {
        an_release(ctx, (void **)&m->tensors, m->capacity, sizeof *m->tensors);
        an_release(ctx, (void **)&m, 1, sizeof *m);
        goto fail;
    }
    *weights = (an_weights){.ctx = ctx,
                            .state = m,
                            .count = (int64_t)m->count,
                            .get = get,
                            .read = read,
                            .read_q8_0 = read_q8_0,
                            .close = close_all};
fail:
    if (d) an_description_destroy(d);
    an_release(ctx, (void **)&d, 1, sizeof *d);
    return status;
}
