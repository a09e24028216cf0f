/* The picture: a legend, and panels below each other that share one axis of steps. */
#include <math.h>
#include <string.h>

#include "cli/plot/plot.h"

enum {
    LEFT = 68,
    RIGHT = 28,
    TITLE = 38,       /* the line that it stands on */
    ROW = 19,         /* of the legend */
    PANEL_TITLE = 40, /* from a panel's upper end to its frame */
    AXIS = 52,        /* labels of the axis of steps */
};

enum { NONE = -1 };

typedef struct panel {
    int line; /* a metric of every step; NONE: there is none */
    int dots; /* one of evaluations, dots on a dashed line; NONE: there is none */
    int height;
    int parts; /* of the scale, at most */
    const char *title, *note;
    bool always;   /* it is shown even if no run has the metric */
    bool smooth;   /* noisy: pale, with a smoothed line above it */
    bool is_share; /* at most 1 */
    bool from_zero;
    double log_from; /* a range with more decades gets a logarithmic scale; INFINITY: never */
} panel;

/* Perplexity is e^loss: its panel would show the same curve again. */
static const panel panels[] = {
    {PLOT_LOSS, PLOT_VAL_LOSS, 300, 8, "loss", "mean over a step's targets", true, true, false, false, 2},
    {PLOT_ACCURACY, PLOT_VAL_ACCURACY, 150, 6, "accuracy", "", false, true, true, false, INFINITY},
    {NONE, PLOT_VAL_TOP5, 110, 5, "top-5 accuracy", "", false, false, true, false, INFINITY},
    {NONE, PLOT_VAL_F1, 110, 5, "F1", "mean over classes", false, false, true, false, INFINITY},
    {NONE, PLOT_VAL_PRECISION, 110, 5, "precision", "mean over classes", false, false, true, false, INFINITY},
    {NONE, PLOT_VAL_RECALL, 110, 5, "recall", "mean over classes", false, false, true, false, INFINITY},
    {NONE, PLOT_VAL_AUC, 110, 5, "area under the ROC curve", "", false, false, true, false, INFINITY},
    {NONE, PLOT_VAL_MAE, 110, 5, "mean absolute error", "", false, false, false, false, 2},
    {NONE, PLOT_VAL_R2, 110, 5, "R²", "", false, false, false, false, INFINITY},
    {PLOT_LR, NONE, 110, 5, "learning rate", "", true, false, false, true, INFINITY},
    {PLOT_GRAD_NORM, NONE, 150, 6, "gradient norm", "before clipping", true, true, false, false, 0},
};
enum { PANELS = sizeof panels / sizeof *panels };

typedef struct picture {
    FILE *file;
    const plot_run *runs;
    int run_count;
    int width, height;
    plot_scale x;
    plot_tick ticks[PLOT_MOST_TICKS];
    int tick_count;
} picture;

/* ---- head ---- */

/* Four digits; nothing where there is no number. */
static cli_text number_of(const plot_curve *curve, double value) {
    cli_text out = {""};
    if (curve->count == 0) return out;
    snprintf(out.text, sizeof out.text, "%#.4g", value);
    char *last = out.text + strlen(out.text) - 1;
    if (*last == '.') *last = 0;
    return out;
}

/* "runs/a", or "runs/a, 3 seeds" */
static void name_run(const plot_run *run, double room, char *text, size_t capacity) {
    char seeds[32] = "", name[256];
    if (run->seeds > 1) snprintf(seeds, sizeof seeds, ", %d seeds", run->seeds);
    plot_page_shorten(run->name, room - plot_letter * (double)strlen(seeds), name, sizeof name);
    snprintf(text, capacity, "%s%s", name, seeds);
}

/* What the one run has come to, as a sentence. */
static void write_summary(const picture *p) {
    const plot_run *run = p->runs;
    const plot_curve *loss = &run->curves[PLOT_LOSS], *dots = &run->curves[PLOT_VAL_LOSS];
    const plot_curve *accuracy = &run->curves[PLOT_VAL_ACCURACY];
    char text[320];
    size_t at = (size_t)snprintf(text, sizeof text, "step %s", cli_count(run->last_step).text);
    if (loss->count > 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "  ·  loss %s", number_of(loss, loss->end.y).text);
    if (dots->count > 0)
        at += (size_t)snprintf(text + at, sizeof text - at, "  ·  val_loss %s  ·  best val_loss %s at step %s",
                               number_of(dots, dots->end.y).text, number_of(dots, dots->lowest.y).text,
                               cli_count((int64_t)dots->lowest.x).text);
    if (accuracy->count > 0)
        snprintf(text + at, sizeof text - at, "  ·  val_accuracy %s", number_of(accuracy, accuracy->end.y).text);
    plot_page_text(p->file, LEFT, TITLE + 20, "note", text);
}

