/* Curves in bounded memory. */
#include <math.h>
#include <stdlib.h>

#include "cli/plot/plot.h"

void plot_bucket_merge(plot_bucket *into, const plot_bucket *from) {
    const bool has_gap = into->has_gap || from->has_gap;
    if (into->count == 0) {
        *into = *from;
    } else if (from->count > 0) {
        into->count += from->count;
        into->sum += from->sum;
        if (from->first.x < into->first.x) into->first = from->first;
        if (from->last.x >= into->last.x) into->last = from->last;
        if (from->lowest.y < into->lowest.y) into->lowest = from->lowest;
        if (from->highest.y > into->highest.y) into->highest = from->highest;
    }
    into->has_gap = has_gap;
}

int plot_bucket_points(const plot_bucket *bucket, plot_point points[4]) {
    const bool rises = bucket->lowest.x < bucket->highest.x;
    const plot_point all[] = {bucket->first, rises ? bucket->lowest : bucket->highest,
                              rises ? bucket->highest : bucket->lowest, bucket->last};
    int count = 0;
    if (bucket->count == 0) return 0;
    for (int i = 0; i < 4; i++)
        if (count == 0 || all[i].x > points[count - 1].x) points[count++] = all[i];
    return count;
}

/* Puts the buckets where steps from least to most are in the middle half. So the next time comes only when the steps
 * have spread by half of that, and a million of them, in any order, take few such turns. */
static bool widen(plot_curve *curve) {
    plot_bucket *buckets = calloc(PLOT_BUCKETS, sizeof *buckets);
    int shift = curve->shift;
    if (!buckets) return false;
    while ((curve->maximum >> shift) - (curve->minimum >> shift) >= PLOT_BUCKETS / 2) shift++;
    const int64_t used = (curve->maximum >> shift) - (curve->minimum >> shift);
    const int64_t start = (curve->minimum >> shift) - (PLOT_BUCKETS - used) / 2;
    for (int64_t i = 0; curve->buckets && i < PLOT_BUCKETS; i++) {
        const plot_bucket *from = &curve->buckets[i];
        if (from->count == 0 && !from->has_gap) continue;
        plot_bucket_merge(&buckets[((curve->start + i) >> (shift - curve->shift)) - start], from);
    }
    free(curve->buckets);
    curve->buckets = buckets;
    curve->start = start;
    curve->shift = shift;
    return true;
}

static void note(plot_curve *curve, const plot_bucket *b) {
    if (b->count == 0) return;
    if (curve->count == 0 || b->last.x >= curve->end.x) curve->end = b->last;
    if (curve->count == 0 || b->lowest.y < curve->lowest.y) curve->lowest = b->lowest;
    if (curve->count == 0 || b->highest.y > curve->highest.y) curve->highest = b->highest;
    curve->count += b->count;
}

/* Adds what has come at a step, or at steps that begin there. */
static bool add_bucket(plot_curve *curve, int64_t step, const plot_bucket *bucket) {
    if (!curve->buckets || step < curve->minimum) curve->minimum = step;
    if (!curve->buckets || step > curve->maximum) curve->maximum = step;
    int64_t place = (step >> curve->shift) - curve->start;
    if ((!curve->buckets || place < 0 || place >= PLOT_BUCKETS) && !widen(curve)) return false;
    place = (step >> curve->shift) - curve->start;
    note(curve, bucket);
    plot_bucket_merge(&curve->buckets[place], bucket);
    return true;
}

bool plot_curve_add(plot_curve *curve, int64_t step, double y) {
    const plot_point p = {(double)step, y};
    const plot_bucket one = {.count = 1, .sum = y, .first = p, .last = p, .lowest = p, .highest = p};
    const plot_bucket gap = {.has_gap = true};
    return add_bucket(curve, step, isnan(y) ? &gap : &one);
}

int64_t plot_bucket_step(const plot_curve *curve, int index) {
    const plot_bucket *b = &curve->buckets[index];
    return b->count > 0 ? (int64_t)b->first.x : (int64_t)ldexp((double)(curve->start + index), curve->shift);
}

bool plot_curve_merge(plot_curve *into, const plot_curve *from) {
    bool good = true;
    for (int i = 0; from->buckets && good && i < PLOT_BUCKETS; i++)
        if (from->buckets[i].count > 0 || from->buckets[i].has_gap)
            good = add_bucket(into, plot_bucket_step(from, i), &from->buckets[i]);
    return good;
}

bool plot_curve_means(const plot_curve *of, plot_curve *means) {
    bool good = true;
    for (int i = 0; of->buckets && good && i < PLOT_BUCKETS; i++) {
        const plot_bucket *b = &of->buckets[i];
        if (b->count > 0 || b->has_gap)
            good = plot_curve_add(means, plot_bucket_step(of, i), b->count > 0 ? b->sum / (double)b->count : NAN);
    }
    return good;
}

void plot_curve_free(plot_curve *curve) {
    free(curve->buckets);
    *curve = (plot_curve){0};
}
