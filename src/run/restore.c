#include "run/restore.h"

#include <string.h>

#include "base/heartbeat.h"
#include "step/optimizer_records.h"
#include "store/chosen_weights.h"
#include "store/load.h"

/* ---- the optimizer ---- */

an_status an_load_check_known(an_context *ctx, const an_manifest *m, const char *folder) {
    const an_saved_optimizer *saved = &m->optimizer;
    if (!*saved->name) return AN_OK;
    const an_optimizer_record *record = an_optimizer_record_find(ctx, saved->name);
    if (!record)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: the run was trained with the optimizer '%s' of another program; this one has %s. Resume "
                        "it with the program that "
                        "adds '%s' (an_context_add_optimizer)",
                        folder, saved->name, an_optimizer_names_list(ctx).text, saved->name);
    if (record->version == saved->version) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_UNSUPPORTED,
        "%s: the run was trained with version %lld of the optimizer '%s', and this program has version %d, which "
        "gives other weights. Resume it with the program that has version %lld, or start a new run",
        folder, (long long)saved->version, saved->name, record->version, (long long)saved->version);
}

an_status an_load_check_optimizer(const an_trainer *t, const an_manifest *m, const char *folder) {
    an_context *ctx = t->ctx;
    const char *now = t->optimizer->record->name;
    AN_TRY_RETURN(an_load_check_known(ctx, m, folder));
    if (!*m->optimizer.name || !strcmp(m->optimizer.name, now)) return AN_OK;
    return AN_ERROR(
        ctx, AN_ERR_UNSUPPORTED,
        "%s: the run was trained with the optimizer '%s', and this trainer has '%s', to which the saved moments "
        "mean nothing. Take '%s', or start a new run",
        folder, m->optimizer.name, now, m->optimizer.name);
}

/* ---- the average ---- */

an_status an_load_check_average(const an_trainer *t, const an_manifest *m, const char *folder) {
    an_context *ctx = t->ctx;
    const bool keeps = an_params_kept(t->params).average;
    bool saved;
    AN_TRY_RETURN(an_choose_weights(ctx, m, folder, AN_MODEL_WEIGHTS_AUTO, &saved));
    if (saved == keeps) return AN_OK;
    if (saved)
        return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                        "%s: the run keeps a moving average of its weights, and this trainer does not: set train.ema "
                        "to the run's decay",
                        folder);
    return AN_ERROR(ctx, AN_ERR_UNSUPPORTED,
                    "%s: the run was trained without a moving average of its weights, which begins with the first "
                    "update: remove train.ema, or start a new run from these weights (model.init.from)",
                    folder);
}

/* ---- the model of an adapter ---- */

an_status an_load_check_base(an_trainer *t, const an_manifest *m, const char *folder) {
    an_context *ctx = t->ctx;
    const an_saved_adapter *saved = &m->adapter;
    const an_adapter *a = &saved->adapter;
    an_saved_adapter now;
    AN_TRY_RETURN(an_adapter_get(t, &now));
    const an_adapter *b = &now.adapter;
    if (a->rank == 0 && b->rank == 0) return AN_OK;
    if (a->rank == 0 || b->rank == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: is a checkpoint of %s, and this trainer has %s", folder,
                        a->rank ? "an adapter" : "a whole model", b->rank ? "a model with an adapter" : "no adapter");
    if (a->rank != b->rank || a->alpha != b->alpha || a->rslora != b->rslora || a->dora != b->dora)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: its adapter has rank %lld, alpha %g, rslora %s and dora %s, and that of this trainer has rank %lld, "
            "alpha %g, rslora %s and dora %s",
            folder, (long long)a->rank, a->alpha, a->rslora ? "on" : "off", a->dora ? "on" : "off", (long long)b->rank,
            b->alpha, b->rslora ? "on" : "off", b->dora ? "on" : "off");
    if (!memcmp(saved->hash, now.hash, sizeof now.hash)) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: its adapter was trained on other weights than this trainer has: they were %s%s. Load these "
                    "(model.init.from), in the same precision, or start a new run",
                    folder, *saved->base ? "read from " : "random, or set by the program", saved->base);
}

/* ---- all of it ---- */

static an_status load_tensors(an_trainer *t, const an_manifest *m, const char *folder) {
    an_context *ctx = t->ctx;
    an_heartbeat_enter(ctx, AN_HEARTBEAT_START, "reads the checkpoint");
    if (t->ranks > 1) return an_checkpoint_load_ranks(ctx, t->params, t->graph, m, folder, 0);
    return an_checkpoint_load(ctx, t->params, t->graph, m, folder, AN_LOAD_STATE);
}

an_status an_load(an_trainer *t, const an_manifest *m, const char *folder) {
    AN_TRY_RETURN(load_tensors(t, m, folder));
    an_progress_restore(t, &m->progress);
    return AN_OK;
}

an_status an_load_restart(an_trainer *t, const an_manifest *m, const char *folder) {
    AN_TRY_RETURN(load_tensors(t, m, folder));
    an_progress_restart(t, &m->progress);
    return AN_OK;
}
