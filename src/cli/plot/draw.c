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

typedef struct panel {
    plot_metric metric;
    int dots; /* a second metric, dots on a dashed line; -1: none */
    int height;
    int parts; /* of the scale, at most */
    const char *title, *note;
    bool from_zero;
    double log_from; /* a range with more decades gets a logarithmic scale; INFINITY: never */
} panel;

static const panel panels[] = {
    {PLOT_LOSS, PLOT_VAL_LOSS, 300, 8, "loss", "mean over a step's targets", false, 2},
    {PLOT_LR, -1, 110, 5, "learning rate", "", true, INFINITY},
    {PLOT_GRAD_NORM, -1, 150, 6, "gradient norm", "before clipping", false, 0},
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

/* What the one run has come to, as a sentence. */
static void write_summary(const picture *p) {
    const plot_run *run = p->runs;
    const plot_curve *loss = &run->curves[PLOT_LOSS], *dots = &run->curves[PLOT_VAL_LOSS];
    char text[256];
    int at = snprintf(text, sizeof text, "step %s", cli_count(run->last_step).text);
    if (loss->count > 0)
        at += snprintf(text + at, sizeof text - (size_t)at, "  ·  loss %s", number_of(loss, loss->end.y).text);
    if (dots->count > 0)
        snprintf(text + at, sizeof text - (size_t)at, "  ·  val_loss %s  ·  best val_loss %s at step %s",
                 number_of(dots, dots->end.y).text, number_of(dots, dots->lowest.y).text,
                 cli_count((int64_t)dots->lowest.x).text);
    plot_page_text(p->file, LEFT, TITLE + 20, "note", text);
}

/* What several have come to, as a table that is the legend too. */
static void write_table(const picture *p) {
    enum { COLUMNS = 4, SWATCH = 22 };
    static const char *const heads[COLUMNS] = {"best val_loss", "val_loss", "loss", "step"};
    static const int widths[COLUMNS] = {92, 76, 68, 110};
    const double right = p->width - RIGHT;
    double at = right, y = TITLE + 24;
    char name[256];
    for (int i = 0; i < COLUMNS; i++) {
        plot_page_text(p->file, at, y, "head end", heads[i]);
        at -= widths[i];
    }
    for (int i = 0; i < p->run_count; i++) {
        const plot_run *run = &p->runs[i];
        const plot_curve *loss = &run->curves[PLOT_LOSS], *dots = &run->curves[PLOT_VAL_LOSS];
        const cli_text values[COLUMNS] = {number_of(dots, dots->lowest.y), number_of(dots, dots->end.y),
                                          number_of(loss, loss->end.y), cli_count(run->last_step)};
        y += ROW;
        fprintf(p->file, "<path class=\"swatch r%d\" d=\"M%d %.1fh14\"/>\n", i, LEFT + 2, y - 4);
        plot_page_shorten(run->name, at - LEFT - SWATCH, name, sizeof name);
        plot_page_text(p->file, LEFT + SWATCH, y, "name", name);
        double column = right;
        for (int k = 0; k < COLUMNS; k++) {
            plot_page_text(p->file, column, y, "value", values[k].text);
            column -= widths[k];
        }
    }
}

static void write_head(const picture *p) {
    char title[256];
    const char *names[PLOT_MOST_RUNS] = {NULL};
    for (int i = 0; i < p->run_count; i++) names[i] = p->runs[i].name;
    plot_page_begin(p->file, p->width, p->height, names, p->run_count, p->run_count);
    if (p->run_count == 1)
        plot_page_shorten(p->runs[0].name, (p->width - LEFT - RIGHT) * plot_letter / 10, title,
                          sizeof title); /* larger plot_letters */
    else
        snprintf(title, sizeof title, "%d runs", p->run_count);
    plot_page_text(p->file, LEFT, TITLE, "title", title);
    if (p->run_count == 1)
        write_summary(p);
    else
        write_table(p);
}

/* ---- panels ---- */

/* The range of all runs; false: there is nothing to draw. */
static bool find_range(const picture *p, const panel *what, plot_scale *y) {
    bool is_found = false;
    for (int i = 0; i < p->run_count; i++)
        for (int k = 0; k < 2; k++) {
            if (k == 1 && what->dots < 0) continue;
            const plot_curve *curve = &p->runs[i].curves[k == 0 ? (int)what->metric : what->dots];
            if (curve->count == 0) continue;
            if (!is_found || curve->lowest.y < y->low) y->low = curve->lowest.y;
            if (!is_found || curve->highest.y > y->high) y->high = curve->highest.y;
            is_found = true;
        }
    return is_found;
}

/* Room above and below, so that no curve lies on the frame. */
static void find_scale(const panel *what, plot_scale *y) {
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

static void write_panel_title(const picture *p, const panel *what, bool is_log, double y) {
    const double right = p->width - RIGHT;
    bool has_dots = false;
    for (int i = 0; i < p->run_count; i++)
        has_dots = has_dots || (what->dots >= 0 && p->runs[i].curves[what->dots].count > 0);
    fprintf(p->file,
            "<text x=\"%d\" y=\"%.1f\" class=\"name\">%s<tspan class=\"note\" dx=\"10\">%s%s%s</tspan></text>\n", LEFT,
            y - 9, what->title, what->note, *what->note && is_log ? ", " : "", is_log ? "log scale" : "");
    if (!has_dots) return;
    fprintf(p->file, "<path class=\"key line\" d=\"M%.1f %.1fh22\"/>\n", right - 162, y - 13);
    plot_page_text(p->file, right - 135, y - 9, "note", "training");
    fprintf(p->file,
            "<path class=\"key dashed\" d=\"M%.1f %.1fh24\"/>\n<path class=\"key dots\" d=\"M%.1f %.1fh0\"/>\n",
            right - 82, y - 13, right - 70, y - 13);
    plot_page_text(p->file, right, y - 9, "note end", "validation");
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
    for (int i = 0; is_found && i < p->run_count; i++) {
        snprintf(class, sizeof class, "r%d", i);
        plot_line_draw(p->file, &p->runs[i].curves[what->metric], &p->x, &y, class);
    }
    for (int i = 0; is_found && what->dots >= 0 && i < p->run_count; i++) { /* above all lines */
        snprintf(class, sizeof class, "r%d", i);
        plot_dots_draw(p->file, &p->runs[i].curves[what->dots], &p->x, &y, class);
    }
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

static bool has_band(const picture *p) {
    for (int i = 0; i < p->run_count; i++)
        for (int k = 0; k < PANELS; k++)
            if (plot_curve_is_dense(&p->runs[i].curves[panels[k].metric], &p->x)) return true;
    return false;
}

static void write_steps(const picture *p, double y) {
    for (int i = 0; i < p->tick_count; i++) {
        const double x = plot_scale_place(&p->x, p->ticks[i].value);
        fprintf(p->file, "<path class=\"axis\" d=\"M%.1f %.1fv4\"/>\n", x, y);
        const double half = plot_letter / 2 * (double)strlen(p->ticks[i].text);
        plot_page_text(p->file, fmin(x, p->width - half - 2), y + 18, "x", p->ticks[i].text);
    }
    plot_page_text(p->file, (LEFT + p->width - RIGHT) / 2.0, y + 37, "note x", "step");
    if (has_band(p))
        plot_page_text(p->file, p->width - RIGHT, y + 37, "head end", "line: mean, band: lowest to highest");
}

void plot_draw(FILE *file, const plot_run *runs, int run_count, int width) {
    picture p = {.file = file, .runs = runs, .run_count = run_count, .width = width};
    double y = TITLE + (run_count == 1 ? ROW : (run_count + 1) * ROW) + 4;
    p.height = (int)y + AXIS;
    for (int i = 0; i < PANELS; i++) p.height += PANEL_TITLE + panels[i].height;
    find_steps(&p);
    write_head(&p);
    for (int i = 0; i < PANELS; i++) {
        y += PANEL_TITLE;
        write_panel(&p, &panels[i], y);
        y += panels[i].height;
    }
    write_steps(&p, y);
    plot_page_end(file);
}
