/* The curve of a learning-rate range test: the loss at each rate, smoothed, and the rate that it proposes. */
#ifndef AN_CLI_FIND_LR_CURVE_H
#define AN_CLI_FIND_LR_CURVE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FIND_LR_PARTS = 20,    /* smoothing averages over about one of so many parts of the range, */
    FIND_LR_DIVERGED = 4,  /* and a loss of so many times the lowest one ends the test */
    FIND_LR_LEAST = 40,    /* steps: a part has at least two */
    FIND_LR_MOST = 1 << 20 /* steps: more would be a whole training run */
};

typedef struct find_lr_point {
    double rate, loss, smoothed;
} find_lr_point;

typedef struct find_lr_curve {
    find_lr_point *points;
    int count, capacity;
    int lowest;       /* the point with the lowest smoothed loss */
    int reach;        /* points on either side that a slope is taken over */
    double smoothing; /* weight of the past in the exponential average */
    double average, weight;
} find_lr_curve;

/* For a test of so many steps. False: out of memory. */
bool find_lr_curve_create(find_lr_curve *curve, int64_t steps);
void find_lr_curve_destroy(find_lr_curve *curve);

/* Adds the loss of the next step, which is finite. False: the smoothed loss exceeds FIND_LR_DIVERGED times its
 * lowest value. */
bool find_lr_curve_add(find_lr_curve *curve, double rate, double loss);

/* The point where the smoothed loss falls fastest, by the logarithm of the rate, before its lowest value. A slope is
 * taken over a tenth of the range, since the losses of single steps are noisy. -1: the loss does not fall, or by no
 * more than noise would explain. */
int find_lr_curve_propose(const find_lr_curve *curve);

#endif
