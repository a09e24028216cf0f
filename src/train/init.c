/* Loads weights from files: which tensor goes where, what does not fit, and the copy, piece by piece. */
#include "base/guard.h"
#include "base/structs.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "exec/array.h"
#include "exec/params.h"
#include "exec/plan.h"
#include "ir/adapter.h"
#include "pretrained/family.h"
#include "pretrained/weights.h"
#include "store/conv1d.h"
#include "store/gguf.h"
#include "store/weights.h"
#include "train/adapter.h"
#include "train/huggingface.h"
#include "train/renames.h"

/* ---- what goes where ---- */

typedef enum { MISSING, UNEXPECTED, SHAPE, TYPE, TWICE, PROBLEMS } problem;
enum { MOST_SHOWN = 20 }; /* of each */

typedef struct {
    an_context *ctx;
    an_params *params;
    an_weights weights;
    an_renamings names;
    size_t entry_count, slot_count;
    int64_t *tensors; /* of each entry, the number of its tensor + 1; 0: none */
    size_t *slots;    /* a table of entries + 1 by the hash of their name */
    bool accepts[PROBLEMS];
    int64_t counts[PROBLEMS];
    struct {
        int64_t tensor;
        size_t entry;
    } shown[PROBLEMS][MOST_SHOWN];
    int64_t converted;
    bool gpt2;               /* config.json says that the folder is a GPT-2 */
    bool has_conv1d;         /* the model has weights of GPT-2's names */
    const an_family *family; /* of the model, if it is one whose heads may be new; NULL: it is none */
    bool new_heads;          /* a head that the files do not have, or have in another shape, keeps its random values */
    bool other_heads;        /* a head that the model does not have is ignored */
    an_text fresh;           /* the parameters that are new, as a list */
    bool adapter;            /* only the parameters of the adapter are looked for; otherwise only the others */
    bool transposes;         /* the file has GPT-2's Conv1D weights as [in, out], and the model as [out, in] */
} matching;

static size_t *find_slot(const matching *m, const char *name) {
    size_t at = (size_t)an_hash(name, strlen(name), 0) & (m->slot_count - 1);
    while (m->slots[at] && strcmp(m->params->entries[m->slots[at] - 1].name, name) != 0)
        at = (at + 1) & (m->slot_count - 1);
    return &m->slots[at];
}

static void note_problem(matching *m, problem p, int64_t tensor, size_t entry) {
    const int64_t at = m->counts[p]++;
    if (at >= MOST_SHOWN) return;
    m->shown[p][at].tensor = tensor;
    m->shown[p][at].entry = entry;
}

static bool is_weight(an_dtype dtype) {
    return dtype == AN_DTYPE_F32 || dtype == AN_DTYPE_F64 || dtype == AN_DTYPE_F16 || dtype == AN_DTYPE_BF16;
}

/* Some of the published files have the name of the model's body before every name of it: "transformer." in GPT-2's, "bert." in BERT's. */
static const char *const prefixes[] = {"transformer.", "bert."};

static bool is_head(const matching *m, const char *name) {
    if (!m->family) return false;
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) name += strlen(prefixes[i]);
    return an_family_is_head(m->family, name);
}

/* The entry of a tensor + 1; 0: the model has none of its name. */
static an_status find_entry(const matching *m, const an_safetensor *tensor, size_t *slot) {
    an_context *ctx = m->ctx;
    char name[AN_NAME_BYTES];
    AN_TRY_RETURN(an_renamings_apply(&m->names, tensor->name, name));
    *slot = *find_slot(m, name);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && *slot == 0; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) *slot = *find_slot(m, name + strlen(prefixes[i]));
    return AN_OK;
}

static bool is_transposed(const matching *m, const an_stored *e) {
    return m->transposes && an_conv1d_has(e->name);
}

static bool has_shape(const an_safetensor *tensor, const an_stored *e, bool transposed) {
    bool same = tensor->ndims == e->ndims;
    for (int i = 0; i < e->ndims && same; i++) same = tensor->dims[i] == e->dims[transposed ? e->ndims - 1 - i : i];
    return same;
}

/* What published files have although no model reads it: masks in GPT-2's, the numbers 0, 1, 2, … in BERT's. */
static bool is_buffer(const matching *m, const char *name) {
    static const char positions[] = "embeddings.position_ids";
    const size_t length = strlen(name), end = sizeof positions - 1;
    if (m->has_conv1d && an_conv1d_is_buffer(name)) return true;
    return length >= end && !strcmp(name + length - end, positions);
}

