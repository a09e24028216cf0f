/* A model in training: everything that a run is made of. */
#ifndef AN_TRAIN_TRAINER_H
#define AN_TRAIN_TRAINER_H

#include <stdatomic.h>

#include "anneal/checkpoint.h"
#include "anneal/train.h"
#include "comm/forest.h"
#include "data/augment.h"
#include "data/batches.h"
#include "data/loader.h"
#include "step/step.h"
#include "store/manifest.h"
#include "train/evaluation/details.h"
#include "train/evaluation/evaluate.h"
#include "train/feed.h"
#include "train/sharding.h"

enum { AN_HISTORY = 10 };

/* Objects that a trainer destroys with itself (trainer_info.c). */
typedef struct an_belongings {
    struct an_owned {
        void *object;
        void (*destroy)(void *object);
    } * list; /* the last one is destroyed first */
    size_t count, capacity;
} an_belongings;

/* Parameters whose gradients have a norm together (norms.c). */
typedef struct an_norm_parts {
    int count;
    const char **names; /* in the graph's memory */
    int *part_of;       /* of each parameter; -1: it is frozen */
    size_t parameter_count;
} an_norm_parts;

/* Training samples on their way to the program: which a step takes, who reads and changes them (trainer_step.c,
 * step_on.c, changes.h, running.h). */
typedef struct an_training_samples {
    an_dataset *data;
    an_feed feed;
    an_batches batches;
    an_augment augment;
    struct an_loader *loader;       /* NULL: they are a stream */
    bool streams;                   /* they come from the caller */
    int threads;                    /* of loaders */
    int64_t *numbers, number_count; /* of this rank's samples of a step, in the run */
    struct an_running *running;     /* means and scales of a stream; NULL: they stay as they are */
    struct an_handed *handed;       /* copies of samples that the caller gave; NULL: none yet */
} an_training_samples;

/* How a step is cut (default_leaves.h). */
typedef struct an_step_cut {
    bool chooses;       /* the number of leaves is not settled yet */
    int64_t below;      /* leaves that fewer ranks would have chosen; 0: as many */
    an_leaf_set leaves; /* of this rank */
    int64_t together;   /* the most leaves of a micro-batch */
    int64_t *ends;      /* [together] */
} an_step_cut;

/* What targets weigh in the loss (loss_weights.h, means.c). */
typedef struct an_weighing {
    bool sample_mean;       /* a sample's loss is divided by its own targets */
    int64_t most_targets;   /* with it: of a sample of the step */
    double *weights;        /* of the targets of a micro-batch, and of those mixed with them; NULL: none */
    int64_t *class_weights; /* as loss_weights.h has them; NULL: none */
    int64_t class_weight_count;
    bool mixes_classes; /* a sample has a second class, its partner's */
    int field;          /* of the training data: weights of samples; -1: none */
    double factor;      /* times which they are at most 1 */
} an_weighing;

/* Memory that was planned, and what is done to need less (memory_room.h). */
typedef struct an_memory_room {
    an_recompute recompute;
    bool chooses_recompute;
    char *notes; /* what there is to say before the first step, a line each; NULL: nothing */
    size_t held; /* bytes of what was made before the plan, and of the plan */
} an_memory_room;

/* How checkpoints will be written, as the plan must know. */
typedef struct an_saving {
    bool expected;   /* the plan has the copy that they need */
    bool directly;   /* … without a copy, for want of memory, while training waits */
    int64_t writers; /* files of a checkpoint that are written at a time */
} an_saving;

/* The weights to which the model has an adapter (init.c). */
typedef struct an_adapted {
    char *path;       /* what they were read from; NULL: nothing */
    uint64_t hash[2]; /* of these weights, once it is known */
    bool has_hash;
} an_adapted;

/* What a run says of itself: in checkpoints (capture.c), hashes (hash.c) and messages (nonfinite.h). */
typedef struct an_run_record {
    an_run_facts facts;      /* what the next step's record says of this rank, and the last one's of all */
    int64_t bits_since;      /* the step after which the run began to compute as it does now; 0: it always did */
    char *kernels;           /* that are not the usual ones, as an_plan_forced_kernels has them; NULL: none */
    uint64_t chain[2];       /* hash over the numbers of every step so far */
    uint64_t fingerprint[2]; /* of the data */
    an_progress progress;    /* what of it is not asked of the parts: evaluations, the best, the last step */
    an_step_metrics history[AN_HISTORY]; /* the last steps, by number */
    int64_t history_count;
} an_run_record;

/* A request that the run ends after the step under way. */
typedef struct an_stop_request {
    atomic_bool stop;
    /* Sets it if somebody asks from outside; NULL: no run is under way. */
    void (*poll)(struct an_trainer *t);
} an_stop_request;

struct an_run;

struct an_trainer {
    an_context *ctx;
    int rank, ranks; /* of those that train this model together */
    an_graph *graph;
    an_dtype precision;
    int64_t steps, next;
    uint64_t seed;
    bool planned;      /* only: there are no weights */
    bool broken;       /* part of a checkpoint was loaded, and the rest could not be */
    bool plain;        /* one that others are compared with: f32, nothing fused */
    int64_t max_skips; /* so many skipped steps in a row are an error */

