/* Means of the training loss: over the epoch, and since the last line of metrics.jsonl. A checkpoint has their sums,
 * so a resumed run goes on with them. */
#include <math.h>

#include "train/trainer.h"

double an_epochs_mean(double loss, int64_t targets) {
    return targets > 0 ? loss / (double)targets : (double)NAN;
}

void an_epochs_count(an_trainer *t, an_step_metrics *metrics) {
    an_progress *p = &t->record.progress;
    if (!t->samples.streams) {
        const an_step_batch step = an_batches_at(&t->samples.batches, t->next - 1),
                            next = an_batches_at(&t->samples.batches, t->next);
        if (step.epoch_step == 0) {
            p->epoch_loss = 0;
            p->epoch_targets = 0;
        }
        metrics->epoch = step.epoch + 1;
        metrics->ends_epoch = next.epoch > step.epoch;
    }
    if (!metrics->skipped) { /* its loss need not be finite */
        const double loss = metrics->loss * (double)metrics->targets;
        p->epoch_loss += loss;
        p->line_loss += loss;
        p->epoch_targets += metrics->targets;
        p->line_targets += metrics->targets;
    }
    if (!t->samples.streams) metrics->epoch_loss = an_epochs_mean(p->epoch_loss, p->epoch_targets);
}
