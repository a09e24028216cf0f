/* Loads weights from files: which tensor goes where, and the copy, piece by piece. */
#include "interchange/matching.h"

#include <string.h>

#include "base/convert.h"
#include "base/word.h"
#include "formats/gguf.h"
#include "interchange/adapter.h"
#include "ir/adapter.h"
#include "ir/published.h"
#include "pretrained/joints.h"
#include "pretrained/weights.h"
#include "store/open_weights.h"

/* ---- what goes where ---- */

static size_t *find_slot(const an_matching *m, const char *name) {
    size_t at = (size_t)an_hash(name, strlen(name), 0) & (m->slot_count - 1);
    while (m->slots[at] && strcmp(m->params->entries[m->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (m->slot_count - 1);
    return &m->slots[at];
}

static void note_problem(an_matching *m, an_matching_problem p, int64_t tensor, size_t entry) {
    const int64_t at = m->counts[p]++;
    if (at >= AN_MATCHING_MOST_SHOWN) return;
    m->shown[p][at].tensor = tensor;
    m->shown[p][at].entry = entry;
}

/* Two tensors that are renamed to one name are a mistake, also if tensors that the model does not have are accepted.
 * *first: the tensor that had the name before this one; -1: none. */
static an_status find_other(an_matching *m, int64_t index, const char *tensor, int64_t *first) {
    char name[AN_NAME_BYTES], other[AN_NAME_BYTES];
    an_safetensor held;
    *first = -1;
    AN_TRY_RETURN(an_renamings_apply(&m->names, tensor, name));
    if (!*name) return AN_OK; /* longer than any */
    size_t at = (size_t)an_hash(name, strlen(name), 0) & (m->other_count - 1);
    for (; m->others[at]; at = (at + 1) & (m->other_count - 1)) {
        AN_TRY_RETURN(m->weights.get(&m->weights, m->others[at] - 1, &held));
        AN_TRY_RETURN(an_renamings_apply(&m->names, held.name, other));
        if (strcmp(name, other) != 0) continue;
        *first = m->others[at] - 1;
        return AN_OK;
    }
    m->others[at] = index + 1;
    return AN_OK;
}

static bool is_weight(an_dtype dtype) {
    return dtype == AN_DTYPE_F32 || dtype == AN_DTYPE_F64 || dtype == AN_DTYPE_F16 || dtype == AN_DTYPE_BF16;
}

static bool is_head(const an_matching *m, const char *name) {
    return m->family && an_family_is_head(m->family, an_published_bare(name));
}

/* The entry of a tensor + 1; 0: the model has none of its name. */
static an_status find_entry(const an_matching *m, const an_safetensor *tensor, size_t *slot) {
    char name[AN_NAME_BYTES];
    AN_TRY_RETURN(an_renamings_apply(&m->names, tensor->name, name));
    *slot = *find_slot(m, name);
    if (*slot == 0) *slot = *find_slot(m, an_published_bare(name));
    if (*slot == 0 && m->adapter && an_ends_in(name, AN_ADAPTER_MAGNITUDE ".weight")) { /* as PEFT has it in memory */
        name[strlen(name) - strlen(".weight")] = 0;
        *slot = *find_slot(m, an_published_bare(name));
    }
    return AN_OK;
}

static bool has_shape(const an_safetensor *tensor, const an_stored *e, bool transposed) {
    bool same = tensor->ndims == e->ndims;
    for (int i = 0; i < e->ndims && same; i++) same = tensor->dims[i] == e->dims[transposed ? e->ndims - 1 - i : i];
    return same;
}

/* What published files have although no model reads it: masks in GPT-2's, the numbers 0, 1, 2, … in BERT's. */
static bool is_buffer(const an_matching *m, const char *name) {
    static const char positions[] = "embeddings.position_ids";
    const size_t length = strlen(name), end = sizeof positions - 1;
    if (m->has_conv1d && an_conv1d_is_buffer(name)) return true;
    return length >= end && !strcmp(name + length - end, positions);
}

static an_status match_tensor(an_matching *m, int64_t index) {
    an_safetensor tensor;
    size_t slot;
    AN_TRY_RETURN(m->weights.get(&m->weights, index, &tensor));
    AN_TRY_RETURN(find_entry(m, &tensor, &slot));
    /* What an adapter brings goes to what is trained: the model itself stays as it is. */
    if (slot != 0 && m->adapter && m->params->entries[slot - 1].storage != AN_STORAGE_MASTER) slot = 0;
    if (slot == 0) {
        const bool ignored = m->other_heads && is_head(m, tensor.name);
        int64_t first = -1;
        if (is_buffer(m, tensor.name) || ignored) return AN_OK;
        note_problem(m, AN_MATCHING_UNEXPECTED, index, 0);
        if (m->names.count > 0 && !m->adapter) AN_TRY_RETURN(find_other(m, index, tensor.name, &first));
        if (first < 0) return AN_OK;
        const int64_t at = m->counts[AN_MATCHING_UNKNOWN_TWICE];
        note_problem(m, AN_MATCHING_UNKNOWN_TWICE, index, 0);
        if (at < AN_MATCHING_MOST_SHOWN) m->shown[AN_MATCHING_UNKNOWN_TWICE][at].first = first;
        return AN_OK;
    }
    const an_stored *e = &m->params->entries[slot - 1];
    const an_matching_problem found = m->tensors[slot - 1]                                   ? AN_MATCHING_TWICE
                                      : !has_shape(&tensor, e, an_matching_transposes(m, e)) ? AN_MATCHING_SHAPE
                                      : !is_weight(tensor.type->dtype)                       ? AN_MATCHING_TYPE
                                                                                             : AN_MATCHING_PROBLEMS;
    if (found == AN_MATCHING_SHAPE && m->new_heads && is_head(m, e->name)) return AN_OK; /* for other classes */
    if (found != AN_MATCHING_PROBLEMS) note_problem(m, found, index, slot - 1);
    if (found != AN_MATCHING_TWICE) m->tensors[slot - 1] = index + 1;
    m->converted += tensor.type->dtype != e->dtype;
    return AN_OK;
}

/* A square weight does not show whether it is [in, out]: the others of its file do, or config.json. What anneal saved
 * is as the model has it. */
static an_status find_layout(an_matching *m) {
    an_context *ctx = m->ctx;
    int64_t square = 0, straight = 0, turned = 0;
    for (int64_t i = 0; i < m->weights.count && !m->weights.is_saved; i++) {
        an_safetensor tensor;
        size_t slot;
        AN_TRY_RETURN(m->weights.get(&m->weights, i, &tensor));
        AN_TRY_RETURN(find_entry(m, &tensor, &slot));
        const an_stored *e = slot ? &m->params->entries[slot - 1] : NULL;
        if (!e || e->ndims != 2 || !an_conv1d_has(e->name)) continue;
        if (e->dims[0] == e->dims[1])
            square++;
        else if (has_shape(&tensor, e, true))
            turned++;
        else
            straight++;
    }
    m->transposes = turned > 0 || (straight == 0 && m->gpt2);
    if (square > 0 && straight == 0 && turned == 0 && !m->gpt2)
        an_log_write(ctx, AN_LOG_WARNING,
                     "model.init: attn.c_proj.weight could be [in, out], as in Hugging Face files, or [out, in]; it "
                     "was read as [out, in]");
    return AN_OK;
}

/* ---- all of it ---- */

static int64_t rows_of(const void *matching, const char *name) {
    const an_matching *m = matching;
    const size_t slot = *find_slot(m, name);
    return slot ? m->params->entries[slot - 1].dims[0] : 0;
}

an_status an_matching_find(an_matching *m) {
    an_context *ctx = m->ctx;
    m->entry_count = m->params->entry_count;
    for (m->slot_count = 1; m->slot_count < 2 * m->entry_count + 2; m->slot_count *= 2) {
    }
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->tensors, m->entry_count, sizeof *m->tensors));
    AN_TRY_RETURN(an_alloc(ctx, (void **)&m->slots, m->slot_count, sizeof *m->slots));
    for (size_t i = 0; i < m->entry_count; i++) {
        *find_slot(m, m->params->entries[i].name) = i + 1;
        m->has_conv1d = m->has_conv1d || an_conv1d_has(m->params->entries[i].name);
        if (!m->family) m->family = an_family_of_body(m->params->entries[i].name);
    }
    AN_TRY_RETURN(an_weights_part(&m->weights, rows_of, m, NULL));
    for (m->other_count = 1; m->other_count < 2 * (size_t)m->weights.count + 2; m->other_count *= 2) {
    }
    if (m->names.count > 0) AN_TRY_RETURN(an_alloc(ctx, (void **)&m->others, m->other_count, sizeof *m->others));
    AN_TRY_RETURN(find_layout(m));
    for (int64_t i = 0; i < m->weights.count; i++) AN_TRY_RETURN(match_tensor(m, i));
    for (size_t i = 0; i < m->entry_count; i++) {
        const char *name = m->params->entries[i].name;
        const bool other = m->adapter ? m->params->entries[i].storage != AN_STORAGE_MASTER : an_adapter_has(name);
        if (m->tensors[i] || other) continue;
        if (m->new_heads && is_head(m, name))
            an_text_add(&m->fresh, "%s%s", m->fresh.length ? ", " : "", AN_QUOTE(name));
        else
            note_problem(m, AN_MATCHING_MISSING, 0, i);
    }
    return m->fresh.status;
}

enum { PART = 64 * AN_PAGE }; /* elements in memory at a time */

/* What this rank has of an entry: nothing else is read, unless the tensor is transposed. */
static an_status load(const an_matching *m, size_t entry, double *part) {
    an_status status;
    an_context *ctx = m->ctx;
    an_params *p = m->params;
    const an_stored *e = &p->entries[entry];
    const int64_t index = m->tensors[entry] - 1;
    const bool transposed = an_matching_transposes(m, e);
    char *to = (char *)an_params_base(p, e->storage) + e->offset, *whole = NULL;
    an_safetensor tensor = {0};
    int64_t first, end;
    if (!an_params_next(p, e, AN_FLAT_MASTERS, 0, &first, &end)) return AN_OK;
    AN_TRY(m->weights.get(&m->weights, index, &tensor));
    /* Blocks of the file stay what they are: made anew from their numbers, they could be others. */
    const bool has_blocks =
        e->dtype == AN_DTYPE_Q8_0 && m->weights.read_q8_0 && !strcmp(tensor.type->name, "Q8_0") && !transposed;
    if (transposed) {
        AN_TRY(an_alloc_raw(ctx, (void **)&whole, (size_t)tensor.bytes));
        AN_TRY(m->weights.read(&m->weights, index, &tensor, 0, e->elements, whole));
    }
    for (int64_t next = 0; an_params_next(p, e, AN_FLAT_MASTERS, next, &first, &end); next = end) {
        if (end - first > PART) end = first + PART;
        const int64_t count = end - first;
        if (has_blocks)
            AN_TRY(m->weights.read_q8_0(&m->weights, index, &tensor, first, count, part));
        else if (transposed)
            an_conv1d_transpose(&tensor, whole, first, count, part);
        else
            AN_TRY(m->weights.read(&m->weights, index, &tensor, first, count, part));
        if (tensor.type->dtype != e->dtype && !has_blocks) {
            an_convert_to_f64(tensor.type->dtype, count, part);
            an_convert_from_f64(e->dtype, count, part);
        }
        AN_TRY(p->device->copy(p->device, ctx, to + an_dtype_bytes(e->dtype, first), part,
                               (size_t)an_dtype_bytes(e->dtype, count), AN_COPY_TO_DEVICE));
    }
    status = AN_OK;
fail:
    an_release(ctx, (void **)&whole, (size_t)tensor.bytes, 1);
    return status;
}

an_status an_matching_load(an_matching *m) {
    an_status status = AN_OK;
    an_context *ctx = m->ctx;
    double *part = NULL;
    AN_TRY_RETURN(an_alloc(ctx, (void **)&part, PART, sizeof *part));
    for (size_t i = 0; i < m->entry_count && status == AN_OK; i++)
        if (m->tensors[i])
            status = load(m, i, part);
        else if (!m->adapter && !an_adapter_has(m->params->entries[i].name))
            status = an_params_start(m->params, i);
    if (!m->adapter) m->params->deferred = false;
    m->params->version++;
    an_release(ctx, (void **)&part, PART, sizeof *part);
    return status;
}

void an_matching_tell(const an_matching *m, const char *path, bool adapted) {
    if (m->fresh.length)
        an_log_write(m->ctx, AN_LOG_WARNING,
                     "%s: has no head of this shape, so these parameters are new and begin with random values%s: %s",
                     path, adapted ? ", and are trained beside the adapter" : "", m->fresh.bytes);
    if (m->converted > 0)
        an_log_write(m->ctx, AN_LOG_INFO, "%s: %lld tensors have a different type than the model and were converted",
                     path, (long long)m->converted);
    an_renamings_tell(&m->names, path);
}

/* The names in its file are PEFT's. */
an_status an_matching_open_adapter(an_matching *m, const an_graph *graph, const char *folder) {
    static const an_load_rename prefix = {.pattern = "^base_model\\.model\\.", .text = ""};
    an_context *ctx = m->ctx;
    an_text path;
    an_text_init(&path, ctx);
    an_text_add(&path, "%s/adapter_model.safetensors", folder);
    an_status status = path.status;
    if (status == AN_OK) status = an_adapter_check(ctx, graph, folder);
    if (status == AN_OK) status = an_renamings_create(&m->names, ctx, 1, &prefix);
    if (status == AN_OK) status = an_weights_open(&m->weights, ctx, path.bytes, AN_MODEL_WEIGHTS_AUTO);
    an_text_destroy(&path);
    return status;
}

an_status an_matching_open(an_matching *m, const char *path, an_model_weights weights, int rename_count,
                           const an_load_rename *renames) {
    an_context *ctx = m->ctx;
    AN_TRY_RETURN(an_renamings_create(&m->names, ctx, rename_count, renames));
    AN_TRY_RETURN(an_weights_open(&m->weights, ctx, path, weights));
    return an_weights_gguf(&m->weights) && rename_count == 0 ? an_weights_rename_gguf(&m->weights, path) : AN_OK;
}

an_status an_matching_create(an_matching **matched, an_params *params) {
    an_context *ctx = params->ctx;
    AN_TRY_RETURN(an_alloc(ctx, (void **)matched, 1, sizeof **matched));
    (*matched)->ctx = ctx;
    (*matched)->params = params;
    an_text_init(&(*matched)->fresh, ctx);
    return AN_OK;
}

void an_matching_destroy(an_matching **matched) {
    an_matching *m = *matched;
    if (!m) return;
    an_context *ctx = m->ctx;
    an_text_destroy(&m->fresh);
    an_release(ctx, (void **)&m->others, m->other_count, sizeof *m->others);
    an_release(ctx, (void **)&m->slots, m->slot_count, sizeof *m->slots);
    an_release(ctx, (void **)&m->tensors, m->entry_count, sizeof *m->tensors);
    an_weights_close(&m->weights);
    an_renamings_destroy(&m->names);
    an_release(ctx, (void **)matched, 1, sizeof *m);
}
