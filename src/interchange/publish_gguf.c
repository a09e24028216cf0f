/* A GGUF file as llama.cpp reads them: the keys of its architecture from the facts of the model, by the table that
 * reads them, and its tensors under GGUF's names. */
#include <stdio.h>
#include <string.h>

#include "base/elementary/elementary.h"
#include "base/integer.h"
#include "base/status.h"
#include "base/word.h"
#include "formats/weights_view.h"
#include "interchange/export_weights.h"
#include "interchange/publish.h"
#include "pretrained/joints.h"

enum { NAME = 256, MOST_PAIRS = 512 };

typedef struct {
    const an_publication *publication;
    const an_description *description;
    an_context *ctx;
    const char *architecture;
    an_gguf_keys keys;
    an_gguf_tensor *tensors; /* that of the rotary positions is the first, if there is one */
    size_t count, extra, capacity;
    float divisors[MOST_PAIRS];
    an_text header;
    an_export_file file;
} writing;

/* ---- keys ---- */

static const char *full_name(const writing *w, const char *key, char name[NAME]) {
    snprintf(name, NAME, "%s.%s", w->architecture, key);
    return name;
}

/* Of two keys for one fact, the one that models of the family have. */
static bool is_wanted(const writing *w, const an_gguf_fact *row) {
    const an_family *family = w->description->family;
    const bool rms = an_family_key_of(family, AN_ROW_RMS_EPSILON);
    const bool rotates = an_family_key_of(family, AN_ROW_THETA);
    switch (row->fact) {
    case AN_FACTS: return false;
    case AN_FACT_EPSILON: return strstr(row->key, "_rms_") ? rms : !rms;
    case AN_FACT_WINDOW: return an_description_fact(w->description, AN_FACT_WINDOW) > 0;
    case AN_FACT_ROTARY_BASE:
    case AN_FACT_KV_HEADS:
    case AN_FACT_HEAD_SIZE: return rotates;
    default: return true;
    }
}

static an_status put_facts(writing *w) {
    const an_description *d = w->description;
    char name[NAME];
    const double size = an_description_fact(d, AN_FACT_HEAD_SIZE);
    const bool positions = an_family_key_of(d->family, AN_ROW_N_POSITIONS);
    for (const an_gguf_fact *row = an_gguf_facts; row->key; row++) {
        const an_fact fact = row->fact == AN_FACT_CONTEXT && positions ? AN_FACT_POSITIONS : row->fact;
        if (!is_wanted(w, row) || !d->facts[fact].known) continue;
        const double value = d->facts[fact].value;
        full_name(w, row->key, name);
        if (fact == AN_FACT_EPSILON || fact == AN_FACT_ROTARY_BASE)
            an_gguf_put_f32(&w->keys, name, value);
        else if (value >= 0 && value <= UINT32_MAX)
            an_gguf_put_u32(&w->keys, name, (uint32_t)value);
        else
            return AN_ERROR(w->ctx, AN_ERR_OVERFLOW, "%s: the value %g of '%s' does not fit into 32 bits", d->path,
                            value, name);
    }
    if (an_family_key_of(d->family, AN_ROW_THETA) && size > 0) {
        an_gguf_put_u32(&w->keys, full_name(w, "attention.value_length", name), (uint32_t)size);
        an_gguf_put_u32(&w->keys, full_name(w, "rope.dimension_count", name), (uint32_t)size);
    }
    return w->keys.bytes.status;
}

static uint32_t file_type(const an_gguf_type *type) {
    return type->widen                          ? 7 /* as llama.cpp counts them */
           : type->shown.dtype == AN_DTYPE_BF16 ? 32
           : type->shown.dtype == AN_DTYPE_F16  ? 1
                                                : 0;
}

static an_status put_keys(writing *w, const char *path) {
    const an_publication *p = w->publication;
    an_gguf_put_text(&w->keys, "general.architecture", w->architecture);
    AN_TRY_RETURN(an_publish_general_keys(p, path, &w->keys));
    AN_TRY_RETURN(put_facts(w));
    an_gguf_put_u32(&w->keys, "general.file_type", file_type(p->type));
    an_gguf_put_u32(&w->keys, "general.quantization_version", 2);
    return an_publish_tokenizer_keys(p, &w->keys);
}

/* ---- rotary positions ---- */

