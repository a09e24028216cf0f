/* The picture of a range test: the loss over the learning rate, raw and smoothed, with the proposal and the config's
 * rate. */
#include <math.h>
#include <string.h>

#include "cli/find_lr/test.h"
#include "cli/plot/plot.h"

enum { WIDTH = 880, HEIGHT = 480, LEFT = 68, RIGHT = 28, TOP = 112, BOTTOM = 60, X_PARTS = 10, Y_PARTS = 8 };

static void include(plot_scale *y, double loss) {
    if (loss < y->low) y->low = loss;
    if (loss > y->high) y->high = loss;
}

/* The range of losses that is shown. The rise at the end has no bounds, and would leave the rest a flat line. */
static void find_losses(const find_lr_curve *c, plot_scale *y) {
    static const double margin = 0.08; /* of the range */
    y->low = y->high = c->points[0].smoothed;
    for (int i = 0; i <= c->lowest; i++) {
        include(y, c->points[i].smoothed);
        include(y, c->points[i].loss);
    }
    const double range = y->high - y->low, room = range > 0 ? range * margin : fmax(fabs(y->high), 1) * margin;
    const bool stays_positive = y->low >= 0;
    y->low -= room;
    y->high += room * 2;
    if (stays_positive && y->low < 0) y->low = 0;
}

static void draw_curve(FILE *file, const find_lr_curve *c, const plot_scale *x, const plot_scale *y, bool smoothed) {
    fprintf(file, "<path class=\"%s\" clip-path=\"url(#frame)\" d=\"", smoothed ? "smooth r0" : "raw r0");
    for (int i = 0; i < c->count; i++) {
        const double loss = smoothed ? c->points[i].smoothed : c->points[i].loss;
        const double far = 4 * (y->from - y->to); /* heights beyond the frame, where nothing is seen */
        fprintf(file, "%c%.1f %.1f", i > 0 ? 'L' : 'M', plot_scale_place(x, c->points[i].rate),
                fmax(plot_scale_place(y, loss), y->to - far));
    }
    fputs("\"/>\n", file);
}

/* A rate as an upright line with its name above the frame, in a row of its own. */
static void mark_rate(FILE *file, const plot_scale *x, const plot_scale *y, double rate, int row, const char *class,
                      const char *text) {
    enum { ROW = 16 };
    const double at = plot_scale_place(x, rate), top = y->to - 6 - row * ROW;
    const double half = plot_letter * (double)strlen(text) / 2;
    fprintf(file, "<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n", class, at, top + 2, y->from);
    plot_page_text(file, fmin(fmax(at, LEFT + half), WIDTH - RIGHT - half), top - 2, row ? "x note" : "x name", text);
}

static void draw_axes(FILE *file, const plot_scale *x, const plot_scale *y) {
    plot_tick ticks[PLOT_MOST_TICKS];
    int count = plot_scale_ticks(x, X_PARTS, ticks);
    for (int i = 0; i < count; i++) {
        const double at = plot_scale_place(x, ticks[i].value);
        fprintf(file, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, y->to, y->from);
        plot_page_text(file, at, y->from + 18, "x", ticks[i].text);
    }
    count = plot_scale_ticks(y, Y_PARTS, ticks);
    for (int i = 0; i < count; i++) {
        const double at = plot_scale_place(y, ticks[i].value);
        fprintf(file, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT, at, WIDTH - RIGHT);
        plot_page_text(file, LEFT - 9, at + 4, "y", ticks[i].text);
    }
    fprintf(file, "<path class=\"axis\" d=\"M%d %.1fH%d\"/>\n", LEFT, y->from, WIDTH - RIGHT);
    plot_page_text(file, (LEFT + WIDTH - RIGHT) / 2.0, y->from + 38, "x note", "learning rate");
}

static void draw_head(FILE *file, const find_lr_test *test) {
    const find_lr_curve *c = &test->curve;
    const double right = WIDTH - RIGHT;
    char text[160], name[128];
    plot_page_begin(file, WIDTH, HEIGHT, &test->config, 1, 1);
    fputs("<style>.mark{stroke:#d1495b;stroke-width:1.3}"
          ".config{stroke:#7b828c;stroke-dasharray:3 3}</style>\n",
          file);
    fprintf(file, "<clipPath id=\"frame\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n", LEFT, TOP,
            WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    plot_page_shorten(test->config, (WIDTH - LEFT - RIGHT - 170) * 0.6, name, sizeof name); /* larger letters */
    plot_page_text(file, LEFT, 34, "title", name);
    snprintf(text, sizeof text, "learning-rate range test, %d steps, lowest smoothed loss %.4g at %.2g", c->count,
             c->points[c->lowest].smoothed, c->points[c->lowest].rate);
    plot_page_text(file, LEFT, 54, "note", text);
    fprintf(file, "<path class=\"raw r0\" d=\"M%.1f 30h22\"/>\n<path class=\"smooth r0\" d=\"M%.1f 50h22\"/>\n",
            right - 130, right - 130);
    plot_page_text(file, right - 100, 34, "note", "loss of a step");
    plot_page_text(file, right - 100, 54, "note", "smoothed");
}

void find_lr_draw(FILE *file, const find_lr_test *test) {
    const find_lr_curve *c = &test->curve;
    const plot_scale x = {test->from, test->to, LEFT, WIDTH - RIGHT, true};
    plot_scale y = {.from = HEIGHT - BOTTOM, .to = TOP};
    char text[64];
    find_losses(c, &y);
    draw_head(file, test);
    draw_axes(file, &x, &y);
    if (test->config_rate >= test->from && test->config_rate <= test->to) {
        snprintf(text, sizeof text, "optimizer.lr %.4g", test->config_rate);
        mark_rate(file, &x, &y, test->config_rate, 1, "config", text);
    }
    if (test->proposal >= 0) {
        snprintf(text, sizeof text, "proposal %.2g", c->points[test->proposal].rate);
        mark_rate(file, &x, &y, c->points[test->proposal].rate, 0, "mark", text);
    }
    draw_curve(file, c, &x, &y, false);
    draw_curve(file, c, &x, &y, true);
    plot_page_end(file);
}
