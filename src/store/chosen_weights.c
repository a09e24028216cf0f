#include "store/chosen_weights.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "store/layout.h"

/* Compares a weight's name, with the prefix of an average before it, with the name of a tensor. */
static int compare(const void *weight, const void *tensor) {
    const char *prefix = an_part_prefix(AN_PART_AVERAGE), *name = ((const an_manifest_tensor *)tensor)->name;
    const size_t length = strlen(prefix);
    const int order = strncmp(prefix, name, length);
    return order ? order : strcmp(weight, name + length);
}

int64_t an_manifest_find_average(const an_manifest *m, const char *weight) {
    const an_manifest_tensor *found =
        m->tensor_count ? bsearch(weight, m->tensors, m->tensor_count, sizeof *m->tensors, compare) : NULL;
    return found ? found - m->tensors : -1;
}

int64_t an_manifest_source(const an_manifest *m, int64_t weight, bool average) {
    const int64_t found = average ? an_manifest_find_average(m, m->tensors[weight].name) : -1;
    return found < 0 ? weight : found;
}

/* Readers have made room for the weight. */
static bool is_like(const an_manifest *m, size_t average, int64_t weight) {
    int64_t dims[2][AN_MAX_DIMS] = {0};
    if (weight < 0 || m->tensors[average].dtype != m->tensors[weight].dtype ||
        m->tensors[average].ndims != m->tensors[weight].ndims)
        return false;
    an_manifest_shape(m, average, dims[0]);
    an_manifest_shape(m, (size_t)weight, dims[1]);
    return !memcmp(dims[0], dims[1], sizeof dims[0]);
}

static an_status find_averages(an_context *ctx, const an_manifest *m, const char *path, bool *any) {
    const size_t length = strlen(an_part_prefix(AN_PART_AVERAGE));
    *any = false;
    for (size_t i = 0; i < m->tensor_count; i++) {
        const char *name = m->tensors[i].name;
        if (an_part_of(name) != AN_PART_AVERAGE) continue;
        if (!is_like(m, i, an_manifest_find(m, name + length)))
            return AN_ERROR(ctx, AN_ERR_DAMAGED, "%s: '%s' does not have the shape and type of a weight", path,
                            AN_QUOTE(name));
        *any = true;
    }
    return AN_OK;
}

an_status an_choose_weights(an_context *ctx, const an_manifest *m, const char *path, an_model_weights asked,
                            bool *average) {
    *average = false;
    if ((unsigned)asked > AN_MODEL_WEIGHTS_AVERAGE)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "weights is %d, which is not a value of an_model_weights", (int)asked);
    if (asked == AN_MODEL_WEIGHTS_RAW) return AN_OK;
    if (m) AN_TRY_RETURN(find_averages(ctx, m, path, average));
    if (*average || asked == AN_MODEL_WEIGHTS_AUTO) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_STATE,
                    "%s: has no moving average of the weights, because the run was trained without train.ema", path);
}
