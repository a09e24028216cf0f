/* Kernels of ops/loss.c. Every loss is a sum over its targets, in the compute type, added in the order of
 * reduce_order.h: over rows for cross-entropy, over elements in C order for the others. */
#ifndef AN_KERNELS_LOSS_LOSS_H
#define AN_KERNELS_LOSS_LOSS_H

#include "kernels/common/list.h"

typedef struct an_cross_entropy_attributes {
    int64_t ignored;        /* the label that does not count */
    double label_smoothing; /* in [0, 1]: the share of a target that is spread over all classes */
    double focal; /* γ of (1 - p)^γ, which the loss of a target is multiplied by, p being its probability; 0: nothing */
} an_cross_entropy_attributes;

typedef struct an_huber_error_attributes {
    double delta; /* where the square ends and the line begins */
} an_huber_error_attributes;

/* Whether an input that may be absent is there. */
static inline bool an_call_has(const an_call *call, int input) {
    return call->src_count > input && call->src[input].dtype != AN_DTYPE_NONE;
}

/* (logits, targets, weights) → loss, log-sum-exp of each row (0 for an ignored row, whose logits are not read). A
 * label that is neither a class nor ignored is an error. Weights, which may be absent, have the first
 * dimensions of the targets. */
AN_DECLARE_KERNELS(cross_entropy);
/* For kernels that run these on chunks: with a loss of one number for each row, those are not added; labels can be
 * checked before anything is written. */
#define an_cross_entropy_check AN_LEVELED(an_cross_entropy_check)
an_status an_cross_entropy_check(an_context *ctx, const an_tensor *targets, int64_t classes, int64_t ignored);
/* (diff_dst, logits, targets, log-sum-exp, weights) → diff_logits */
AN_DECLARE_KERNELS(cross_entropy_diff);

typedef struct an_count_right_attributes {
    int64_t ignored; /* the label that does not count */
} an_count_right_attributes;

/* (logits, targets) → i64: how many targets have the largest logit of their row. Of equal logits the first is the
 * largest. A row with a NaN has no largest one, and no label that is not a class is counted. */
AN_DECLARE_KERNELS(count_right);

#define AN_ERROR_LOSSES(X) X(squared_error) X(absolute_error) X(huber_error) X(binary_cross_entropy)

/* (src, targets, weights) → loss; (diff_dst, src, targets, weights) → diff_src */
#define DECLARE(op)         \
    AN_DECLARE_KERNELS(op); \
    AN_DECLARE_KERNELS(op##_diff);
AN_ERROR_LOSSES(DECLARE)
#undef DECLARE

#endif
