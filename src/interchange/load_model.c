#include "interchange/load_model.h"

#include <string.h>

#include "interchange/matching.h"

/* What the files lack, or have besides, was settled when the run began: the hash says whether the weights are the
 * same. */
an_status an_base_load(an_params *params, const an_saved_adapter *saved, const char *checkpoint) {
    an_status status;
    an_context *ctx = params->ctx;
    an_matching *m = NULL;
    uint64_t hash[2];
    AN_CHECK(ctx, *saved->base, AN_ERR_UNSUPPORTED,
             "%s: has an adapter for weights that were read from no file, so they cannot be read again", checkpoint);
    AN_TRY(an_matching_create(&m, params));
    m->new_heads = true;
    status = an_matching_open(m, saved->base, AN_MODEL_WEIGHTS_AUTO, 0, NULL);
    if (status == AN_OK) status = an_matching_find(m);
    if (status != AN_OK)
        AN_FAIL(ctx, status, "%s: the model of its adapter cannot be read: %s", checkpoint, an_last_error(ctx));
    m->accepts[AN_MATCHING_MISSING] = m->accepts[AN_MATCHING_UNEXPECTED] = true;
    AN_TRY(an_matching_check(m, saved->base, ""));
    AN_TRY(an_matching_load(m));
    AN_TRY(an_base_hash(params, hash));
    AN_CHECK(ctx, !memcmp(hash, saved->hash, sizeof hash), AN_ERR_ARGUMENT,
             "%s: does not have the weights that the adapter of %s was trained on", saved->base, checkpoint);
    status = AN_OK;
fail:
    an_matching_destroy(&m);
    return status;
}

an_status an_weights_load(an_params *params, const char *path, an_model_weights weights) {
    an_status status;
    an_matching *m = NULL;
    AN_TRY(an_matching_create(&m, params));
    m->other_heads = true;
    AN_TRY(an_matching_open(m, path, weights, 0, NULL));
    AN_TRY(an_matching_find(m));
    AN_TRY(an_matching_check(m, path, ""));
    AN_TRY(an_matching_load(m));
    status = AN_OK;
fail:
    an_matching_destroy(&m);
    return status;
}
