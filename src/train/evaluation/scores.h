/* Scores of targets of two classes, and what their order says: the ROC curve and the area under it. */
#ifndef AN_TRAIN_EVALUATION_SCORES_H
#define AN_TRAIN_EVALUATION_SCORES_H

#include "anneal/details.h"

/* Every score of an evaluation is kept, as no summary of bounded size has the exact area: 1 GiB. */
#define AN_MOST_SCORES ((int64_t)1 << 27)

typedef struct an_scores {
    double *values; /* class 1 from the front, class 0 from the back */
    int64_t room, positive, negative;
    bool undefined; /* one of them is not a number */
} an_scores;

void an_scores_clear(an_scores *scores);
void an_scores_add(an_scores *scores, bool is_positive, double score);
/* Rank 0 receives those of all ranks. Collective. */
an_status an_scores_gather(an_scores *scores, an_trainer *t);
/* Sorts each class, highest first. */
void an_scores_sort(an_scores *scores);

/* Of sorted scores: the probability that a target of class 1 has a higher score than one of class 0, with half of the
 * equal ones. NaN if a class has no targets. */
double an_scores_area(const an_scores *scores);
/* Of sorted scores, both classes being there: an_trainer_roc. */
int64_t an_scores_curve(const an_scores *scores, int64_t capacity, an_roc_point *points);

#endif
