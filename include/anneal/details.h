/* Details of an evaluation: counts by class, the ROC curve, and errors by output.
 *
 * A trainer keeps them if an_trainer_options.details (or an_open_options.details) asks for them. These functions return
 * the details of the trainer's last evaluation. AN_ERR_STATE: there was none, or the trainer does not keep these
 * details. None of them is collective.
 */
#ifndef ANNEAL_DETAILS_H
#define ANNEAL_DETAILS_H

#include "anneal/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ==== simple ==== what most programs need */

/* ---- classes ---- */

/* One class of an evaluation. A share of nothing is 0: the precision of a class that was never predicted, the recall of
 * a class that has no targets, and the F1 of a class with neither. (scikit-learn calls this zero_division=0.) */
typedef struct an_class_metrics {
    size_t size;
    int64_t targets;   /* targets of this class */
    int64_t predicted; /* targets for which the model predicted this class */
    int64_t right;     /* targets of this class for which the model predicted it */
    double precision;  /* right / predicted */
    double recall;     /* right / targets */
    double f1;         /* 2 · right / (targets + predicted) */
} an_class_metrics;
AN_API void an_class_metrics_init(an_class_metrics *metrics, size_t size);

/* The number of classes that are counted; 0: the trainer counts none. */
AN_API int64_t an_trainer_class_count(const an_trainer *trainer);
AN_API an_status an_trainer_class_metrics(const an_trainer *trainer, int64_t index, an_class_metrics *metrics);

/* ---- labels ---- A sample may have any number of them, if the model's loss is binary cross entropy. */

/* One label of an evaluation. It is predicted if its probability is above one half. A share of nothing is 0, as with
 * classes. */
typedef struct an_label_metrics {
    size_t size;
    int64_t samples;
    int64_t targets;   /* samples that have the label */
    int64_t predicted; /* samples for which it was predicted */
    int64_t right;     /* samples that have the label and for which it was predicted */
    double accuracy;   /* share of all samples that are predicted right, with the label and without it */
    double precision;  /* right / predicted */
    double recall;     /* right / targets */
    double f1;         /* 2 · right / (targets + predicted) */
    double auc; /* area under the ROC curve; NaN without AN_DETAIL_SCORES, or if all or no samples have the label */
} an_label_metrics;
AN_API void an_label_metrics_init(an_label_metrics *metrics, size_t size);

/* The number of labels that are counted, with AN_DETAIL_CLASSES or AN_DETAIL_SCORES; 0: the trainer counts none. */
AN_API int64_t an_trainer_label_count(const an_trainer *trainer);
AN_API an_status an_trainer_label_metrics(const an_trainer *trainer, int64_t index, an_label_metrics *metrics);

/* ---- outputs of a model that predicts numbers ---- */

typedef struct an_output_metrics {
    size_t size;
    double mean_absolute_error;
    double root_mean_squared_error;
    double r2; /* 0 if all targets of the output are equal */
} an_output_metrics;
AN_API void an_output_metrics_init(an_output_metrics *metrics, size_t size);

/* The number of outputs that are measured: the last dimension of the targets; 0: the trainer measures none, as with
 * several ranks. */
AN_API int64_t an_trainer_output_count(const an_trainer *trainer);
AN_API an_status an_trainer_output_metrics(const an_trainer *trainer, int64_t index, an_output_metrics *metrics);

/* ==== details ==== the rest of the interface */

/* ---- confusion matrix ---- */

/* An element of the confusion matrix: how many targets of class `target` were predicted as class `predicted`. */
AN_API an_status an_trainer_confusion(const an_trainer *trainer, int64_t target, int64_t predicted, int64_t *count);

/* ---- the ROC curve of two classes ---- */

/* A point of the curve: the rates if class 1 is predicted for every score of at least `threshold`. A score is the
 * output for class 1 minus the output for class 0. This struct never grows. */
typedef struct an_roc_point {
    double false_rate; /* share of the targets of class 0 that is predicted as class 1 */
    double true_rate;  /* share of the targets of class 1 that is predicted as class 1 */
    double threshold;  /* infinity for the first point, at (0, 0) */
} an_roc_point;

/* Writes at most `capacity` points of the curve, 2 or more, from (0, 0) to (1, 1); a longer curve is sampled at even
 * distances along it. *count is the number of points. Only rank 0 has the curve. AN_ERR_STATE also if a class has no
 * targets, or an output was not a number. */
AN_API an_status an_trainer_roc(const an_trainer *trainer, int64_t capacity, an_roc_point *points, int64_t *count);

#ifdef __cplusplus
}
#endif
#endif
