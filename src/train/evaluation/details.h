/* What an evaluation keeps beyond its sums: how often which class was predicted for which, the scores of two classes,
 * and errors by output.
 *
 * Counts are integers, and scores are sorted, so both are the same however samples are divided among ranks. */
#ifndef AN_TRAIN_EVALUATION_DETAILS_H
#define AN_TRAIN_EVALUATION_DETAILS_H

#include "anneal/details.h"
#include "train/evaluation/scores.h"

/* The confusion matrix has the square of this, and every rank sends it: 8 MB. */
enum { AN_MOST_COUNTED = 1000, AN_MOST_OUTPUTS = 4096 };

/* Errors of one output. Targets are taken relative to the first one, as squares of large numbers
 * would hide how they vary. */
typedef struct an_output_sums {
    double first, absolute, squared, sum, squares;
} an_output_sums;

typedef struct an_details {
    int64_t classes;         /* that are counted; 0: none */
    int64_t labels;          /* that are counted, each by itself; 0: none. A model has classes or labels */
    int64_t *confusion;      /* [target][predicted], of labels [label][target][predicted] */
    int64_t *received;       /* with several ranks: that of another one */
    an_scores scores;        /* room 0: none are kept. Of labels it owns the memory of all */
    an_scores *label_scores; /* by label */
    double *areas;           /* under the ROC curve, by label */
    int64_t outputs;         /* that are measured; 0: none */
    int64_t samples;         /* that they have seen */
    an_output_sums *sums;
    bool complete; /* they are those of a whole evaluation */
} an_details;

/* What the trainer keeps, of what is asked for: bits of an_detail. Known after an_evaluation_find. */
void an_details_find(an_trainer *t, unsigned asked);
/* Why a trainer cannot keep `detail` of a model that classifies, as the end of "this model cannot compute
 * 'x': it …"; NULL: it could. */
const char *an_details_reason(const an_trainer *t, an_detail detail);

bool an_details_bytes(const an_trainer *t, size_t *bytes); /* adds what an_details_create takes */
an_status an_details_create(an_trainer *t);
void an_details_destroy(an_trainer *t);

void an_details_begin(an_trainer *t);
/* A target that counts, with the model's numbers for all classes. */
void an_details_add_class(an_trainer *t, int64_t target, const double *numbers);
/* Whether a sample has a label, and the model's logit for it. */
void an_details_add_label(an_trainer *t, int64_t label, bool target, double logit);
/* A sample's target and the model's number for one output. */
void an_details_add_value(an_trainer *t, int64_t output, double target, double number);
/* After all samples. Adds up those of all ranks: collective. */
an_status an_details_end(an_trainer *t, an_evaluation *evaluation);

#endif