    an_training_samples samples;
    an_step_cut cut;
    an_weighing weighing;
    an_division division;
    an_memory_room room;
    an_saving saving;
    an_adapted adapted;
    an_run_record record;
    an_stop_request request;
    an_norm_parts norms;
    an_evaluator evaluator;
    an_belongings belongings;
    struct an_run *run; /* the whole run that it belongs to, which src/run knows; NULL: there is none yet */
    void (*destroy_run)(an_trainer *trainer);

    an_groups *groups;
    an_params *params;
    an_plan *plan;
    an_program *program;
    an_optimizer *optimizer;
    an_schedule *schedule;
    an_stepper *stepper;
};

/* The plan of the graph, with everything that the trainer holds counted in it. */
an_status an_trainer_make_plan(an_trainer *t, const an_trainer_options *options);
/* Makes the trainer a plan's for another rank: everything is counted for that one. */
an_status an_trainer_count_rank(an_trainer *t, int rank);
/* Frees what counting keeps from rank to rank. */
void an_trainer_end_counting(an_trainer *t);
void an_trainer_drop_plan(an_trainer *t); /* for another one */
/* Pages that the rank updates. */
int64_t an_trainer_own_pages(const an_trainer *t);

/* Adds numbers, at most AN_MOST_CHAINED, to the hash over every step so far. */
enum { AN_MOST_CHAINED = 32 };
void an_trainer_chain(an_trainer *t, const double *numbers, int count);
/* Counts the step that was taken, and fills in what its metrics say of the epoch (epochs.c). */
void an_epochs_count(an_trainer *t, an_step_metrics *metrics);
/* The mean of a sum of losses; NaN where all steps were skipped. */
double an_epochs_mean(double loss, int64_t targets);

/* ---- the state of a run, for checkpoints ---- */

void an_progress_capture(const an_trainer *t, an_progress *progress);
void an_progress_restore(an_trainer *t, const an_progress *progress);
/* Of a new run that begins with the tensors of another one: only what belongs to them. */
void an_progress_restart(an_trainer *t, const an_progress *progress);
/* What a checkpoint says of the adapter and its base. The hash is made when it is first asked for: O(bytes of the
 * base). */
an_status an_adapter_get(an_trainer *t, an_saved_adapter *saved);
void an_bits_get(const an_trainer *t, an_bits *bits);
void an_prediction_get(const an_trainer *t, an_saved_prediction *prediction);
/* {"step": 250, "loss": …, "val_loss": …}: of the last step and the last evaluation. */
an_status an_trainer_metrics_text(const an_trainer *t, char **text);
/* What the trainer's data is: how many samples, and a few of them. Reads three of each dataset. Asks for the
 * fingerprint of the kernels as well, as checkpoints have both. */
an_status an_fingerprint_make(an_trainer *t);

/* ---- what belongs to it ---- */

an_status an_trainer_keep_text(an_trainer *t, char **field, const char *text); /* a copy in *field; NULL: none */

/* Whether samples have weights in the loss, and how many there is room for. */
static inline bool an_trainer_weighs(const an_trainer *t) {
    return t->weighing.sample_mean || t->weighing.class_weight_count > 0 || t->weighing.mixes_classes ||
           t->weighing.field >= 0;
}
static inline size_t an_trainer_weight_count(const an_trainer *t) {
    return (size_t)t->samples.batches.micro * (t->weighing.mixes_classes ? 2 : 1);
}

/* Whether ranks gather weights whenever a program runs: then all of them must run it. */
static inline bool an_trainer_gathers(const an_trainer *t) {
    return t->division.shards && t->division.pieces.sharding >= AN_SHARD_FULL;
}

/* Whether the trainer may be changed now, and not inside a metric of the program's; `what` is for the message:
 * "step". */
an_status an_trainer_check_idle(const an_trainer *t, const char *what);
/* Whether there is one to take, and `metrics` (may be NULL) can be written. */
an_status an_trainer_check_step(const an_trainer *t, const an_step_metrics *metrics);
/* One step on samples that are there; t->samples.numbers has room for as many. With a status other than AN_OK, as
 * an_trainer_step_or_fail. */
an_status an_trainer_take(an_trainer *t, an_status status, const an_batch *samples, an_step_metrics *metrics);
/* an_trainer_step for a rank that may have failed already: then it takes part with its error, and all ranks
 * return that. Collective. */
an_status an_trainer_step_or_fail(an_trainer *t, an_status status, an_step_metrics *metrics);
/* Gives the program samples at … at + count - 1 of this rank's part of a step. */
an_status an_trainer_feed(an_trainer *t, const an_batch *samples, int64_t at, int64_t count);
/* With sample_mean: counts what the loss of a step is divided by; and, in a step that has begun, sets it from
 * the counts of all ranks. */
an_status an_means_count(an_trainer *t, const an_batch *samples, an_step_counts *counts);
an_status an_means_begin(an_trainer *t, const an_step_counts *counts);
void an_handed_destroy(an_trainer *t);

an_status an_norms_make(an_trainer *t, an_norms norms);
void an_norms_destroy(an_trainer *t);

/* Tokens in a training sample; 1 where it is not made of tokens. */
int64_t an_trainer_tokens(const an_trainer *t);

/* The options of the loader that the trainer makes. */
an_loader_options an_trainer_loader(an_trainer *t);

#endif
