/* Evaluation in parts: every batch has a record of sums, and records are added from left to right. So it does not
 * matter who computed a batch. */
#ifndef AN_TRAIN_EVALUATION_EVALUATE_H
#define AN_TRAIN_EVALUATION_EVALUATE_H

#include "anneal/train.h"
#include "data/loader.h"
#include "store/state_record.h"
#include "train/evaluation/details.h"
#include "train/feed.h"

/* What a batch adds to an evaluation, from 0 on. Ranks send it as bytes: every member takes eight. Targets that are
 * numbers are taken relative to the first one, as squares of large numbers would hide how they vary. */
typedef struct an_evaluation_sums {
    double loss;
    int64_t targets, samples, right, right_of_five;
    double absolute, squared;   /* of errors */
    double first, sum, squares; /* of targets */
    double margin;              /* of rewards */
} an_evaluation_sums;

/* Evaluations of a trainer. */
typedef struct an_evaluator {
    an_dataset *data; /* NULL: there are none */
    an_feed feed;
    struct an_loader *loader; /* of the batches of an evaluation */
    int64_t count;            /* samples of an evaluation, at most; 0: all */
    int64_t micro;            /* that are evaluated at a time; 0: default_micro */
    int64_t default_micro;
    bool shows_average;       /* evaluations and predictors use the moving average of the weights */
    an_evaluation_sums *sums; /* of each batch of this rank */
    int64_t sums_count;       /* for which there is room */
    an_evaluation last;       /* samples 0: there was none */
    unsigned metrics;         /* that are reported, by their numbers in metrics.c; 0: those that are of use */
    int own_metric_count;     /* metrics of the program: those that the context had when the trainer was made */
    bool measuring;           /* one of them is being asked */
    an_own_metrics measured;  /* their values in the last evaluation */
    const char *output;       /* what evaluation compares with the targets; NULL: nothing does */
    double *output_values;    /* a micro-batch of it */
    size_t output_count;
    bool classifies;
    bool prefers;      /* the program gives the rewards of pairs of answers */
    bool counts_right; /* the program counts targets that are predicted right: there is no output to compare */
    int64_t classes;   /* that the output tells apart; 0: it is no numbers for classes */
    int64_t labels;    /* whose logits the output has, each by itself; 0: it is no such model */
    an_details details;
    bool keeps_scores; /* of two classes, or of labels, in the details */
    unsigned asked_details;
} an_evaluator;

int64_t an_evaluation_samples(const an_trainer *t); /* of one evaluation */
int64_t an_evaluation_micro(const an_trainer *t);   /* … that are evaluated at a time */
int64_t an_evaluation_batches(const an_trainer *t);
/* The first batch of a rank, and of the rank after the last one the number of batches. */
int64_t an_evaluation_first_batch(const an_trainer *t, int rank);
/* The most batches of a rank: t->evaluator.sums has room for them. */
int64_t an_evaluation_most_batches(const an_trainer *t);

/* The options of the loader that reads the batches of this rank. */
an_loader_options an_evaluation_loader(an_trainer *t);

/* What evaluation compares, found once in the plan. */
void an_evaluation_find(an_trainer *t);

/* An evaluation that a request to stop ends: *stopped, and then nothing else is set. */
an_status an_evaluate_until(an_trainer *t, an_evaluation *evaluation, bool *stopped);

#endif
