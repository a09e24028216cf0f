/* Smoothed curves and the spread of several runs.
 *
 * A point of a smoothed curve is the mean of all points, weighed by exp(-distance ÷ length). Points on both sides
 * count: an average of the past alone would lie above a falling loss. Heights in the picture are averaged, so a
 * logarithmic scale has the mean of the logarithms. The sums of either side are made in one pass, each from that of its
 * neighbour.
 */
#include <math.h>

#include "cli/plot/plot.h"

enum { ENOUGH = 40, PARTS = 100 }; /* points to be smoothed at all; lengths in the width of a picture */
static const double spacing = 1.5; /* pixels between two points of a path */

typedef struct level {
    double x, low, mean, high;
} level;

/* Levels without a gap between them. */
typedef struct stretch {
    level levels[PLOT_MOST_WIDTH];
    int count;
} stretch;

bool plot_curve_is_smoothed(const plot_curve *curve) {
    return curve->count >= ENOUGH;
}

static void write_line(FILE *file, const stretch *s) {
    for (int i = 0; i < s->count; i++)
        fprintf(file, "%c%.1f %.1f", i > 0 ? 'L' : 'M', s->levels[i].x, s->levels[i].mean);
}

static void write_band(FILE *file, const stretch *s) {
    for (int i = 0; i < s->count; i++)
        fprintf(file, "%c%.1f %.1f", i > 0 ? 'L' : 'M', s->levels[i].x, s->levels[i].high);
    for (int i = s->count - 1; i >= 0; i--) fprintf(file, "L%.1f %.1f", s->levels[i].x, s->levels[i].low);
    if (s->count > 0) fputs("z", file);
}

/* A level is kept if it is not too close to the last one. */
static void add_level(stretch *s, level l) {
    if (s->count > 0 && l.x < s->levels[s->count - 1].x + spacing) return;
    if (s->count < PLOT_MOST_WIDTH) s->levels[s->count++] = l;
}

/* A sum of weighed points, in pixels. */
typedef struct sums {
    double low, mean, high, weight;
} sums;

static sums sums_of(const plot_bucket *b, const plot_scale *y) {
    return (sums){plot_scale_place(y, b->lowest.y), plot_scale_place(y, b->sum / (double)b->count),
                  plot_scale_place(y, b->highest.y), 1};
}

static sums add(sums a, sums b, double weight) {
    return (sums){a.low + weight * b.low, a.mean + weight * b.mean, a.high + weight * b.high,
                  a.weight + weight * b.weight};
}

/* The sum of each bucket that has points and of those before it (`step` -1: after it), weighed by their distance. */
static void sum_side(const plot_curve *curve, const plot_scale *y, double length, int step, sums *side) {
    sums sum = {0};
    double before = 0;
    for (int i = step < 0 ? PLOT_BUCKETS - 1 : 0; i >= 0 && i < PLOT_BUCKETS; i += step) {
        const plot_bucket *b = &curve->buckets[i];
        if (b->count == 0) continue;
        const double kept = sum.weight > 0 && length > 0 ? exp(-fabs(b->first.x - before) / length) : 0;
        sum = add(sums_of(b, y), sum, kept);
        before = b->first.x;
        side[i] = sum;
    }
}

static void draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, double length,
                 void (*write)(FILE *file, const stretch *s)) {
    static stretch s;
    static sums past[PLOT_BUCKETS], future[PLOT_BUCKETS];
    sum_side(curve, y, length, 1, past);
    sum_side(curve, y, length, -1, future);
    s.count = 0;
    for (int i = 0; i < PLOT_BUCKETS; i++) {
        const plot_bucket *b = &curve->buckets[i];
        if (b->count == 0 && b->has_gap) {
            write(file, &s);
            s.count = 0;
        }
        if (b->count == 0) continue;
        const sums all = add(add(past[i], future[i], 1), sums_of(b, y), -1); /* the point itself is in both */
        add_level(&s, (level){plot_scale_place(x, b->first.x), all.low / all.weight, all.mean / all.weight,
                              all.high / all.weight});
    }
    write(file, &s);
}

static double length_of(const plot_scale *x) {
    return (x->high - x->low) / PARTS;
}

void plot_smooth_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y,
                      const char *class) {
    if (!curve->buckets) return;
    fprintf(file, "<path class=\"smooth %s\" d=\"", class);
    draw(file, curve, x, y, length_of(x), write_line);
    fputs("\"/>\n", file);
}

void plot_spread_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class,
                      bool smoothed) {
    if (!curve->buckets) return;
    fprintf(file, "<path class=\"band %s\" d=\"", class);
    draw(file, curve, x, y, smoothed && plot_curve_is_smoothed(curve) ? length_of(x) : 0, write_band);
    fputs("\"/>\n", file);
}
