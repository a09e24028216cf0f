/* What formulas of schedules share. */
#ifndef AN_STEP_SCHEDULES_SHAPES_H
#define AN_STEP_SCHEDULES_SHAPES_H

#include "anneal/optimizer.h"
#include "base/elementary/elementary.h"

static const double an_schedule_pi = 3.14159265358979323846;

/* Where u stands on the way from 0 to 1; a run that goes on stays at the end. */
static inline double an_schedule_progress(int64_t u, int64_t length) {
    return length <= 0 || u >= length ? 1 : (double)u / (double)length;
}

static inline double an_schedule_above(double minimum, double share) {
    return minimum + (1 - minimum) * share;
}

static inline double an_schedule_half_cosine(double p) {
    return (1 + an_cos_f64(an_schedule_pi * p)) / 2;
}

/* Which period a step is in, as long as their borders are given; *u then counts from its beginning. */
static inline int an_schedule_period_at(const an_schedule_options *o, int64_t *u) {
    int low = 0, high = o->border_count; /* so many borders are at or before u */
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (o->borders[middle] <= *u)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0) *u -= o->borders[low - 1];
    return low;
}

#endif