static bool has_metric(const picture *p, int metric) {
    for (int i = 0; metric != NONE && i < p->run_count; i++)
        if (p->runs[i].curves[metric].count > 0) return true;
    return false;
}

/* A column of the table of runs. */
typedef struct column {
    const char *head;
    int width;
    int metric; /* NONE: the step */
    bool best;  /* its lowest value instead of its last */
    bool always;
} column;

static cli_text value_of(const plot_run *run, const column *c) {
    if (c->metric == NONE) return cli_count(run->last_step);
    const plot_curve *curve = &run->curves[c->metric];
    return number_of(curve, c->best ? curve->lowest.y : curve->end.y);
}

/* What several have come to, as a table that is the legend too. */
static void write_table(const picture *p) {
    enum { SWATCH = 22 };
    static const column columns[] = {{"val_accuracy", 92, PLOT_VAL_ACCURACY, false, false},
                                     {"best val_loss", 92, PLOT_VAL_LOSS, true, true},
                                     {"val_loss", 76, PLOT_VAL_LOSS, false, true},
                                     {"loss", 68, PLOT_LOSS, false, true},
                                     {"step", 110, NONE, false, true}};
    double at = p->width - RIGHT, y = TITLE + 24;
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
        if (!columns[k].always && !has_metric(p, columns[k].metric)) continue;
        plot_page_text(p->file, at, y, "head end", columns[k].head);
        for (int i = 0; i < p->run_count; i++)
            plot_page_text(p->file, at, y + (i + 1) * ROW, "value", value_of(&p->runs[i], &columns[k]).text);
        at -= columns[k].width;
    }
    for (int i = 0; i < p->run_count; i++) {
        char name[320];
        y += ROW;
        fprintf(p->file, "<path class=\"swatch r%d\" d=\"M%d %.1fh14\"/>\n", i, LEFT + 2, y - 4);
        name_run(&p->runs[i], at - LEFT - SWATCH, name, sizeof name);
        plot_page_text(p->file, LEFT + SWATCH, y, "name", name);
    }
}

static void write_head(const picture *p) {
    char title[320];
    const char *names[PLOT_MOST_RUNS] = {NULL};
    for (int i = 0; i < p->run_count; i++) names[i] = p->runs[i].name;
    plot_page_begin(p->file, p->width, p->height, names, p->run_count, p->run_count);
    if (p->run_count == 1)
        name_run(p->runs, (p->width - LEFT - RIGHT) * plot_letter / 10, title, sizeof title); /* larger letters */
    else
        snprintf(title, sizeof title, "%d runs", p->run_count);
    plot_page_text(p->file, LEFT, TITLE, "title", title);
    if (p->run_count == 1)
        write_summary(p);
    else
        write_table(p);
}

/* ---- panels ---- */

/* The points of a metric: of all seeds, if there are several. */
static const plot_curve *points_of(const plot_run *run, int metric) {
    return run->seeds > 1 ? &run->spreads[metric] : &run->curves[metric];
}

/* The range of all runs; false: there is nothing to draw. */
static bool find_range(const picture *p, const panel *what, plot_scale *y) {
    const int metrics[] = {what->line, what->dots};
    bool is_found = false;
    for (int i = 0; i < p->run_count; i++)
        for (int k = 0; k < 2; k++) {
            if (metrics[k] == NONE) continue;
            const plot_curve *curve = points_of(&p->runs[i], metrics[k]);
            if (curve->count == 0) continue;
            if (!is_found || curve->lowest.y < y->low) y->low = curve->lowest.y;
            if (!is_found || curve->highest.y > y->high) y->high = curve->highest.y;
            is_found = true;
        }
    return is_found;
}

