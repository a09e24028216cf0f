/* What a trainer owns, and what it reports. */
#include <string.h>

#include "anneal/checkpoint.h"
#include "anneal/train.h"
#include "base/guard.h"
#include "train/structs.h"
#include "train/trainer.h"

/* ---- what belongs to it ---- */

an_status an_trainer_keep_text(an_trainer *t, char **field, const char *text) {
    an_context *ctx = t->ctx;
    an_string_release(ctx, field);
    if (!text) return AN_OK;
    const size_t bytes = strlen(text) + 1;
    AN_TRY_RETURN(an_alloc(ctx, (void **)field, bytes, 1));
    memcpy(*field, text, bytes);
    return AN_OK;
}

an_status an_trainer_add_note(an_trainer *trainer, const char *lines) {
    AN_NEED(trainer, lines);
    an_trainer *t = trainer;
    an_status status;
    an_context *ctx = t->ctx;
    an_text notes;
    an_text_init(&notes, ctx);
    an_text_add(&notes, "%s%s", t->room.notes ? t->room.notes : "", lines);
    AN_TRY(notes.status);
    AN_TRY(an_trainer_keep_text(t, &t->room.notes, notes.bytes));
    status = AN_OK;
fail:
    an_text_destroy(&notes);
    return status;
}

int64_t an_trainer_user_step(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->record.progress.has_user_step ? trainer->record.progress.user_step : 0;
}

const char *an_trainer_notes(const an_trainer *trainer) {
    AN_NEED_OR("", trainer);
    return trainer->room.notes ? trainer->room.notes : "";
}

/* ---- asking it ---- */

int64_t an_trainer_steps(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->steps;
}

int64_t an_trainer_next_step(const an_trainer *trainer) {
    AN_NEED_OR(0, trainer);
    return trainer->next;
}

an_params *an_trainer_params(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->params;
}

an_program *an_trainer_program(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->program;
}

const an_dataset *an_trainer_data(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->samples.data;
}

an_plan *an_trainer_plan(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->plan;
}

an_graph *an_trainer_graph(an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->graph;
}

int64_t an_trainer_tokens(const an_trainer *t) {
    an_field field;
    an_field_init(&field, sizeof field);
    if (!t->samples.data || an_dataset_field(t->samples.data, 0, &field) != AN_OK) return 1;
    return field.ndims == 1 && field.dtype == AN_DTYPE_I32 ? field.dims[0] : 1;
}

an_status an_trainer_info_get(const an_trainer *trainer, an_trainer_info *info) {
    AN_GUARD;
    AN_NEED(trainer, info);
    const an_trainer *t = trainer;
    an_context *ctx = t->ctx;
    an_graph_info graph;
    an_graph_info_init(&graph, sizeof graph);
    AN_TRY_RETURN(an_graph_info_get(t->graph, &graph));
    an_trainer_info own = {
        .parameters = an_graph_parameter_elements(t->graph),
        .samples = t->samples.streams ? 0 : t->samples.batches.samples,
        .evaluation_samples = t->evaluator.data ? an_evaluation_samples(t) : 0,
        .tokens = an_trainer_tokens(t),
        .steps = t->steps,
        .epoch_steps = t->samples.streams ? 0 : an_batches_epoch_steps(&t->samples.batches, 0),
        .global = t->samples.batches.global,
        .micro = t->samples.batches.micro,
        .evaluation_micro = t->evaluator.data ? an_evaluation_micro(t) : 0,
        .leaves = t->samples.batches.leaves,
        .together = t->cut.together,
        .recompute = t->room.recompute,
        .dtype = graph.dtype,
        .precision = t->precision,
        .loader_threads = t->samples.threads,
        .rate = t->stepper ? t->stepper->options.rate : 0,
    };
    if (!t->samples.streams) {
        own.epochs = an_batches_epochs(&t->samples.batches, t->steps);
        own.min_micro = an_batches_least_micro(&t->samples.batches, t->steps);
        an_batches_epoch_range(&t->samples.batches, t->steps, &own.min_epoch_steps, &own.max_epoch_steps);
    }
    return an_trainer_info_write(ctx, info, &own);
}

const an_groups *an_trainer_groups(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->groups;
}

const an_schedule *an_trainer_schedule(const an_trainer *trainer) {
    AN_NEED_OR(NULL, trainer);
    return trainer->schedule;
}
