/* Evaluation in parts: every batch has a record of sums, and records are added from left to right. So it does not
 * matter who computed a batch. */
#ifndef AN_TRAIN_EVALUATE_H
#define AN_TRAIN_EVALUATE_H

#include "anneal/train.h"
#include "data/loader.h"

/* What a batch adds to an evaluation, from 0 on. Ranks send it as bytes: every member takes eight. Targets that are
 * numbers are taken relative to the first one, as squares of large numbers would hide how they vary. */
typedef struct an_evaluation_sums {
    double loss;
    int64_t targets, samples, right, right_of_five;
    double absolute, squared;   /* of errors */
    double first, sum, squares; /* of targets */
    double margin;              /* of rewards */
} an_evaluation_sums;

int64_t an_evaluation_samples(const an_trainer *t); /* of one evaluation */
int64_t an_evaluation_micro(const an_trainer *t);   /* … that are evaluated at a time */
int64_t an_evaluation_batches(const an_trainer *t);
/* The first batch of a rank, and of the rank after the last one the number of batches. */
int64_t an_evaluation_first_batch(const an_trainer *t, int rank);
/* The most batches of a rank: t->evaluation_sums has room for them. */
int64_t an_evaluation_most_batches(const an_trainer *t);

/* The options of the loader that reads the batches of this rank. */
an_loader_options an_evaluation_loader(an_trainer *t);

/* What evaluation compares, found once in the plan. */
void an_evaluation_find(an_trainer *t);

/* An evaluation that a request to stop ends: *stopped, and then nothing else is set. */
an_status an_evaluate_until(an_trainer *t, an_evaluation *evaluation, bool *stopped);

#endif