/* Room above and below, so that no curve lies on the frame. */
static void add_room(const panel *what, plot_scale *y) {
    static const double margin = 0.05, flat = 1e-6; /* of the range; a smaller range than this is none */
    const double largest = fmax(fabs(y->low), fabs(y->high));
    y->is_log = y->low > 0 && y->high > y->low * 1.5 && log10(y->high / y->low) > what->log_from;
    if (y->is_log) {
        const double room = pow(y->high / y->low, margin);
        y->low /= room;
        y->high *= room;
        return;
    }
    if (what->from_zero && y->low > 0) y->low = 0;
    if (y->high - y->low <= largest * flat) {
        const double room = largest > 0 ? largest / 10 : 1;
        y->low -= room;
        y->high += room;
        return;
    }
    const double room = (y->high - y->low) * margin;
    y->high += room;
    if (y->low < 0 || y->low > room) y->low -= room; /* 0 stays the lower end */
}

static void find_scale(const panel *what, plot_scale *y) {
    static const double above = 0.03;                     /* of the range, so that a line at 1 is seen */
    const bool is_share = what->is_share && y->high <= 1; /* a file may say anything */
    add_room(what, y);
    if (is_share && y->high > 1) y->high = 1 + above * (1 - y->low);
}

/* Whether a curve is drawn pale, with a smoothed line above it. */
static bool is_smoothed(const panel *what, const plot_curve *curve) {
    return what->smooth && plot_curve_is_smoothed(curve);
}

/* A key of the legend, whose text ends at `right`; where the next one to the left of it ends. */
static double write_key(const picture *p, double right, double y, const char *class, const char *text) {
    enum { SAMPLE = 22, GAP = 7, BETWEEN = 18 };
    const double left = right - plot_letter * (double)strlen(text) - GAP - SAMPLE;
    const bool dashed = !strcmp(class, "dashed");
    plot_page_text(p->file, left + SAMPLE + GAP, y - 9, "note", text);
    fprintf(p->file, "<path class=\"key %s\" d=\"M%.1f %.1fh%d\"/>\n", class, left, y - 13, SAMPLE);
    if (dashed) fprintf(p->file, "<path class=\"key dots\" d=\"M%.1f %.1fh0\"/>\n", left + SAMPLE / 2.0, y - 13);
    return left - BETWEEN;
}

static void write_panel_title(const picture *p, const panel *what, bool is_log, double y) {
    const bool has_lines = has_metric(p, what->line), has_dots = has_metric(p, what->dots);
    bool has_raw = false;
    double right = p->width - RIGHT;
    for (int i = 0; has_lines && i < p->run_count; i++)
        has_raw = has_raw || (p->runs[i].seeds == 1 && is_smoothed(what, &p->runs[i].curves[what->line]));
    fprintf(p->file,
            "<text x=\"%d\" y=\"%.1f\" class=\"name\">%s<tspan class=\"note\" dx=\"10\">%s%s%s</tspan></text>\n", LEFT,
            y - 9, what->title, what->note, *what->note && is_log ? ", " : "", is_log ? "log scale" : "");
    if (has_dots) right = write_key(p, right, y, "dashed", "validation");
    if (has_lines && (has_dots || has_raw))
        right = write_key(p, right, y, has_raw ? "smooth" : "line", has_dots ? "training" : "smoothed");
    if (has_raw) write_key(p, right, y, "raw", "each step");
}

static void write_grid(const picture *p, const panel *what, const plot_scale *y) {
    plot_tick ticks[PLOT_MOST_TICKS];
    const int count = plot_scale_ticks(y, what->parts, ticks);
    const double width = p->width - LEFT - RIGHT;
    for (int i = 0; i < p->tick_count; i++)
        fprintf(p->file, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/>\n", plot_scale_place(&p->x, p->ticks[i].value),
                y->to, y->from - y->to);
    for (int i = 0; i < count; i++) {
        const double at = plot_scale_place(y, ticks[i].value);
        fprintf(p->file, "<path class=\"grid\" d=\"M%d %.1fh%.1f\"/>\n", LEFT, at, width);
        plot_page_text(p->file, LEFT - 9, at + 4, "y", ticks[i].text);
    }
}

static void draw_line(const picture *p, const panel *what, const plot_run *run, const plot_scale *y,
                      const char *class) {
    const plot_curve *curve = &run->curves[what->line];
    const bool smoothed = is_smoothed(what, curve);
    if (run->seeds > 1)
        plot_spread_draw(p->file, &run->spreads[what->line], &p->x, y, class, smoothed);
    else if (smoothed)
        plot_raw_draw(p->file, curve, &p->x, y, class);
    if (smoothed)
        plot_smooth_draw(p->file, curve, &p->x, y, class);
    else
        plot_line_draw(p->file, curve, &p->x, y, class);
}

