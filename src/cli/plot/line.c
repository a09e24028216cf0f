/* A curve as paths. */
#include <math.h>
#include <string.h>

#include "cli/plot/plot.h"

/* ---- few points: a line through all of them ---- */

typedef struct pen {
    FILE *file;
    const plot_scale *x, *y;
    bool is_down;
} pen;

static void move_pen(pen *p, plot_point point) {
    /* A point alone is a line of length 0, whose round ends make a dot. */
    fprintf(p->file, "%s%.1f %.1f%s", p->is_down ? "L" : "M", plot_scale_place(p->x, point.x),
            plot_scale_place(p->y, point.y), p->is_down ? "" : "h0");
    p->is_down = true;
}

static void write_points(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y) {
    pen p = {.file = file, .x = x, .y = y};
    plot_point points[4];
    for (int i = 0; i < PLOT_BUCKETS; i++) {
        const int count = plot_bucket_points(&curve->buckets[i], points);
        for (int k = 0; k < count; k++) move_pen(&p, points[k]);
        if (curve->buckets[i].has_gap) p.is_down = false;
    }
}

/* ---- many: the mean of every column of pixels, in a band from the lowest to the highest ---- */

enum { COLUMN = 3, MOST_COLUMNS = PLOT_MOST_WIDTH / COLUMN + 1 }; /* pixels of a column */

typedef struct columns {
    plot_bucket all[MOST_COLUMNS];
    int count;
} columns;

static void gather(columns *c, const plot_curve *curve, const plot_scale *x) {
    memset(c, 0, sizeof *c);
    for (int i = 0; i < PLOT_BUCKETS; i++) {
        const plot_bucket *b = &curve->buckets[i];
        if (b->count == 0 && !b->has_gap) continue;
        const double step = b->count > 0 ? b->first.x : ldexp((double)(curve->start + i), curve->shift);
        const int at = (int)((plot_scale_place(x, step) - x->from) / COLUMN);
        if (at < 0 || at >= MOST_COLUMNS) continue;
        plot_bucket_merge(&c->all[at], b);
        if (at >= c->count) c->count = at + 1;
    }
}

/* From `begin` to the next column that has nothing but gaps, or to the end. */
static int end_of_stretch(const columns *c, int begin) {
    while (begin < c->count && (c->all[begin].count > 0 || !c->all[begin].has_gap)) begin++;
    return begin;
}

static double middle_of(const plot_scale *x, int column) {
    return fmin(x->from + (column + 0.5) * COLUMN, x->to);
}

static void write_band(FILE *file, const columns *c, int begin, int end, const plot_scale *x, const plot_scale *y) {
    char command = 'M';
    for (int i = begin; i < end; i++) {
        if (c->all[i].count == 0) continue;
        fprintf(file, "%c%.1f %.1f", command, middle_of(x, i), plot_scale_place(y, c->all[i].highest.y));
        command = 'L';
    }
    for (int i = end - 1; i >= begin; i--)
        if (c->all[i].count > 0) fprintf(file, "L%.1f %.1f", middle_of(x, i), plot_scale_place(y, c->all[i].lowest.y));
    if (command == 'L') fputs("z", file);
}

static void write_means(FILE *file, const columns *c, int begin, int end, const plot_scale *x, const plot_scale *y) {
    char command = 'M';
    for (int i = begin; i < end; i++) {
        const plot_bucket *b = &c->all[i];
        if (b->count == 0) continue;
        fprintf(file, "%c%.1f %.1f", command, middle_of(x, i), plot_scale_place(y, b->sum / (double)b->count));
        command = 'L';
    }
}

/* Whether a curve has more points than pixels, on the way from its first step to its last. */
bool plot_curve_is_dense(const plot_curve *curve, const plot_scale *x) {
    const double pixels = plot_scale_place(x, (double)curve->maximum) - plot_scale_place(x, (double)curve->minimum);
    return curve->count > COLUMN && (double)curve->count > pixels;
}

static void write_dots(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *kind,
                       const char *class) {
    plot_point points[4];
    fprintf(file, "<path class=\"%s%s%s\" d=\"", kind, *class ? " " : "", class);
    for (int i = 0; i < PLOT_BUCKETS; i++) {
        const int count = plot_bucket_points(&curve->buckets[i], points);
        for (int k = 0; k < count; k++)
            fprintf(file, "M%.1f %.1fh0", plot_scale_place(x, points[k].x), plot_scale_place(y, points[k].y));
    }
    fputs("\"/>\n", file);
}

static void write_columns(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y,
                          const char *kind, const char *class,
                          void (*write)(FILE *, const columns *, int, int, const plot_scale *, const plot_scale *)) {
    static columns c;
    gather(&c, curve, x);
    fprintf(file, "<path class=\"%s %s\" d=\"", kind, class);
    for (int at = 0, end; at < c.count; at = end + 1) {
        end = end_of_stretch(&c, at);
        write(file, &c, at, end, x, y);
    }
    fputs("\"/>\n", file);
}

static void write_line(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *kind,
                       const char *class) {
    fprintf(file, "<path class=\"%s %s\" d=\"", kind, class);
    write_points(file, curve, x, y);
    fputs("\"/>\n", file);
}

void plot_line_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class) {
    enum { FEW = 12 }; /* points that are marked, since a line alone does not show where they are */
    if (!curve->buckets) return;
    if (plot_curve_is_dense(curve, x)) {
        write_columns(file, curve, x, y, "band", class, write_band);
        write_columns(file, curve, x, y, "line", class, write_means);
        return;
    }
    write_line(file, curve, x, y, "line", class);
    if (curve->count <= FEW) write_dots(file, curve, x, y, "small", class);
}

void plot_raw_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class) {
    if (!curve->buckets) return;
    if (plot_curve_is_dense(curve, x))
        write_columns(file, curve, x, y, "band", class, write_band);
    else
        write_line(file, curve, x, y, "raw", class);
}

void plot_dots_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class) {
    static const double apart = 4, far_apart = 14; /* pixels: closer dots would be a thick line; these may be larger */
    const double each = fabs(x->to - x->from) / (double)curve->count;
    if (!curve->buckets) return;
    write_line(file, curve, x, y, "dashed", class);
    if (each < apart) return;
    if (each >= far_apart) write_dots(file, curve, x, y, "halo", ""); /* sets them off from the lines below */
    write_dots(file, curve, x, y, each < far_apart ? "small" : "dots", class);
}
