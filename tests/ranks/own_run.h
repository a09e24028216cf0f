/* A run of a program's own on several ranks: an MLP that classifies samples which note who reads them. Every rank
 * makes it for itself, and may be told to make it otherwise. */
#ifndef AN_TESTS_RANKS_OWN_RUN_H
#define AN_TESTS_RANKS_OWN_RUN_H

#include <stdatomic.h>

#include "anneal/models.h"
#include "anneal/ranks.h"
#include "ranks/threads.h"

enum { INPUTS = 4, CLASSES = 3, TRAINING = 37, EVALUATION = 29 }; /* neither number divides by 2 or 3 */

/* ---- data ---- */

typedef struct {
    bool masked, alike;          /* two of five samples have no target; all of them have the same numbers */
    atomic_int reads[TRAINING];  /* by sample */
    int64_t order[4 * TRAINING]; /* samples as they were read */
    int64_t read;
} own_source;

static inline float own_input(const own_source *s, int64_t sample, int k) {
    if (s->alike) return (float)(k + 1) / 4;
    return (float)((sample * 7 + k) % CLASSES - 1) + (float)(sample * (k + 3) % 11 - 5) / 4;
}

static an_status own_read(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                          size_t message_capacity) {
    own_source *s = user;
    (void)message, (void)message_capacity;
    for (int64_t i = 0; i < n; i++) {
        const int64_t sample = indices[i];
        atomic_fetch_add(&s->reads[sample], 1);
        if (s->read < 4 * TRAINING) s->order[s->read++] = sample;
        for (int k = 0; k < INPUTS; k++) ((float *)fields[0])[i * INPUTS + k] = own_input(s, sample, k);
        ((int32_t *)fields[1])[i] =
            s->masked && sample % 5 < 2 ? AN_TARGET_IGNORED : (int32_t)(s->alike ? 1 : sample * 7 % CLASSES);
    }
    return AN_OK;
}

/* ---- runs ---- */

typedef struct own_run {
    own_source training_source, evaluation_source;
    an_graph *graph;
    an_dataset *training, *evaluation;
    an_trainer *trainer;
} own_run;

typedef struct own_choices {
    an_mlp_options model;
    an_trainer_options options;
    an_batch_options batch;
    an_optimizer_options optimizer;
    an_schedule_options schedule;
    bool masked, alike, has_schedule;
} own_choices;

static inline own_choices own_usual(void) {
    static const int64_t widths[] = {6, 5};
    own_choices c = {.options = {DEFAULTS(an_trainer_options)},
                     .batch = {.size = sizeof c.batch, .global = 8, .leaves = 8},
                     .optimizer = {DEFAULTS(an_optimizer_options)},
                     .schedule = {DEFAULTS(an_schedule_options)}};
    an_mlp_options_init(&c.model, sizeof c.model);
    c.model.inputs = INPUTS;
    c.model.outputs = CLASSES;
    c.model.hidden = widths;
    c.model.hidden_count = 2;
    c.options.epochs = 2;
    c.options.seed = 11;
    c.options.rate = 1e-2;
    return c;
}

static inline an_status own_dataset(an_dataset **dataset, an_context *ctx, own_source *source, int64_t count) {
    const an_field fields[] = {
        {.size = sizeof *fields, .name = "x", .dtype = AN_DTYPE_F32, .ndims = 1, .dims = {INPUTS}},
        {.size = sizeof *fields, .name = "targets", .dtype = AN_DTYPE_I32, .target = true}};
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    record.count = count;
    record.field_count = 2;
    record.fields = fields;
    record.read = own_read;
    record.user = source;
    return an_dataset_create(dataset, ctx, &record);
}

static inline void own_destroy(own_run *o) {
    an_trainer_destroy(&o->trainer);
    an_graph_destroy(&o->graph);
    an_dataset_destroy(&o->training);
    an_dataset_destroy(&o->evaluation);
}

/* What was read so far was only compared between ranks. */
static inline an_status own_create(own_run *o, an_context *ctx, own_choices c) {
    memset(o, 0, sizeof *o);
    o->training_source.masked = o->evaluation_source.masked = c.masked;
    o->training_source.alike = c.alike;
    c.options.batch = &c.batch;
    c.options.optimizer = &c.optimizer;
    if (c.has_schedule) c.options.schedule = &c.schedule;
    an_status status = own_dataset(&o->training, ctx, &o->training_source, TRAINING);
    if (status == AN_OK) status = own_dataset(&o->evaluation, ctx, &o->evaluation_source, EVALUATION);
    if (status == AN_OK) status = an_model_mlp(&o->graph, ctx, &c.model);
    if (status == AN_OK) status = an_trainer_create(&o->trainer, o->graph, o->training, o->evaluation, &c.options);
    memset(o->training_source.reads, 0, sizeof o->training_source.reads);
    memset(o->evaluation_source.reads, 0, sizeof o->evaluation_source.reads);
    o->training_source.read = o->evaluation_source.read = 0;
    return status;
}

static inline bool own_is_done(const own_run *o) {
    return an_trainer_next_step(o->trainer) == an_trainer_steps(o->trainer);
}

#endif
