/* The tensors of a GGUF file as weights, read in pieces. */
#include <string.h>

#include "base/integer.h"
#include "formats/gguf_file.h"

static an_status get_tensor(const an_weights *w, int64_t index, an_safetensor *tensor) {
    const an_gguf *g = w->state;
    const an_gguf_entry *e = &g->entries[index];
    *tensor = (an_safetensor){.name = (const char *)g->header + e->name, .type = &e->type->shown, .ndims = e->ndims};
    memcpy(tensor->dims, e->dims, sizeof e->dims);
    tensor->bytes = e->elements * (int64_t)tensor->type->size;
    return AN_OK;
}

/* Blocks are widened one by one; of the first and the last only a part may be wanted. */
static an_status read_blocks(an_context *ctx, const an_gguf *g, const an_gguf_entry *e, int64_t first, int64_t count,
                             float *to) {
    enum { PIECE = 4096 };
    unsigned char piece[PIECE];
    float widened[AN_GGUF_MOST_BLOCK];
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const int64_t size = e->type->elements, maximum = PIECE / e->type->bytes, end = first + count;
    for (int64_t block = first / size; block * size < end;) {
        const int64_t blocks = an_smaller(maximum, an_divide_up(end, size) - block);
        AN_TRY_RETURN(an_note_raise(
            ctx,
            an_reader_read(&g->file, e->begin + block * e->type->bytes, piece, (size_t)(blocks * e->type->bytes), note),
            note));
        for (int64_t i = 0; i < blocks; i++, block++) {
            const int64_t from = an_larger(first, block * size), until = an_smaller(end, (block + 1) * size);
            e->type->widen(piece + i * e->type->bytes, widened);
            memcpy(to + (from - first), widened + (from - block * size), (size_t)(until - from) * sizeof *to);
        }
    }
    return AN_OK;
}

static an_status read_elements(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                               int64_t count, void *to) {
    const an_gguf *g = w->state;
    const an_gguf_entry *e = &g->entries[index];
    an_context *ctx = w->ctx;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    const int64_t size = (int64_t)tensor->type->size;
    if (e->type->widen) return read_blocks(ctx, g, e, first, count, to);
    return an_note_raise(ctx, an_reader_read(&g->file, e->begin + first * size, to, (size_t)(count * size), note),
                         note);
}

static an_status read_q8_0(const an_weights *w, int64_t index, const an_safetensor *tensor, int64_t first,
                           int64_t count, void *to) {
    const an_gguf *g = w->state;
    char text[AN_MESSAGE_BYTES];
    const an_note note = {text, sizeof text};
    (void)tensor;
    return an_note_raise(w->ctx,
                         an_reader_read(&g->file, g->entries[index].begin + an_dtype_bytes(AN_DTYPE_Q8_0, first), to,
                                        (size_t)an_dtype_bytes(AN_DTYPE_Q8_0, count), note),
                         note);
}

static void close_file(an_weights *w) {
    an_gguf *g = w->state;
    an_gguf_close(&g);
    w->state = NULL;
}

an_status an_weights_open_gguf(an_weights *weights, an_context *ctx, const char *path) {
    an_gguf *g = NULL;
    *weights =
        (an_weights){.ctx = ctx, .get = get_tensor, .read = read_elements, .read_q8_0 = read_q8_0, .close = close_file};
    AN_TRY_RETURN(an_gguf_open(&g, ctx, path));
    weights->state = g;
    weights->count = (int64_t)g->count;
    return AN_OK;
}

const an_gguf *an_weights_gguf(const an_weights *weights) {
    return weights->get == get_tensor ? weights->state : NULL;
}
