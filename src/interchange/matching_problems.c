#include "interchange/matching.h"

#include <string.h>

static const char *const problem_names[AN_MATCHING_PROBLEMS] = {
    [AN_MATCHING_MISSING] = "missing", [AN_MATCHING_UNEXPECTED] = "unexpected", [AN_MATCHING_SHAPE] = "shape",
    [AN_MATCHING_TYPE] = "type",       [AN_MATCHING_TWICE] = "twice",           [AN_MATCHING_UNKNOWN_TWICE] = "twice"};

static void add_dims(an_text *text, int ndims, const int64_t *dims) {
    an_text_add(text, "[");
    for (int i = 0; i < ndims; i++) an_text_add(text, "%s%lld", i ? ", " : "", (long long)dims[i]);
    an_text_add(text, "]");
}

static an_status add_problem(const an_matching *m, an_text *text, an_matching_problem p, int64_t number) {
    const int64_t index = m->shown[p][number].tensor;
    const an_stored *e = &m->params->entries[m->shown[p][number].entry];
    an_safetensor tensor = {0}, first;
    char name[AN_NAME_BYTES] = "";
    an_text_add(text, "\n  %s: ", problem_names[p]);
    if (p == AN_MATCHING_MISSING) {
        an_text_add(text, "%s ", AN_QUOTE(e->name));
        add_dims(text, e->ndims, e->dims);
        return AN_OK;
    }
    AN_TRY_RETURN(m->weights.get(&m->weights, index, &tensor));
    AN_TRY_RETURN(an_renamings_apply(&m->names, tensor.name, name));
    an_text_add(text, "%s", AN_QUOTE(tensor.name));
    if (*name && strcmp(name, tensor.name) != 0) an_text_add(text, ", renamed to %s,", AN_QUOTE(name));
    an_text_add(text, " ");
    if (p == AN_MATCHING_UNEXPECTED || p == AN_MATCHING_SHAPE) add_dims(text, tensor.ndims, tensor.dims);
    if (p == AN_MATCHING_SHAPE) {
        an_text_add(text, an_matching_transposes(m, e) ? ", in the model, transposed, " : ", in the model ");
        add_dims(text, e->ndims, e->dims);
    }
    if (p == AN_MATCHING_TYPE) an_text_add(text, "is %s; weights are F32, F64, F16 or BF16", tensor.type->name);
    if (p == AN_MATCHING_TWICE || p == AN_MATCHING_UNKNOWN_TWICE) {
        const int64_t other =
            p == AN_MATCHING_TWICE ? m->tensors[e - m->params->entries] - 1 : m->shown[p][number].first;
        AN_TRY_RETURN(m->weights.get(&m->weights, other, &first));
        an_text_add(text, "has the same name as %s", AN_QUOTE(first.name));
    }
    return AN_OK;
}

/* At most `most` of each kind. */
static an_status describe(const an_matching *m, const char *path, int64_t maximum, an_text *text) {
    an_text_add(text, "%s does not fit the model:", path);
    for (int p = 0; p < AN_MATCHING_PROBLEMS; p++) {
        if (m->accepts[p]) continue;
        for (int64_t i = 0; i < m->counts[p] && i < maximum; i++)
            AN_TRY_RETURN(add_problem(m, text, (an_matching_problem)p, i));
        if (m->counts[p] > maximum)
            an_text_add(text, "\n  %s: and %lld more", problem_names[p], (long long)(m->counts[p] - maximum));
    }
    an_text_add(text,
                m->adapter
                    ? "\nthe targets must match the layers that the adapter of the file changes, and no others, and "
                      "lora.train those that it has whole"
                    : "\nuse rename to change the names in the file, missing: init to accept missing tensors, and "
                      "unexpected: ignore to accept unexpected ones");
    return text->status;
}

an_status an_matching_check(const an_matching *m, const char *path, const char *prefix) {
    an_status status = AN_OK;
    an_context *ctx = m->ctx;
    an_text text;
    const size_t room = AN_MESSAGE_BYTES - 1;
    bool fits = true;
    for (int p = 0; p < AN_MATCHING_PROBLEMS; p++) fits = fits && (m->accepts[p] || m->counts[p] == 0);
    for (int64_t maximum = AN_MATCHING_MOST_SHOWN; !fits && maximum > 0; maximum--) {
        an_text_init(&text, ctx);
        status = describe(m, path, maximum, &text);
        const bool last = maximum == 1 || (status == AN_OK && text.length + strlen(prefix) <= room);
        if (status == AN_OK && last) status = AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s%s", prefix, text.bytes);
        an_text_destroy(&text);
        if (status != AN_OK) return status;
    }
    return AN_OK;
}