static void write_panel(const picture *p, const panel *what, double top) {
    plot_scale y = {.from = top + what->height, .to = top};
    char class[24];
    const bool is_found = find_range(p, what, &y);
    if (is_found) find_scale(what, &y);
    write_panel_title(p, what, y.is_log, top);
    if (is_found)
        write_grid(p, what, &y);
    else
        plot_page_text(p->file, (LEFT + p->width - RIGHT) / 2.0, top + what->height / 2.0 + 4, "note x",
                       "nothing to draw");
    fprintf(p->file, "<path class=\"axis\" d=\"M%d %.1fh%d\"/>\n", LEFT, y.from, p->width - LEFT - RIGHT);
    for (int i = 0; is_found && what->line != NONE && i < p->run_count; i++) {
        snprintf(class, sizeof class, "r%d", i);
        draw_line(p, what, &p->runs[i], &y, class);
    }
    for (int i = 0; is_found && what->dots != NONE && i < p->run_count; i++) { /* above all lines */
        snprintf(class, sizeof class, "r%d", i);
        if (p->runs[i].seeds > 1) plot_spread_draw(p->file, &p->runs[i].spreads[what->dots], &p->x, &y, class, false);
        plot_dots_draw(p->file, &p->runs[i].curves[what->dots], &p->x, &y, class);
    }
}

/* Whether a panel is part of this picture. */
static bool is_shown(const picture *p, const panel *what) {
    return what->always || has_metric(p, what->line) || has_metric(p, what->dots);
}

/* ---- steps ---- */

static void find_steps(picture *p) {
    enum { SPACE = 44 }; /* pixels between two labels, at least */
    int64_t first = p->runs[0].first_step, last = p->runs[0].last_step;
    for (int i = 1; i < p->run_count; i++) {
        if (p->runs[i].first_step < first) first = p->runs[i].first_step;
        if (p->runs[i].last_step > last) last = p->runs[i].last_step;
    }
    if (first <= last / 3) first = 0; /* most runs are shown from their beginning */
    if (first == last) {
        first = first > 0 ? first - 1 : 0;
        last++;
    }
    const double label = plot_letter * (double)strlen(cli_count(last).text) + SPACE;
    const int parts = (int)((p->width - LEFT - RIGHT) / label);
    p->x = (plot_scale){(double)first, (double)last, LEFT, p->width - RIGHT, false};
    p->tick_count = plot_scale_whole_ticks(&p->x, parts > 0 ? parts : 1, p->ticks);
}

/* What bands mean; NULL: there are none. */
static const char *explain_bands(const picture *p) {
    bool is_dense = false;
    for (int i = 0; i < p->run_count; i++) {
        if (p->runs[i].seeds > 1) return "line: mean of seeds, band: lowest to highest";
        for (int k = 0; k < PANELS; k++)
            is_dense =
                is_dense || (panels[k].line != NONE && plot_curve_is_dense(&p->runs[i].curves[panels[k].line], &p->x));
    }
    return is_dense ? "line: mean, band: lowest to highest" : NULL;
}

static void write_steps(const picture *p, double y) {
    for (int i = 0; i < p->tick_count; i++) {
        const double x = plot_scale_place(&p->x, p->ticks[i].value);
        fprintf(p->file, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>\n", x, y);
        const double half = plot_letter / 2 * (double)strlen(p->ticks[i].text);
        plot_page_text(p->file, fmin(x, p->width - half - 2), y + 18, "x", p->ticks[i].text);
    }
    plot_page_text(p->file, (LEFT + p->width - RIGHT) / 2.0, y + 37, "note x", "step");
    if (explain_bands(p)) plot_page_text(p->file, p->width - RIGHT, y + 37, "head end", explain_bands(p));
}

void plot_draw(FILE *file, const plot_run *runs, int run_count, int width) {
    picture p = {.file = file, .runs = runs, .run_count = run_count, .width = width};
    double y = TITLE + (run_count == 1 ? ROW : (run_count + 1) * ROW) + 4;
    p.height = (int)y + AXIS;
    for (int i = 0; i < PANELS; i++) p.height += is_shown(&p, &panels[i]) ? PANEL_TITLE + panels[i].height : 0;
    find_steps(&p);
    write_head(&p);
    for (int i = 0; i < PANELS; i++) {
        if (!is_shown(&p, &panels[i])) continue;
        y += PANEL_TITLE;
        write_panel(&p, &panels[i], y);
        y += panels[i].height;
    }
    write_steps(&p, y);
    plot_page_end(file);
}