static an_status match_tensor(matching *m, int64_t index) {
    an_context *ctx = m->ctx;
    an_safetensor tensor;
    size_t slot;
    AN_TRY_RETURN(m->weights.get(&m->weights, index, &tensor));
    AN_TRY_RETURN(find_entry(m, &tensor, &slot));
    if (slot == 0) {
        const bool ignored = m->other_heads && is_head(m, tensor.name);
        if (!is_buffer(m, tensor.name) && !ignored) note_problem(m, UNEXPECTED, index, 0);
        return AN_OK;
    }
    const an_stored *e = &m->params->entries[slot - 1];
    const problem found = m->tensors[slot - 1]                          ? TWICE
                          : !has_shape(&tensor, e, is_transposed(m, e)) ? SHAPE
                          : !is_weight(tensor.type->dtype)              ? TYPE
                                                                        : PROBLEMS;
    if (found == SHAPE && m->new_heads && is_head(m, e->name)) return AN_OK; /* for other classes */
    if (found != PROBLEMS) note_problem(m, found, index, slot - 1);
    if (found != TWICE) m->tensors[slot - 1] = index + 1;
    m->converted += tensor.type->dtype != e->dtype;
    return AN_OK;
}

/* A square weight does not show whether it is [in, out]: the others of its file do, or config.json. What anneal saved is as the model has
 * it. */
