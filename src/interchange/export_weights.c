#include "interchange/export_weights.h"

#include "base/convert.h"
#include "base/integer.h"

enum { PART = 1 << 18 }; /* elements in memory at a time: whole blocks of every type */

typedef struct {
    double *numbers; /* as they are read, and in f64 */
    float *narrow;
    unsigned char *bytes;
} parts;

/* f16 ends at 65,504, and the scale of a block, a 127th of its largest number, is one. NaN and infinity stay what
 * they are in other types. */
static bool fits(const an_gguf_type *type, float x) {
    const float infinite = 65520, maximum = type->widen ? 127 * infinite : infinite;
    if (type->shown.dtype != AN_DTYPE_F16 && !type->widen) return true;
    return x < maximum && x > -maximum;
}

static an_status write_part(an_export_file *f, const an_gguf_type *type, const char *name, const parts *p,
                            int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        p->narrow[i] = (float)p->numbers[i];
        if (!fits(type, p->narrow[i]))
            return AN_ERROR(f->ctx, AN_ERR_NONFINITE,
                            "'%s' has the number %g, which the type %s cannot hold: choose f32 or bf16", name,
                            p->numbers[i], type->shown.name);
    }
    an_gguf_narrow(type, p->narrow, count, p->bytes);
    return an_export_file_bytes(f, p->bytes, (size_t)(count / type->elements * type->bytes));
}

static void release(an_context *ctx, parts *p) {
    an_release(ctx, (void **)&p->bytes, PART, sizeof(float));
    an_release(ctx, (void **)&p->narrow, PART, sizeof *p->narrow);
    an_release(ctx, (void **)&p->numbers, PART, sizeof *p->numbers);
}

an_status an_export_file_weights(an_export_file *f, const an_weights *weights, int64_t index,
                                 const an_gguf_type *type) {
    an_status status;
    an_context *ctx = f->ctx;
    an_safetensor tensor;
    parts p = {NULL, NULL, NULL};
    AN_TRY(an_alloc(ctx, (void **)&p.numbers, PART, sizeof *p.numbers));
    AN_TRY(an_alloc(ctx, (void **)&p.narrow, PART, sizeof *p.narrow));
    AN_TRY(an_alloc(ctx, (void **)&p.bytes, PART, sizeof(float)));
    AN_TRY(weights->get(weights, index, &tensor));
    const int64_t elements = tensor.bytes / (int64_t)tensor.type->size;
    for (int64_t begin = 0; begin < elements; begin += PART) {
        const int64_t count = an_smaller(elements - begin, PART);
        AN_TRY(weights->read(weights, index, &tensor, begin, count, p.numbers));
        an_convert_to_f64(tensor.type->dtype, count, p.numbers);
        AN_TRY(write_part(f, type, tensor.name, &p, count));
    }
    status = AN_OK;
fail:
    release(ctx, &p);
    return status;
}
