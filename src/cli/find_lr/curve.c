#include "cli/find_lr/curve.h"

#include <math.h>
#include <stdlib.h>

static const double settled = 0.8; /* weight of what was added to an average */

bool find_lr_curve_create(find_lr_curve *curve, int64_t steps) {
    *curve = (find_lr_curve){
        .points = calloc((size_t)steps, sizeof *curve->points),
        .capacity = (int)steps,
        .reach = (int)steps / FIND_LR_PARTS,
        .smoothing = 1 - FIND_LR_PARTS / (double)steps,
    };
    return curve->points != NULL;
}

void find_lr_curve_destroy(find_lr_curve *curve) {
    free(curve->points);
    *curve = (find_lr_curve){0};
}

bool find_lr_curve_add(find_lr_curve *curve, double rate, double loss) {
    if (curve->count == curve->capacity) return false;
    find_lr_point *point = &curve->points[curve->count];
    /* The average begins at 0; dividing by the weight of what was added so far takes that out. */
    curve->average = curve->smoothing * curve->average + (1 - curve->smoothing) * loss;
    curve->weight = curve->smoothing * curve->weight + (1 - curve->smoothing);
    *point = (find_lr_point){rate, loss, curve->average / curve->weight};
    /* An average of a few losses is as noisy as they are: a lucky first batch would be the lowest one for ever. */
    const bool settles = curve->weight < settled;
    if (settles || point->smoothed < curve->points[curve->lowest].smoothed) curve->lowest = curve->count;
    curve->count++;
    const double lowest = curve->points[curve->lowest].smoothed;
    return settles || lowest <= 0 ||
           point->smoothed <= FIND_LR_DIVERGED * lowest; /* multiples of a negative loss mean nothing */
}

/* What the difference of two smoothed losses exceeds by chance about once in 700 times. The noise of a step is
 * estimated from the differences of neighbours, in which a slow trend hardly counts; an average with weight b keeps
 * (1 - b) ÷ (1 + b) of its variance. */
static double noise_of(const find_lr_curve *curve) {
    enum { SIGMAS = 3 };
    const find_lr_point *points = curve->points;
    const int end = curve->lowest > curve->count / 2 ? curve->lowest : curve->count / 2; /* too few would say little */
    double squares = 0;
    for (int i = 0; i < end; i++)
        squares += (points[i + 1].loss - points[i].loss) * (points[i + 1].loss - points[i].loss);
    const double variance = end > 0 ? squares / end / 2 : 0;
    return SIGMAS * sqrt(2 * variance * (1 - curve->smoothing) / (1 + curve->smoothing));
}

int find_lr_curve_propose(const find_lr_curve *curve) {
    const find_lr_point *points = curve->points;
    double steepest = noise_of(curve);
    int best = -1;
    /* Rates are evenly spaced by their logarithms, so differences of losses compare as slopes do. The first
     * losses are averages of few. */
    for (int i = 2 * curve->reach; i + curve->reach <= curve->lowest; i++) {
        const double fall = points[i - curve->reach].smoothed - points[i + curve->reach].smoothed;
        if (fall <= steepest) continue;
        steepest = fall;
        best = i;
    }
    return best;
}