static an_status find_layout(matching *m) {
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

/* ---- what does not fit ---- */

static const char *const problem_names[PROBLEMS] = {
    [MISSING] = "missing", [UNEXPECTED] = "unexpected", [SHAPE] = "shape", [TYPE] = "type", [TWICE] = "twice"};

static void add_dims(an_text *text, int ndims, const int64_t *dims) {
    an_text_add(text, "[");
    for (int i = 0; i < ndims; i++) an_text_add(text, "%s%lld", i ? ", " : "", (long long)dims[i]);
    an_text_add(text, "]");
}

static an_status add_problem(const matching *m, an_text *text, problem p, int64_t index, const an_stored *e) {
    an_context *ctx = m->ctx;
    an_safetensor tensor = {0}, first;
    char name[AN_NAME_BYTES] = "";
    an_text_add(text, "\n  %s: ", problem_names[p]);
    if (p == MISSING) {
        an_text_add(text, "%s ", AN_QUOTE(e->name));
        add_dims(text, e->ndims, e->dims);
        return AN_OK;
    }
    AN_TRY_RETURN(m->weights.get(&m->weights, index, &tensor));
    AN_TRY_RETURN(an_renamings_apply(&m->names, tensor.name, name));
    an_text_add(text, "%s", AN_QUOTE(tensor.name));
    if (*name && strcmp(name, tensor.name) != 0) an_text_add(text, ", renamed to %s,", AN_QUOTE(name));
    an_text_add(text, " ");
    if (p == UNEXPECTED || p == SHAPE) add_dims(text, tensor.ndims, tensor.dims);
    if (p == SHAPE) {
        an_text_add(text, is_transposed(m, e) ? ", in the model, transposed, " : ", in the model ");
        add_dims(text, e->ndims, e->dims);
    }
    if (p == TYPE) an_text_add(text, "is %s; weights are F32, F64, F16 or BF16", tensor.type->name);
    if (p == TWICE) {
        AN_TRY_RETURN(m->weights.get(&m->weights, m->tensors[e - m->params->entries] - 1, &first));
        an_text_add(text, "has the same name as %s", AN_QUOTE(first.name));
    }
    return AN_OK;
}

/* At most `most` of each kind. */
static an_status describe(const matching *m, const char *path, int64_t most, an_text *text) {
    an_context *ctx = m->ctx;
    an_text_add(text, "%s does not fit the model:", path);
    for (int p = 0; p < PROBLEMS; p++) {
        if (m->accepts[p]) continue;
        for (int64_t i = 0; i < m->counts[p] && i < most; i++)
            AN_TRY_RETURN(
                add_problem(m, text, (problem)p, m->shown[p][i].tensor, &m->params->entries[m->shown[p][i].entry]));
        if (m->counts[p] > most)
            an_text_add(text, "\n  %s: and %lld more", problem_names[p], (long long)(m->counts[p] - most));
    }
    an_text_add(
        text, m->adapter ? "\nthe targets must match the layers that the adapter of the file changes, and no others"
                         : "\nuse rename to change the names in the file, missing: init to accept missing tensors, and "
                           "unexpected: ignore to accept unexpected ones");
    return text->status;
}

static an_status check(const matching *m, const char *path, const char *prefix) {
    an_status status = AN_OK;
    an_context *ctx = m->ctx;
    an_text text;
    const size_t room = AN_MESSAGE_BYTES - 1;
    bool fits = true;
    for (int p = 0; p < PROBLEMS; p++) fits = fits && (m->accepts[p] || m->counts[p] == 0);
    for (int64_t most = MOST_SHOWN; !fits && most > 0; most--) {
        an_text_init(&text, ctx);
        status = describe(m, path, most, &text);
        const bool last = most == 1 || (status == AN_OK && text.length + strlen(prefix) <= room);
        if (status == AN_OK && last) status = AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s%s", prefix, text.bytes);
        an_text_destroy(&text);
        if (status != AN_OK) return status;
    }
    return AN_OK;
}

/* ---- all of it ---- */

static an_status match(matching *m) {
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
    AN_TRY_RETURN(find_layout(m));
    for (int64_t i = 0; i < m->weights.count; i++) AN_TRY_RETURN(match_tensor(m, i));
    for (size_t i = 0; i < m->entry_count; i++) {
        const char *name = m->params->entries[i].name;
        if (m->tensors[i] || an_adapter_has(name) != m->adapter) continue;
        if (m->new_heads && is_head(m, name))
            an_text_add(&m->fresh, "%s%s", m->fresh.length ? ", " : "", AN_QUOTE(name));
        else
            note_problem(m, MISSING, 0, i);
    }
    return m->fresh.status;
}

enum { PART = 64 * AN_PAGE }; /* elements in memory at a time */

/* What this rank has of an entry: nothing else is read, unless the tensor is transposed. */
static an_status load(const matching *m, size_t entry, double *part) {
    an_status status;
    an_context *ctx = m->ctx;
    an_params *p = m->params;
    const an_stored *e = &p->entries[entry];
    const int64_t index = m->tensors[entry] - 1;
    const bool transposed = is_transposed(m, e);
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

static an_status load_all(matching *m) {
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

static void tell(const matching *m, const char *path) {
    if (m->fresh.length)
        an_log_write(m->ctx, AN_LOG_WARNING,
                     "%s: has no head of this shape, so these parameters are new and begin with random values: %s",
                     path, m->fresh.bytes);
    if (m->converted > 0)
        an_log_write(m->ctx, AN_LOG_INFO, "%s: %lld tensors have a different type than the model and were converted",
                     path, (long long)m->converted);
    an_renamings_tell(&m->names, path);
}

/* "run.yaml:3:5: model.from: ", or nothing */
static const char *prefix_of(const an_init_options *o, char prefix[AN_MESSAGE_BYTES]) {
    snprintf(prefix, AN_MESSAGE_BYTES, o->place ? "%s: " : "%s", o->place ? o->place : "");
    return prefix;
}

/* The names in its file are PEFT's. */
static an_status open_adapter(matching *m, const an_trainer *trainer, const char *folder) {
    static const an_init_rename prefix = {.pattern = "^base_model\\.model\\.", .text = ""};
    an_context *ctx = m->ctx;
    an_text path;
    an_text_init(&path, ctx);
    an_text_add(&path, "%s/adapter_model.safetensors", folder);
    an_status status = path.status;
    if (status == AN_OK) status = an_adapter_check(trainer, folder);
    if (status == AN_OK) status = an_renamings_create(&m->names, ctx, 1, &prefix);
    if (status == AN_OK) status = an_weights_open(&m->weights, ctx, path.bytes, AN_MODEL_WEIGHTS_AUTO);
    an_text_destroy(&path);
    return status;
}

/* Tensors of a GGUF file get the names that their family has in our models, unless the caller has names of its own for them. */
static an_status open_weights(matching *m, const char *path, an_model_weights weights, int rename_count,
                              const an_init_rename *renames) {
    an_context *ctx = m->ctx;
    AN_TRY_RETURN(an_renamings_create(&m->names, ctx, rename_count, renames));
    AN_TRY_RETURN(an_weights_open(&m->weights, ctx, path, weights));
    return an_weights_gguf(&m->weights) && rename_count == 0 ? an_weights_rename_gguf(&m->weights, path) : AN_OK;
}

static an_status open_model(matching *m, const an_trainer *trainer, const an_init_options *o, size_t taken) {
    an_context *ctx = m->ctx;
    AN_TRY_RETURN(open_weights(m, o->path, o->weights, o->rename_count, o->renames));
    return m->weights.is_folder ? an_huggingface_check(trainer, o->path, o->model_type, taken, &m->gpt2) : AN_OK;
}

static an_status matching_create(matching **matched, an_params *params) {
    an_context *ctx = params->ctx;
    AN_TRY_RETURN(an_alloc(ctx, (void **)matched, 1, sizeof **matched));
    (*matched)->ctx = ctx;
    (*matched)->params = params;
    an_text_init(&(*matched)->fresh, ctx);
    return AN_OK;
}

static void matching_destroy(matching **matched) {
    matching *m = *matched;
    if (!m) return;
    an_context *ctx = m->ctx;
    an_text_destroy(&m->fresh);
    an_release(ctx, (void **)&m->slots, m->slot_count, sizeof *m->slots);
    an_release(ctx, (void **)&m->tensors, m->entry_count, sizeof *m->tensors);
    an_weights_close(&m->weights);
    an_renamings_destroy(&m->names);
    an_release(ctx, (void **)matched, 1, sizeof *m);
}

/* What the files lack, or have besides, was settled when the run began: the hash says whether the weights are the same. */
an_status an_base_load(an_params *params, const an_saved_adapter *saved, const char *checkpoint) {
    an_status status;
    an_context *ctx = params->ctx;
    matching *m = NULL;
    uint64_t hash[2];
    AN_CHECK(ctx, *saved->base, AN_ERR_UNSUPPORTED,
             "%s: has an adapter for weights that were read from no file, so they cannot be read again", checkpoint);
    AN_TRY(matching_create(&m, params));
    m->new_heads = true;
    status = open_weights(m, saved->base, AN_MODEL_WEIGHTS_AUTO, 0, NULL);
    if (status == AN_OK) status = match(m);
    if (status != AN_OK)
        AN_FAIL(ctx, status, "%s: the model of its adapter cannot be read: %s", checkpoint, an_last_error(ctx));
    m->accepts[MISSING] = m->accepts[UNEXPECTED] = true;
    AN_TRY(check(m, saved->base, ""));
    AN_TRY(load_all(m));
    AN_TRY(an_base_hash(params, hash));
    AN_CHECK(ctx, !memcmp(hash, saved->hash, sizeof hash), AN_ERR_ARGUMENT,
             "%s: does not have the weights that the adapter of %s was trained on", saved->base, checkpoint);
    status = AN_OK;
fail:
    matching_destroy(&m);
    return status;
}

an_status an_weights_load(an_params *params, const char *path, an_model_weights weights) {
    an_status status;
    an_context *ctx = params->ctx;
    matching *m = NULL;
    AN_TRY(matching_create(&m, params));
    m->other_heads = true;
    AN_TRY(open_weights(m, path, weights, 0, NULL));
    AN_TRY(match(m));
    AN_TRY(check(m, path, ""));
    AN_TRY(load_all(m));
    status = AN_OK;
fail:
    matching_destroy(&m);
    return status;
}

/* Checkpoints of an adapter name the model that it is for. */
static an_status keep_base(an_trainer *t, const char *path) {
    an_context *ctx = t->ctx;
    char working[AN_FILE_PATH], whole[2 * AN_FILE_PATH];
    t->has_base_hash = false;
    if (t->graph->adapter.rank == 0) return AN_OK;
    const bool is_first = !t->base, is_whole = *path == '/' || !getcwd(working, sizeof working);
    snprintf(whole, sizeof whole, "%s%s%s", is_whole ? "" : working, is_whole ? "" : "/", path);
    AN_TRY_RETURN(an_trainer_keep_text(t, &t->base, whole));
    return is_first ? an_plan_count_trainer(t->plan, strlen(t->base) + 1) : AN_OK;
}

an_status an_trainer_init(an_trainer *trainer, const an_init_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_status status;
    an_init_options own;
    const an_init_options *const o = &own;
    an_context *ctx = trainer->ctx;
    matching *m = NULL;
    char prefix[AN_MESSAGE_BYTES];
    AN_TRY(an_init_options_read(ctx, &own, options));
    AN_CHECK(ctx, o->path && o->rename_count >= 0 && (o->renames || !o->rename_count), AN_ERR_ARGUMENT,
             "an_init_options has no path, or no renames");
    AN_CHECK(ctx, !trainer->planned && trainer->next == 0, AN_ERR_STATE,
             "initial weights can only be loaded before the first step");
    prefix_of(o, prefix);
    AN_TRY(matching_create(&m, trainer->params));
    m->new_heads = m->other_heads = o->new_heads;
    m->adapter = o->adapter;
    m->accepts[MISSING] = o->accepts_missing;
    m->accepts[UNEXPECTED] = o->accepts_unexpected;
    status = o->adapter ? open_adapter(m, trainer, o->path) : open_model(m, trainer, o, strlen(prefix));
    if (status == AN_OK) status = match(m);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s%s", prefix, an_last_error(ctx));
    AN_TRY(check(m, o->path, prefix));
    AN_TRY(load_all(m));
    if (!o->adapter) AN_TRY(keep_base(trainer, o->path));
    tell(m, o->path);
fail:
    matching_destroy(&m);
    return status;
}
