#include "train/changes.h"

#include "data/mixup.h"

/* ---- what is possible ---- */

/* Only the loss of one class a sample is mixed; numbers are. */
static an_status check_model(an_trainer *t) {
    const an_result *targets = an_graph_result(t->graph, t->graph->targets);
    if (!an_augment_mixes(&t->samples.augment)) return AN_OK;
    if (!targets)
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT, "augment: mixup needs a model with targets, and this one has none");
    t->weighing.mixes_classes = an_dtype_is_index(targets->dtype);
    if (t->weighing.mixes_classes && t->weighing.sample_mean)
        return AN_ERROR(t->ctx, AN_ERR_ARGUMENT,
                        "mixup and a mean over samples exclude each other: both weigh the samples of a step");
    return AN_OK;
}

an_status an_changes_check(an_trainer *t, const an_trainer_options *options) {
    an_context *ctx = t->ctx;
    AN_TRY_RETURN(an_augment_make(&t->samples.augment, ctx, t->samples.data, options->augment));
    return check_model(t);
}

/* ---- samples of a step ---- */

static uint64_t epoch_of(const an_trainer *t, int64_t step) {
    return (uint64_t)an_batches_at(&t->samples.batches, step).epoch;
}

static an_mix mix_of(const an_trainer *t, uint64_t epoch, int64_t sample) {
    return an_mix_draw(t->samples.augment.options.mixup, t->seed, epoch, sample, t->samples.batches.samples);
}

void an_changes_partners(void *user, int64_t step, int64_t n, const int64_t *indices, int64_t *partners) {
    const an_trainer *t = user;
    const uint64_t epoch = epoch_of(t, step);
    for (int64_t i = 0; i < n; i++) partners[i] = mix_of(t, epoch, indices[i]).partner;
}

int64_t an_changes_share(const an_trainer *t, const an_batch *batch, int64_t index) {
    if (!batch->partners) return AN_MIX_WHOLE; /* the program's own sample */
    return mix_of(t, epoch_of(t, batch->number), batch->indices[index]).share;
}

static void change_images(const an_trainer *t, uint64_t epoch, int64_t n, const int64_t *indices, void *images,
                          void *scratch) {
    const size_t bytes = an_augment_bytes(&t->samples.augment);
    for (int64_t i = 0; i < n; i++)
        an_augment_image(&t->samples.augment, t->seed, epoch, (uint64_t)indices[i],
                         (float *)(void *)((char *)images + (size_t)i * bytes), scratch);
}

/* Every field of numbers; classes, and weights of samples, are mixed in the loss. */
static void mix(const an_trainer *t, const an_batch *b) {
    for (int64_t i = 0; i < b->part.n; i++) {
        const int64_t share = an_changes_share(t, b, i);
        for (int f = 0; f < t->samples.data->record.field_count; f++) {
            const an_dtype dtype = t->samples.data->fields[f].dtype;
            const size_t bytes = t->samples.data->bytes[f], at = (size_t)i * bytes;
            if (an_dtype_is_float(dtype) && f != t->weighing.field)
                an_mix_blend(dtype, (int64_t)(bytes / an_dtype_size(dtype)), share, (char *)b->fields[f] + at,
                             (const char *)b->partner_fields[f] + at);
        }
    }
}

/* A partner is changed as it is itself in this epoch. The caller's floating-point environment is not here: threads of
 * the loader were started without it. */
void an_changes_make(void *user, const an_batch *b, void *scratch) {
    const an_trainer *t = user;
    const uint64_t epoch = epoch_of(t, b->number);
    if (an_augment_changes_images(&t->samples.augment)) {
        change_images(t, epoch, b->part.n, b->indices, b->fields[0], scratch);
        if (b->partners) change_images(t, epoch, b->part.n, b->partners, b->partner_fields[0], scratch);
    }
    if (b->partners) mix(t, b);
}
