/* A trainer's initial weights, from files. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/guard.h"
#include "exec/plan.h"
#include "interchange/huggingface.h"
#include "interchange/matching.h"
#include "train/normalize.h"
#include "train/structs.h"
#include "train/trainer.h"

/* Statistics that go on with every step begin with those of the file, and are soon those of the data. */
static an_status tell_scaling(const an_matching *m, an_trainer *t, const char *path) {
    for (int end = 0; end < AN_NORMALIZED_ENDS && !t->samples.running; end++) {
        const an_stored *scale = an_normalization_find(m->params, end, AN_NORMALIZE_SCALE);
        if (scale && m->tensors[scale - m->params->entries]) AN_TRY_RETURN(an_normalization_note_origin(t, end, path));
    }
    return AN_OK;
}

/* "run.yaml:3:5: model.from: ", or nothing */
static const char *prefix_of(const an_load_options *o, char prefix[AN_MESSAGE_BYTES]) {
    snprintf(prefix, AN_MESSAGE_BYTES, o->place ? "%s: " : "%s", o->place ? o->place : "");
    return prefix;
}

/* With what only a trainer knows: the number of tokens in a sample, and which parameters are one. */
static void find_facts(an_model_facts *facts, const an_trainer *trainer) {
    an_group_info group;
    an_group_info_init(&group, sizeof group);
    an_model_facts_of(facts, trainer->graph);
    facts->facts[AN_FACT_CONTEXT].known = true;
    facts->facts[AN_FACT_CONTEXT].value = (double)an_trainer_tokens(trainer);
    facts->facts[AN_FACT_TIED].value = 0;
    for (int i = 0; i < an_groups_count(trainer->groups); i++)
        if (an_groups_get(trainer->groups, i, &group) == AN_OK && group.tied > 0) facts->facts[AN_FACT_TIED].value = 1;
}

static an_status open_model(an_matching *m, const an_trainer *trainer, const an_load_options *o, size_t taken) {
    an_context *ctx = m->ctx;
    AN_TRY_RETURN(an_matching_open(m, o->path, o->weights, o->rename_count, o->renames));
    if (!m->weights.is_folder) return AN_OK;
    an_model_facts facts;
    find_facts(&facts, trainer);
    return an_huggingface_check(ctx, &facts, o->path, o->model_type, taken, &m->gpt2);
}

/* Checkpoints of an adapter name the model that it is for. */
static an_status keep_base(an_trainer *t, const char *path) {
    char working[AN_FILE_PATH], whole[2 * AN_FILE_PATH];
    t->adapted.has_hash = false;
    if (t->graph->adapter.rank == 0) return AN_OK;
    const bool is_first = !t->adapted.path, is_whole = *path == '/' || !getcwd(working, sizeof working);
    snprintf(whole, sizeof whole, "%s%s%s", is_whole ? "" : working, is_whole ? "" : "/", path);
    AN_TRY_RETURN(an_trainer_keep_text(t, &t->adapted.path, whole));
    return is_first ? an_plan_count_trainer(t->plan, strlen(t->adapted.path) + 1) : AN_OK;
}

an_status an_trainer_load_weights(an_trainer *trainer, const an_load_options *options) {
    AN_GUARD;
    AN_NEED(trainer, options);
    an_status status;
    an_load_options own;
    const an_load_options *const o = &own;
    an_context *ctx = trainer->ctx;
    an_matching *m = NULL;
    char prefix[AN_MESSAGE_BYTES];
    AN_TRY(an_load_options_read(ctx, &own, options));
    AN_CHECK(ctx, o->path && o->rename_count >= 0 && (o->renames || !o->rename_count), AN_ERR_ARGUMENT,
             "an_load_options has no path, or no renames");
    AN_CHECK(ctx, !trainer->planned && trainer->next == 0, AN_ERR_STATE,
             "initial weights can only be loaded before the first step");
    prefix_of(o, prefix);
    AN_TRY(an_matching_create(&m, trainer->params));
    m->new_heads = m->other_heads = o->new_heads;
    m->adapter = o->adapter;
    m->accepts[AN_MATCHING_MISSING] = o->accepts_missing;
    m->accepts[AN_MATCHING_UNEXPECTED] = o->accepts_unexpected;
    status =
        o->adapter ? an_matching_open_adapter(m, trainer->graph, o->path) : open_model(m, trainer, o, strlen(prefix));
    if (status == AN_OK) status = an_matching_find(m);
    if (status != AN_OK) AN_FAIL(ctx, status, "%s%s", prefix, an_last_error(ctx));
    AN_TRY(an_matching_check(m, o->path, prefix));
    AN_TRY(an_matching_load(m));
    if (!o->adapter) {
        AN_TRY(an_params_start_magnitudes(trainer->params));
        AN_TRY(keep_base(trainer, o->path));
    }
    an_matching_tell(m, o->path, trainer->graph->adapter.rank > 0);
    AN_TRY(tell_scaling(m, trainer, o->path));
fail:
    an_matching_destroy(&m);
    return status;
}