/* Llama 3.1's scaling: by what each frequency is divided. */
static an_status add_divisors(writing *w) {
    static const double two_pi = 6.28318530717958647693;
    const an_description *d = w->description;
    const double factor = an_description_fact(d, AN_FACT_ROTARY_FACTOR),
                 low = an_description_fact(d, AN_FACT_ROTARY_LOW);
    const double high = an_description_fact(d, AN_FACT_ROTARY_HIGH),
                 old = an_description_fact(d, AN_FACT_ROTARY_ORIGINAL);
    const double base = an_description_fact(d, AN_FACT_ROTARY_BASE), size = an_description_fact(d, AN_FACT_HEAD_SIZE);
    const int64_t pairs = (int64_t)(size / 2);
    if (factor == 0) return AN_OK;
    if (pairs > MOST_PAIRS)
        return AN_ERROR(w->ctx, AN_ERR_UNSUPPORTED, "%s: heads of %g elements with scaled rotary positions", d->path,
                        size);
    for (int64_t i = 0; i < pairs; i++) {
        const double wave = two_pi * an_pow_f64(base, 2 * (double)i / size);
        const double share = (old / wave - low) / (high - low);
        w->divisors[i] = (float)(wave < old / high  ? 1
                                 : wave > old / low ? factor
                                                    : 1 / ((1 - share) / factor + share));
    }
    w->tensors[0] = (an_gguf_tensor){.name = "rope_freqs.weight",
                                     .type = an_gguf_type_named("F32"),
                                     .ndims = 1,
                                     .dims = {pairs},
                                     .elements = pairs,
                                     .bytes = pairs * (int64_t)sizeof(float)};
    w->count = w->extra = 1;
    return AN_OK;
}

/* ---- tensors ---- */

static an_status find_name(const writing *w, const char *name, char to[AN_LAYER_NAME], bool *turns) {
    for (const an_family_name *row = w->description->family->names; row && row->gguf; row++)
        if (row->ours && an_layer_rename(row->ours, row->gguf, name, to)) {
            *turns = row->turns;
            return AN_OK;
        }
    return AN_ERROR(w->ctx, AN_ERR_UNSUPPORTED, "GGUF has no name for the weight '%s' of a model of type %s", name,
                    w->description->family->name);
}

static an_status view_weights(const writing *w) {
    an_status status;
    an_context *ctx = w->ctx;
    an_weights *weights = w->publication->weights;
    const size_t count = (size_t)weights->count;
    int64_t size = 0;
    an_view_tensor *tensors = NULL;
    an_arena arena;
    an_arena_init(&arena, ctx);
    AN_TRY(an_alloc(ctx, (void **)&tensors, count + 1, sizeof *tensors));
    for (size_t i = 0; i < count; i++) {
        an_safetensor tensor;
        char name[AN_LAYER_NAME];
        bool turns;
        AN_TRY(weights->get(weights, (int64_t)i, &tensor));
        AN_TRY(find_name(w, tensor.name, name, &turns));
        if (turns) AN_TRY(an_description_count(w->description, AN_FACT_HEAD_SIZE, "head size", &size));
        AN_CHECK(ctx, !turns || (size > 0 && size % 2 == 0 && tensor.dims[0] % size == 0), AN_ERR_UNSUPPORTED,
                 "the rows of '%s' are not heads of %lld", tensor.name, (long long)size);
        tensors[i] = (an_view_tensor){.index = (int64_t)i, .half = turns ? size / 2 : 0};
        AN_TRY(an_arena_string(&arena, &tensors[i].name, name, strlen(name)));
    }
    AN_TRY(an_weights_view(weights, tensors, count));
    status = AN_OK;
fail:
    an_release(ctx, (void **)&tensors, count + 1, sizeof *tensors);
    an_arena_destroy(&arena);
    return status;
}

/* Vectors, norms and tables of positions stay f32. Rows that are no whole blocks become f16, as
 * llama.cpp's own converter does it. */
static const an_gguf_type *type_of(const writing *w, const an_safetensor *tensor) {
    const an_gguf_type *type = w->publication->type;
    if (tensor->ndims < 2 || an_ends_in(tensor->name, "_norm.weight") ||
        !strcmp(tensor->name, "position_embd.weight") || !strcmp(tensor->name, "token_types.weight"))
        return an_gguf_type_named("F32");
    return tensor->dims[tensor->ndims - 1] % type->elements == 0 ? type : an_gguf_type_named("F16");
}

