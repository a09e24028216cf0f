/* The merged model in one safetensors file, by the names and in the types and layout of the files
 * that the model came from. */
#include <string.h>

#include "base/convert.h"
#include "base/integer.h"
#include "formats/conv1d.h"
#include "formats/gguf.h"
#include "interchange/export_file.h"
#include "interchange/exporter.h"
#include "interchange/merge.h"
#include "ir/published.h"
#include "pretrained/joints.h"
#include "pretrained/weights.h"
#include "store/open_weights.h"

enum { PART = 1 << 18, ALIGNMENT = 64 }; /* elements in memory at a time */

typedef struct {
    an_context *ctx;
    an_merge merge;
    an_weights base;
    an_safetensor *entries; /* of the file: tensors of the base, or several of them as one */
    size_t capacity, count;
    bool transposes;
    double *part;
    an_arena names;
    an_text header;
    an_export_file file;
} merging;

static an_status write_tensor(merging *m, int64_t index) {
    an_safetensor tensor;
    an_merge_layer layer = {0};
    bool changes = false;
    AN_TRY_RETURN(m->base.get(&m->base, index, &tensor));
    if (tensor.ndims == 2) AN_TRY_RETURN(an_merge_find(&m->merge, an_published_bare(tensor.name), &layer, &changes));
    layer.transposed = m->transposes && an_conv1d_has(tensor.name);
    m->merge.applied += layer.adapted;
    const int64_t size = (int64_t)tensor.type->size, elements = tensor.bytes / size;
    for (int64_t begin = 0; begin < elements; begin += PART) {
        const int64_t count = an_smaller(elements - begin, PART);
        AN_TRY_RETURN(m->base.read(&m->base, index, &tensor, begin, count, m->part));
        if (changes) {
            an_convert_to_f64(tensor.type->dtype, count, m->part);
            an_merge_add(&m->merge, &layer, begin, count, m->part);
            an_convert_from_f64(tensor.type->dtype, count, m->part);
        }
        AN_TRY_RETURN(an_export_file_bytes(&m->file, m->part, (size_t)(count * size)));
    }
    return AN_OK;
}

/* A layer that lies behind the last tensor, as a part of it. */
static an_status append(const merging *m, const an_safetensor *layer) {
    an_safetensor *t = &m->entries[m->count - 1];
    if (t->type != layer->type)
        return AN_ERROR(m->ctx, AN_ERR_UNSUPPORTED,
                        "'%s' was trained whole beside an adapter, and the files of the model have it in one tensor "
                        "with layers of another type: it cannot be merged; train it with the adapter (lora.targets) "
                        "instead",
                        layer->name);
    t->dims[0] += layer->dims[0];
    t->bytes += layer->bytes;
    return AN_OK;
}

/* Of a square weight only the others tell whether the file has [in, out], as when it was read. */
static an_status list_tensors(merging *m) {
    an_context *ctx = m->ctx;
    int64_t at = 0;
    m->capacity = (size_t)m->base.count;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->entries, m->capacity, sizeof *m->entries));
    for (int64_t i = 0; i < m->base.count; i++) {
        an_safetensor *t = &m->entries[m->count];
        char name[AN_LAYER_NAME];
        AN_TRY_RETURN(m->base.get(&m->base, i, t));
        const int place = an_joint_find(m->merge.family, t->name, name);
        if (place == 0) AN_TRY_RETURN(an_arena_string(&m->names, &t->name, name, strlen(name)));
        if (t->type->dtype != AN_DTYPE_NONE)
            t->type = an_safetensors_type_of(t->type->dtype); /* it may be a quantised one */
        const int64_t *dims = an_merge_matrix(&m->merge, an_published_bare(t->name));
        if (dims && t->ndims == 2 && an_conv1d_has(t->name) && dims[0] != dims[1])
            m->transposes = m->transposes || t->dims[0] == dims[1];
        t->begin = at;
        at += t->bytes;
        if (place > 0)
            AN_TRY_RETURN(append(m, t));
        else
            m->count++;
    }
    return an_safetensors_header(&m->header, m->entries, m->count, ALIGNMENT, NULL);
}

static an_status merge(merging *m, const an_checkpoint *c, const char *file) {
    an_context *ctx = m->ctx;
    AN_TRY_RETURN(an_merge_begin(&m->merge, c));
    AN_TRY_RETURN(an_weights_open(&m->base, ctx, c->manifest->adapter.base, AN_MODEL_WEIGHTS_AUTO));
    if (an_weights_gguf(&m->base)) AN_TRY_RETURN(an_weights_rename_gguf(&m->base, c->manifest->adapter.base));
    AN_TRY_RETURN(an_weights_add_trained(&m->base, &m->merge));
    AN_TRY_RETURN(list_tensors(m));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->part, PART, sizeof *m->part));
    AN_TRY_RETURN(an_export_file_open(&m->file, ctx, file));
    AN_TRY_RETURN(an_export_file_bytes(&m->file, m->header.bytes, m->header.length));
    for (int64_t i = 0; i < m->base.count; i++) AN_TRY_RETURN(write_tensor(m, i));
    AN_TRY_RETURN(an_merge_check(&m->merge));
    return an_export_file_finish(&m->file);
}

static an_status write_merged(const an_checkpoint *checkpoint, const char *file, const an_export_options *options) {
    (void)options;
    an_context *ctx = checkpoint->ctx;
    merging m = {.ctx = ctx};
    an_text_init(&m.header, ctx);
    an_arena_init(&m.names, ctx);
    const an_status status = merge(&m, checkpoint, file);
    an_export_file_close(&m.file);
    an_release(ctx, (void **)&m.part, PART, sizeof *m.part);
    an_release(ctx, (void **)&m.entries, m.capacity, sizeof *m.entries);
    if (m.base.close) an_weights_close(&m.base);
    an_merge_end(&m.merge);
    an_text_destroy(&m.header);
    an_arena_destroy(&m.names);
    return status;
}

const an_exporter an_exporter_merged = {.name = "merged", .write = write_merged};
