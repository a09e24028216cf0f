/* What a trainer holds beside parameters and program, for its plan. What was made before the plan is measured; what is made after
 * it says how large it will be, so that a plan without a run has the same numbers. */
#include "train/trainer.h"

static bool add_parts(an_trainer *t, size_t *bytes) {
    const an_loader_options loader = an_trainer_loader(t);
    return an_optimizer_bytes(&t->plan->sizes, t->graph->parameter_count, bytes) &&
           an_stepper_bytes(t->plan->model, t->batches.leaves, bytes) &&
           (!t->evaluation || an_sample_buffer_bytes(t->evaluation, t->batches.micro, bytes)) &&
           an_add_elements(bytes, t->output_count, sizeof *t->output_values) &&
           an_add_elements(bytes, (size_t)t->batches.global, sizeof *t->numbers) &&
           (!t->sample_mean || an_add_elements(bytes, (size_t)t->batches.micro, sizeof *t->weights)) &&
           (t->streams || an_loader_bytes(&loader, bytes));
}

an_status an_trainer_count(an_trainer *t) {
    an_context *ctx = t->ctx;
    size_t bytes = t->held;
    if (!add_parts(t, &bytes))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW,
                        "batch: the samples of a step do not fit in memory: make batch.global smaller");
    return an_plan_count_trainer(t->plan, bytes);
}