static an_status list_tensors(writing *w) {
    an_context *ctx = w->ctx;
    const an_weights *weights = w->publication->weights;
    w->capacity = (size_t)weights->count + 1;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&w->tensors, w->capacity, sizeof *w->tensors));
    AN_TRY_RETURN(add_divisors(w));
    for (int64_t i = 0; i < weights->count; i++) {
        an_gguf_tensor *t = &w->tensors[w->count++];
        an_safetensor tensor;
        AN_TRY_RETURN(weights->get(weights, i, &tensor));
        *t = (an_gguf_tensor){.name = tensor.name,
                              .type = type_of(w, &tensor),
                              .ndims = tensor.ndims,
                              .elements = tensor.bytes / (int64_t)tensor.type->size};
        memcpy(t->dims, tensor.dims, sizeof t->dims);
        t->bytes = t->elements / t->type->elements * t->type->bytes;
    }
    return an_gguf_header(&w->header, &w->keys, w->tensors, w->count);
}

static an_status write_tensors(writing *w) {
    static const char zeros[AN_GGUF_ALIGNMENT] = {0};
    for (size_t i = 0; i < w->count; i++) {
        const an_gguf_tensor *t = &w->tensors[i];
        if (i < w->extra)
            AN_TRY_RETURN(an_export_file_bytes(&w->file, w->divisors, (size_t)t->bytes));
        else
            AN_TRY_RETURN(an_export_file_weights(&w->file, w->publication->weights, (int64_t)(i - w->extra), t->type));
        const int64_t more = an_next_multiple(t->bytes, AN_GGUF_ALIGNMENT) - t->bytes;
        AN_TRY_RETURN(an_export_file_bytes(&w->file, zeros, (size_t)more));
    }
    return AN_OK;
}

/* ---- all of it ---- */

/* The file says what the model is, and anneal reads it so; llama.cpp does not know all of it. */
static void warn(const writing *w) {
    const an_description *d = w->description;
    const double window = an_description_fact(d, AN_FACT_WINDOW);
    if (window > 0)
        an_log_write(w->ctx, AN_LOG_WARNING,
                     "llama.cpp ignores the window of this model: after %g tokens it computes something else", window);
    if (an_description_fact(d, AN_FACT_OUTPUT_BIAS) != 0 && d->family == &an_family_qwen3)
        an_log_write(w->ctx, AN_LOG_WARNING, "llama.cpp does not load a model of type %s with a bias after attention",
                     d->family->name);
}

static an_status write_all(writing *w, const char *path) {
    an_context *ctx = w->ctx;
    char names[256];
    if (!w->architecture)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: a model of type %s cannot be written as GGUF, only %s can; --to hf writes it as a folder",
                        w->description->path, w->description->family->name, an_family_list(names, sizeof names, true));
    warn(w);
    AN_TRY_RETURN(put_keys(w, path));
    AN_TRY_RETURN(an_weights_join(w->publication->weights, w->description->family));
    AN_TRY_RETURN(view_weights(w));
    AN_TRY_RETURN(list_tensors(w));
    AN_TRY_RETURN(an_export_file_open(&w->file, ctx, path));
    AN_TRY_RETURN(an_export_file_bytes(&w->file, w->header.bytes, w->header.length));
    AN_TRY_RETURN(write_tensors(w));
    return an_export_file_finish(&w->file);
}

an_status an_publish_gguf(const an_publication *publication, const char *file) {
    an_context *ctx = publication->ctx;
    const an_family *family = publication->description->family;
    writing *w = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&w, 1, sizeof *w));
    w->publication = publication;
    w->description = publication->description;
    w->ctx = ctx;
    w->architecture = family->gguf ? family->gguf : family->gguf_as;
    an_text_init(&w->keys.bytes, ctx);
    an_text_init(&w->header, ctx);
    const an_status status = write_all(w, file);
    an_export_file_close(&w->file);
    an_text_destroy(&w->header);
    an_text_destroy(&w->keys.bytes);
    an_release(ctx, (void **)&w->tensors, w->capacity, sizeof *w->tensors);
    an_release(ctx, (void **)&w, 1, sizeof *w);
    return status;
}
