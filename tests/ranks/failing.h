/* A rank whose parts can fail: data that it cannot read, and what it said when a call returned. Each rank has its
 * trainer on a small model, and on samples that are computed. */
#ifndef AN_TESTS_RANKS_FAILING_H
#define AN_TESTS_RANKS_FAILING_H

#include <stdatomic.h>

#include "anneal/run.h"
#include "ranks/threads.h"

enum { FAILING_RANKS = 3, STEPS = 8, SAMPLES = 40, WIDTH = 4, TARGETS = 2 };
#define FOLDER "run-failures"
#define DISK_IS_GONE "the planted disk is gone"

typedef struct {
    an_dataset *training, *evaluation;
    an_graph *graph;
    an_trainer *trainer;
    const char *input; /* its name, if it was taken away */
    atomic_bool training_fails, evaluation_fails;
    int loader_threads;
    bool is_culprit, is_mended;
    /* What came of it. */
    an_status status;
    char message[1024], hash[HASH_TEXT], last_hash[HASH_TEXT];
    int64_t steps;
    long allocations; /* of the call */
    double returned;
} failing_rank;

static failing_rank states[FAILING_RANKS];
static an_shard strategy; /* of the trainers */

static inline failing_rank *state_of(const one_rank *r) {
    return &states[r->comm.rank];
}

/* ---- data, and a trainer on it ---- */

static inline an_status read_samples(int64_t n, const int64_t *indices, void *const *fields, bool fails, char *message,
                                     size_t capacity) {
    if (fails) {
        snprintf(message, capacity, DISK_IS_GONE);
        return AN_ERR_FILE;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < WIDTH; k++)
            ((float *)fields[0])[i * WIDTH + k] = (float)noise((uint64_t)(indices[i] * WIDTH + k));
        for (int k = 0; k < TARGETS; k++) ((float *)fields[1])[i * TARGETS + k] = (float)(indices[i] % 5) / 4;
    }
    return AN_OK;
}

static inline an_status read_training(void *user, int64_t n, const int64_t *indices, void *const *fields, char *message,
                                      size_t capacity) {
    return read_samples(n, indices, fields, ((failing_rank *)user)->training_fails, message, capacity);
}

static inline an_status read_evaluation(void *user, int64_t n, const int64_t *indices, void *const *fields,
                                        char *message, size_t capacity) {
    return read_samples(n, indices, fields, ((failing_rank *)user)->evaluation_fails, message, capacity);
}

static inline an_status make_data(an_dataset **dataset, one_rank *r, bool evaluates) {
    const an_field fields[] = {
        {.size = sizeof *fields, .name = "x", .dims = {WIDTH}, .ndims = 1, .dtype = AN_DTYPE_F32},
        {.size = sizeof *fields, .name = "y", .dims = {TARGETS}, .ndims = 1, .dtype = AN_DTYPE_F32, .target = true}};
    an_dataset_record record;
    an_dataset_record_init(&record, sizeof record);
    record.count = SAMPLES;
    record.fields = fields;
    record.field_count = 2;
    record.read = evaluates ? read_evaluation : read_training;
    record.user = state_of(r);
    return an_dataset_create(dataset, r->ctx, &record);
}

static inline an_status make_trainer(one_rank *r) {
    failing_rank *s = state_of(r);
    an_batch_options batch;
    an_batch_options_init(&batch, sizeof batch);
    batch.micro = 1;
    batch.accumulate = strategy >= AN_SHARD_GRADIENTS ? 4 : 8; /* from there on, a leaf is one micro-batch */
    batch.leaves = 4;
    an_trainer_options options;
    an_trainer_options_init(&options, sizeof options);
    options.steps = STEPS;
    options.seed = 5;
    options.batch = &batch;
    options.loader_threads = s->loader_threads;
    options.shard = strategy;
    return an_trainer_create(&s->trainer, s->graph, s->training, s->evaluation, &options);
}

static inline an_status set_saving(one_rank *r) {
    an_save_options options;
    an_save_options_init(&options, sizeof options);
    options.folder = FOLDER;
    options.every.steps = 2;
    return an_trainer_set_saving(state_of(r)->trainer, &options);
}

/* All that a trainer is made of. */
static inline bool open_data(one_rank *r) {
    failing_rank *s = state_of(r);
    return !rank_failed(r, "graph", small_mlp(&s->graph, r->ctx)) &&
           !rank_failed(r, "data", make_data(&s->training, r, false)) &&
           !rank_failed(r, "evaluation data", make_data(&s->evaluation, r, true));
}

static inline void close_all(failing_rank *s) {
    an_trainer_destroy(&s->trainer);
    an_dataset_destroy(&s->training);
    an_dataset_destroy(&s->evaluation);
    an_graph_destroy(&s->graph);
}

static inline an_status take_steps(const one_rank *r, int64_t count) {
    an_status status = AN_OK;
    for (int64_t i = 0; status == AN_OK && i < count; i++) status = an_trainer_step(state_of(r)->trainer, NULL);
    return status;
}

#endif
