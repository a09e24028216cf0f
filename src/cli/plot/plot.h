/* What the files of anneal plot share: curves, scales, runs. */
#ifndef AN_CLI_PLOT_PLOT_H
#define AN_CLI_PLOT_PLOT_H

#include <stdio.h>
#include <sys/types.h>

#include "cli/main/cli.h"

/* ---- curves ---- */

typedef struct plot_point {
    double x, y;
} plot_point;

/* A stretch of steps, and what is drawn of the points in it. */
typedef struct plot_bucket {
    int64_t count;
    double sum; /* of y */
    plot_point first, last, lowest, highest;
    bool has_gap; /* a number in it was not finite */
} plot_bucket;

/* Any number of points in bounded memory: stretches become twice as long whenever there are too many of them. */
enum { PLOT_BUCKETS = 8192 };

typedef struct plot_curve {
    plot_bucket *buckets;     /* NULL: no number has come yet */
    int64_t start;            /* number of the first bucket: that of a step is step >> shift */
    int shift;                /* a bucket is 2^shift steps long */
    int64_t minimum, maximum; /* steps seen */
    int64_t count;            /* of points */
    plot_point end;           /* that of the last step */
    plot_point lowest, highest;
} plot_curve;

/* Adds a point; y that cannot be drawn (NaN) is a gap. False: there is no memory. */
bool plot_curve_add(plot_curve *curve, int64_t step, double y);
void plot_curve_free(plot_curve *curve);
/* Adds the points of another curve; the mean of all points at each step. False: out of memory. */
bool plot_curve_merge(plot_curve *into, const plot_curve *from);
bool plot_curve_means(const plot_curve *of, plot_curve *means);
/* The first step of a bucket. */
int64_t plot_bucket_step(const plot_curve *curve, int index);

/* Adds the points of one bucket to another. */
void plot_bucket_merge(plot_bucket *into, const plot_bucket *from);
/* The at most four points of a bucket in their order; their number. */
int plot_bucket_points(const plot_bucket *bucket, plot_point points[4]);

/* ---- scales ---- */

typedef struct plot_scale {
    double low, high; /* values at the ends, */
    double from, to;  /* and their pixels */
    bool is_log;
} plot_scale;

typedef struct plot_tick {
    double value;
    char text[24];
} plot_tick;

enum { PLOT_MOST_TICKS = 24 };

double plot_scale_place(const plot_scale *scale, double value);
/* Round values, about as many as `parts`; their number. */
int plot_scale_ticks(const plot_scale *scale, int parts, plot_tick ticks[PLOT_MOST_TICKS]);
/* Ticks of whole numbers, written as 1,000,000. */
int plot_scale_whole_ticks(const plot_scale *scale, int parts, plot_tick ticks[PLOT_MOST_TICKS]);

/* ---- runs ---- */

/* What is drawn of a line of metrics. Any other key is left out, so that counts and times of a later
 * version do not become panels. */
typedef enum plot_metric {
    PLOT_LOSS,
    PLOT_LR,
    PLOT_GRAD_NORM,
    PLOT_VAL_LOSS,
    PLOT_ACCURACY,
    PLOT_VAL_ACCURACY,
    PLOT_VAL_TOP5,
    PLOT_VAL_F1,
    PLOT_VAL_PRECISION,
    PLOT_VAL_RECALL,
    PLOT_VAL_AUC,
    PLOT_VAL_MAE,
    PLOT_VAL_R2,
    PLOT_METRICS
} plot_metric;

typedef struct plot_run {
    char *path;   /* of its metrics */
    char *name;   /* as it was given, without what all have */
    dev_t device; /* of the file, so that it is not written over */
    ino_t inode;
    int64_t first_step, last_step; /* -1: it has none */
    plot_curve curves[PLOT_METRICS];
    char *config;                     /* its config.yaml; NULL: there is none */
    int seeds;                        /* runs that are drawn as this one, at least 1; curves are their means, */
    plot_curve spreads[PLOT_METRICS]; /* and these have the points of all; empty if there is one */
} plot_run;

/* Reads a run's folder, or a file of metrics. CLI_DONE, or CLI_FAILED after a message. */
int plot_run_read(const cli_call *call, const char *argument, plot_run *run);
/* Whether the configs of two runs differ only in the seed and the folder. */
bool plot_run_is_seed_of(const plot_run *run, const plot_run *of);
/* Adds a run that is another seed of the same config. False: out of memory. */
bool plot_run_add_seed(plot_run *run, const plot_run *seed);
/* The means of all seeds, after the last was added. False: out of memory. */
bool plot_run_finish(plot_run *run);
void plot_run_free(plot_run *run);

/* ---- the page ---- Also that of find-lr. */

enum { PLOT_MOST_RUNS = 12, PLOT_LEAST_WIDTH = 640, PLOT_MOST_WIDTH = 4000 };

/* The width of a letter in pixels, on the generous side. */
extern const double plot_letter;
/* The names are its title for readers of screens. Lines and bands have the classes r0, r1, … of its colors. */
void plot_page_begin(FILE *file, int width, int height, const char *const *names, int name_count, int color_count);
void plot_page_end(FILE *file);
void plot_page_text(FILE *file, double x, double y, const char *class, const char *text);
/* The end of a text that is too long, since paths differ there. */
void plot_page_shorten(const char *text, double room, char *out, size_t capacity);

/* ---- the picture ---- */

/* Whether it has more points than there are pixels for it. */
bool plot_curve_is_dense(const plot_curve *curve, const plot_scale *x);
/* A metric of every step, in one of the classes of the style sheet: a line through its points, or, where it is dense,
 * their mean in a band from the lowest to the highest. */
void plot_line_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class);
/* The same behind a smoothed line: pale, and without the mean. */
void plot_raw_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class);
/* Whether a curve has enough points to be smoothed. */
bool plot_curve_is_smoothed(const plot_curve *curve);
/* The mean of neighbouring points, over about a fiftieth of the picture. */
void plot_smooth_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class);
/* A band from the lowest to the highest of several runs at each step; smoothed in the same way if there are enough
 * steps and it is asked for. */
void plot_spread_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class,
                      bool smoothed);
/* One of some steps: dots on a dashed line. */
void plot_dots_draw(FILE *file, const plot_curve *curve, const plot_scale *x, const plot_scale *y, const char *class);

void plot_draw(FILE *file, const plot_run *runs, int run_count, int width);

#endif
