/* The picture of an evaluation: the confusion matrix as a map, and beside it, for two classes, the ROC curve. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "cli/main/xml.h"
#include "cli/predict/report.h"

enum {
    MARGIN = 28,
    TOP = 78,        /* of the matrix: title and note */
    SIDE = 640,      /* of the matrix, at most */
    CELL = 64,       /* of a matrix that needs less */
    WIDE_CELL = 130, /* … and has long names */
    COUNTED = 30,    /* cells from this size on have their counts written in them */
    LABELLED = 11,   /* rows from this size on have their names */
    GAP = 96,        /* between the matrix and the curve */
    CURVE = 320,     /* its side */
    FOOT = 60,
    MOST_LETTERS = 18, /* of a name */
};
static const double letter = 6.8; /* its width, on the generous side */

typedef struct {
    FILE *file;
    const cli_training *t;
    int64_t classes;
    double cell, left, top, side;
    bool turned; /* names of columns, as one is too long */
    double auc;
    bool has_curve;
    double width, height;
} picture;

static void write_text(const picture *p, double x, double y, const char *class, const char *text) {
    fprintf(p->file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    xml_write(p->file, text);
    fputs("</text>\n", p->file);
}

/* A name, cut where it is too long; how many letters it has. */
static int shorten(cli_text *name) {
    int letters = 0;
    char *at = name->text;
    for (; *at && letters < MOST_LETTERS; letters++) at += an_utf8_length_in_text(at) ? an_utf8_length_in_text(at) : 1;
    *at = 0;
    return letters;
}

static int64_t confusion(const picture *p, int64_t target, int64_t predicted) {
    int64_t count = 0;
    an_trainer_confusion(p->t->trainer, target, predicted, &count);
    return count;
}

static int64_t targets_of(const picture *p, int64_t target) {
    an_class_metrics m;
    an_class_metrics_init(&m, sizeof m);
    an_trainer_class_metrics(p->t->trainer, target, &m);
    return m.targets;
}

static void write_head(const picture *p) {
    fprintf(p->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n",
            p->width, p->height, p->width, p->height);
    fputs(
        "<style>text{font:12px Helvetica,Arial,sans-serif;fill:#4a4f57;font-variant-numeric:tabular-nums}"
        "text.title{font-size:18px;font-weight:bold;fill:#1d2126}text.name{font-weight:bold;fill:#1d2126}"
        "text.note{fill:#7b828c}.x{text-anchor:middle}.y{text-anchor:end}"
        "text.dark{fill:#1d2126;text-anchor:middle}text.light{fill:#fff;text-anchor:middle}"
        ".ground{fill:#fff}.cell{fill:#2f6db5}.empty{fill:#f1f3f5}.axis{stroke:#aab0b8;fill:none}.grid{stroke:#e7e9ec}"
        ".chance{stroke:#aab0b8;stroke-dasharray:4 3.5}.area{fill:#2f6db5;fill-opacity:.12}"
        ".curve{stroke:#2f6db5;stroke-width:2;fill:none;stroke-linejoin:round}</style>\n",
        p->file);
    fprintf(p->file, "<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\"/>\n", p->width, p->height);
}

/* ---- the matrix ---- A cell is as dark as its share of the row's targets. */

static void draw_cell(const picture *p, int64_t row, int64_t column, int64_t targets) {
    const double x = p->left + (double)column * p->cell, y = p->top + (double)row * p->cell;
    const double gap = p->cell > 8 ? 1 : 0;
    const int64_t count = confusion(p, row, column);
    const double part = targets > 0 ? (double)count / (double)targets : 0;
    fprintf(p->file, "<g><title>");
    xml_write(p->file, cli_class_label(p->t, row).text);
    fputs(" predicted as ", p->file);
    xml_write(p->file, cli_class_label(p->t, column).text);
    fprintf(p->file, ": %s</title>", cli_count(count).text);
    fprintf(p->file, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"empty\"/>", x, y,
            p->cell - gap, p->cell - gap);
    if (count > 0)
        fprintf(p->file,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"cell\" fill-opacity=\"%.3f\"/>", x,
                y, p->cell - gap, p->cell - gap, 0.08 + 0.92 * part);
    if (p->cell >= COUNTED)
        fprintf(p->file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>", x + p->cell / 2, y + p->cell / 2 + 4,
                part > 0.5 ? "light" : "dark", cli_count(count).text);
    fputs("</g>\n", p->file);
}

static void draw_names(const picture *p, int64_t index) {
    cli_text name = cli_class_label(p->t, index);
    const double middle = ((double)index + 0.5) * p->cell;
    shorten(&name);
    if (p->cell < LABELLED) return;
    write_text(p, p->left - 8, p->top + middle + 4, "y", name.text);
    if (!p->turned) {
        write_text(p, p->left + middle, p->top - 8, "x", name.text);
        return;
    }
    fprintf(p->file, "<text transform=\"translate(%.1f %.1f) rotate(-60)\">", p->left + middle + 4, p->top - 8);
    xml_write(p->file, name.text);
    fputs("</text>\n", p->file);
}

static void draw_matrix(const picture *p) {
    write_text(p, MARGIN, 34, "title", "Confusion matrix");
    write_text(p, MARGIN, 54, "note", "rows: targets · columns: predictions · colour: share of the row");
    for (int64_t row = 0; row < p->classes; row++) {
        const int64_t targets = targets_of(p, row);
        for (int64_t column = 0; column < p->classes; column++) draw_cell(p, row, column, targets);
        draw_names(p, row);
    }
}

/* ---- the curve ---- */

static void draw_curve(const picture *p, const an_roc_point *points, int64_t count) {
    const double left = p->left + p->side + GAP, top = p->top, bottom = top + CURVE;
    char text[64];
    write_text(p, left, 34, "title", "ROC curve");
    snprintf(text, sizeof text, "area %.4f · positive: %s", p->auc, cli_class_label(p->t, 1).text);
    write_text(p, left, 54, "note", text);
    for (int i = 0; i <= 4; i++) {
        const double at = i / 4.0, x = left + at * CURVE, y = bottom - at * CURVE;
        fprintf(p->file, "<path class=\"grid\" d=\"M%.1f %.1fV%.1fM%.1f %.1fH%.1f\"/>\n", x, top, bottom, left, y,
                left + CURVE);
        snprintf(text, sizeof text, "%.2g", at);
        write_text(p, x, bottom + 18, "x", text);
        write_text(p, left - 8, y + 4, "y", text);
    }
    fprintf(p->file, "<path class=\"chance\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", left, bottom, left + CURVE, top);
    for (int pass = 0; pass < 2; pass++) { /* the area, and the line over it */
        fprintf(p->file, "<path class=\"%s\" d=\"M%.2f %.2f", pass ? "curve" : "area", left, bottom);
        for (int64_t i = 1; i < count; i++)
            fprintf(p->file, "L%.2f %.2f", left + points[i].false_rate * CURVE, bottom - points[i].true_rate * CURVE);
        if (pass == 0) fprintf(p->file, "V%.2fZ", bottom);
        fputs("\"/>\n", p->file);
    }
    fprintf(p->file, "<rect class=\"axis\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n", left, top, CURVE,
            CURVE);
    write_text(p, left + CURVE / 2.0, bottom + 38, "x", "share of the negatives that are predicted as positive");
    fprintf(p->file,
            "<text class=\"x\" transform=\"translate(%.1f %.1f) rotate(-90)\">share of the positives that are "
            "found</text>\n",
            left - 44, top + CURVE / 2.0);
}

/* ---- the page ---- */

static void lay_out(picture *p) {
    double names = 0;
    for (int64_t i = 0; i < p->classes; i++) {
        cli_text name = cli_class_label(p->t, i);
        names = fmax(names, shorten(&name) * letter);
    }
    p->cell = fmin(fmax(CELL, fmin(names + 10, WIDE_CELL)), SIDE / (double)p->classes);
    p->side = p->cell * (double)p->classes;
    if (p->has_curve) p->side = fmax(p->side, CURVE);
    p->cell = p->side / (double)p->classes;
    p->turned = names >= p->cell;
    const bool labelled = p->cell >= LABELLED;
    p->left = MARGIN + (labelled ? names + 8 : 0);
    p->top = TOP + (!labelled ? 0 : p->turned ? names * 0.9 + 8 : 12);
    p->width = fmax(p->left + p->side + (p->has_curve ? GAP + CURVE : 0) + MARGIN + names / 2, 520);
    p->height = p->top + p->side + (p->has_curve ? FOOT : MARGIN);
}

int cli_report_draw(const cli_training *training, const char *path) {
    picture p = {.t = training, .classes = an_trainer_class_count(training->trainer)};
    an_roc_point *points = malloc(CLI_ROC_POINTS * sizeof *points);
    int64_t count = 0;
    if (!points) return cli_fail(training->call, "out of memory");
    p.has_curve = an_trainer_metric_value(training->trainer, "val_auc", &p.auc) &&
                  an_trainer_roc(training->trainer, CLI_ROC_POINTS, points, &count) == AN_OK;
    p.file = cli_file_open(training->call, path, "w");
    if (!p.file) {
        free(points);
        return CLI_FAILED;
    }
    lay_out(&p);
    write_head(&p);
    draw_matrix(&p);
    if (p.has_curve) draw_curve(&p, points, count);
    fputs("</svg>\n", p.file);
    free(points);
    return cli_file_close(training->call, path, p.file);
}
