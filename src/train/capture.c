/* The state of a run as numbers: what a checkpoint stores besides the tensors. */
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/context.h"
#include "base/isa.h"
#include "data/tables/encoding.h"
#include "train/evaluation/metrics.h"
#include "train/kernel_fingerprint.h"
#include "train/trainer.h"

void an_progress_capture(const an_trainer *t, an_progress *progress) {
    const an_stepper *s = t->stepper;
    *progress = t->record.progress;
    progress->steps = t->steps;
    progress->schedule_steps = t->schedule ? t->schedule->options.steps : t->steps;
    progress->step = t->next;
    progress->updates = an_optimizer_updates(t->optimizer);
    progress->schedule_step = s->step;
    progress->taken = s->steps;
    progress->skips = s->skips;
    progress->skips_in_row = s->skips_in_row;
    progress->scale = s->scaler.scale;
    progress->good_steps = s->scaler.good_steps;
    memcpy(progress->chain, t->record.chain, sizeof t->record.chain);
}

/* The corrections of the moments are those of all updates that they come from, and an average that has begun goes
 * on. */
void an_progress_restart(an_trainer *t, const an_progress *progress) {
    an_optimizer_set_updates(t->optimizer, progress->updates);
    t->params->average.begun = t->params->average.flat && progress->updates > 0;
}

void an_progress_restore(an_trainer *t, const an_progress *progress) {
    an_stepper *s = t->stepper;
    t->record.progress = *progress;
    t->record.progress.last.skips = progress->skips;
    t->next = progress->step;
    an_progress_restart(t, progress);
    s->step = progress->schedule_step;
    s->steps = progress->taken;
    s->skips = progress->skips;
    s->skips_in_row = progress->skips_in_row;
    s->scaler.scale = progress->scale;
    s->scaler.good_steps = progress->good_steps;
    memcpy(t->record.chain, progress->chain, sizeof t->record.chain);
    if (t->samples.loader) an_loader_seek(t->samples.loader, t->next);
}

void an_bits_get(const an_trainer *t, an_bits *bits) {
    *bits = (an_bits){.leaves = t->samples.batches.leaves,
                      .since = t->record.bits_since,
                      .kernels = t->record.kernels ? t->record.kernels : ""};
    snprintf(bits->isa, sizeof bits->isa, "%s", an_isa_name(an_context_isa(t->ctx)));
    snprintf(bits->onednn, sizeof bits->onednn, "%s", an_onednn_version());
    snprintf(bits->anneal, sizeof bits->anneal, "%s", an_version());
    an_hash_write(bits->fingerprint, t->ctx->kernel_fingerprint);
    snprintf(bits->precision, sizeof bits->precision, "%s", an_dtype_name(t->precision));
}

an_status an_adapter_get(an_trainer *t, an_saved_adapter *saved) {
    *saved = (an_saved_adapter){.adapter = t->graph->adapter, .base = t->adapted.path ? t->adapted.path : ""};
    if (saved->adapter.rank == 0) return AN_OK;
    if (!t->adapted.has_hash) AN_TRY_RETURN(an_base_hash(t->params, t->adapted.hash));
    t->adapted.has_hash = true;
    memcpy(saved->hash, t->adapted.hash, sizeof saved->hash);
    return AN_OK;
}

void an_prediction_get(const an_trainer *t, an_saved_prediction *prediction) {
    _Static_assert((int)AN_MAX_FEED_SYMBOLS <= (int)AN_SAVED_SIZES, "a checkpoint has the size of every symbol");
    *prediction = (an_saved_prediction){
        .is_known = true, .f32_storage = t->plan->passes.f32_storage, .size_count = t->samples.feed.symbol_count};
    for (int i = 0; i < t->samples.feed.symbol_count; i++)
        prediction->sizes[i] =
            (an_saved_size){.symbol = t->samples.feed.symbols[i], .value = t->samples.feed.values[i]};
}

/* ---- metrics ---- */

an_status an_trainer_metrics_text(const an_trainer *t, char **text) {
    an_status status;
    an_context *ctx = t->ctx;
    an_text made;
    const char *name;
    double value;
    an_text_init(&made, ctx);
    an_json_writer json = an_text_json(&made, AN_JSON_FLAT);
    an_json_write_object(&json, NULL);
    an_json_write_integer(&json, "step", t->next);
    if (t->record.progress.last.step) {
        an_json_write_real(&json, "loss", t->record.progress.last.loss);
        an_json_write_real(&json, "lr", t->record.progress.last.rate);
        an_json_write_real(&json, "grad_norm", t->record.progress.last.norm);
    }
    for (int i = 0; t->record.progress.evaluation.samples && (name = an_trainer_metric(t, i)); i++)
        if (an_metric_get(&t->record.progress.evaluation, &t->record.progress.own, name, &value))
            an_json_write_real(&json, name, value);
    an_json_write_finish(&json);
    AN_TRY(an_text_take(&made, text));
    return AN_OK;
fail:
    an_text_destroy(&made);
    return status;
}

/* ---- the data ---- */

/* The first, the middle and the last sample, as they are read. */
static an_status add_samples(XXH3_state_t *state, an_context *ctx, an_dataset *dataset) {
    an_status status;
    an_sample_buffer b = {0};
    const int64_t count = an_dataset_count(dataset);
    const int64_t looked_at[] = {0, count / 2, count - 1};
    enum { LOOKED_AT = sizeof looked_at / sizeof *looked_at };
    XXH3_128bits_update(state, &count, sizeof count);
    if (count == 0) return AN_OK;
    AN_TRY(an_sample_buffer_create(&b, ctx, dataset, LOOKED_AT));
    memcpy(b.indices, looked_at, sizeof looked_at);
    AN_TRY(an_dataset_read(dataset, LOOKED_AT, b.indices, b.fields));
    for (int f = 0; f < b.field_count; f++) XXH3_128bits_update(state, b.fields[f], LOOKED_AT * b.bytes[f]);
    status = AN_OK;
fail:
    an_sample_buffer_destroy(&b, ctx);
    return status;
}

/* What the numbers of the samples mean. Numbers of a table that are what the file has mean themselves. */
static an_status add_encoding(XXH3_state_t *state, an_context *ctx, const an_dataset *dataset) {
    const an_encoding *encoding = an_dataset_encoding(dataset);
    char *text = NULL;
    if (!encoding || an_encoding_is_plain(encoding)) return AN_OK;
    AN_TRY_RETURN(an_encoding_write(encoding, &text));
    XXH3_128bits_update(state, text, strlen(text));
    an_string_release(ctx, &text);
    return AN_OK;
}

/* The samples of a stream are the caller's own, and another time others. */
an_status an_fingerprint_make(an_trainer *t) {
    an_status status;
    an_context *ctx = t->ctx;
    uint64_t kernels[2];
    XXH3_state_t *state = XXH3_createState();
    AN_CHECK(ctx, state, AN_ERR_MEMORY, "out of memory: a hash cannot be computed");
    XXH3_128bits_reset(state);
    AN_TRY(an_kernel_fingerprint(ctx, kernels));
    if (t->samples.data && !t->samples.streams) AN_TRY(add_samples(state, ctx, t->samples.data));
    if (t->evaluator.data) AN_TRY(add_samples(state, ctx, t->evaluator.data));
    if (t->samples.data && !t->samples.streams) AN_TRY(add_encoding(state, ctx, t->samples.data));
    const XXH128_hash_t hash = XXH3_128bits_digest(state);
    t->record.fingerprint[0] = hash.low64;
    t->record.fingerprint[1] = hash.high64;
    status = AN_OK;
fail:
    XXH3_freeState(state);
    return status;
}
