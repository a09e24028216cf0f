/* Draws the memory of a step: the arena, place by time, and next to it everything else that a run holds.
 *
 * A value is a rectangle from the instruction that makes it to its last use, as high as its bytes. Values never
 * overlap, so there are few large ones. The many values smaller than a pixel or two are painted into a grid, and only
 * the runs of the grid are written. So the picture of a graph of any size stays small.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "cli/plan/report.h"

enum {
    WIDTH = 1280,
    HEIGHT = 720,
    LEFT = 100, /* of the arena's panel */
    TOP = 112,
    PANEL_WIDTH = 870,
    PANEL_HEIGHT = 530,
    BAR_LEFT = 1040, /* of the bar on the right */
    BAR_WIDTH = 64,
};

typedef enum color { FORWARD, BACKWARD, SCRATCH, COLORS } color;
static const struct {
    const char *fill, *name;
} colors[COLORS] = {
    [FORWARD] = {"#4477aa", "kept from forward"},
    [BACKWARD] = {"#cc6677", "created in backward"},
    [SCRATCH] = {"#ddaa33", "scratch of a kernel"},
};

typedef struct picture {
    const cli_report *report;
    int64_t count, steps, bytes; /* lives; instructions; of the arena */
    an_plan_life *lives;
    int64_t turn;        /* first instruction of the backward half; -1: there is none */
    int64_t peak_at;     /* instruction with most bytes alive */
    int64_t peak_bytes;  /* then */
    unsigned char *grid; /* by row and column: color plus 1, 0 for none */
} picture;

static color color_of(const an_plan_life *life) {
    return life->scratch ? SCRATCH : life->backward ? BACKWARD : FORWARD;
}

/* ---- text ---- */

static void write_escaped(const char *text) {
    while (*text) {
        const size_t length = an_utf8_length_in_text(text);
        switch (*text) {
        case '<': fputs("&lt;", stdout); break;
        case '>': fputs("&gt;", stdout); break;
        case '&': fputs("&amp;", stdout); break;
        case '"': fputs("&quot;", stdout); break;
        default:
            if (length == 0 || (unsigned char)*text < ' ') /* XML has no control characters, however they are written */
                fputs(AN_UTF8_REPLACEMENT, stdout);
            else
                fwrite(text, 1, length, stdout);
        }
        text += length ? length : 1;
    }
}

/* Text in one of the classes of the style sheet. */
static void write_text(double x, double y, const char *class, const char *text) {
    printf("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    write_escaped(text);
    printf("</text>\n");
}

/* ---- places ---- */

static double x_of(const picture *p, int64_t step) {
    return LEFT + (double)step / (double)p->steps * PANEL_WIDTH;
}

static double y_of(const picture *p, int64_t bytes) {
    return TOP + PANEL_HEIGHT * (1 - (double)bytes / (double)p->bytes);
}

/* ---- the arena ---- */

/* Bytes alive at each instruction, for the peak. */
static an_status find_peak(picture *p) {
    int64_t *change = calloc((size_t)p->steps + 1, sizeof *change), alive = 0;
    if (!change) return AN_ERR_MEMORY;
    for (int64_t i = 0; i < p->count; i++) {
        change[p->lives[i].begin] += p->lives[i].bytes;
        change[p->lives[i].end + 1] -= p->lives[i].bytes;
    }
    for (int64_t step = 0; step < p->steps; step++) {
        alive += change[step];
        if (alive <= p->peak_bytes) continue;
        p->peak_bytes = alive;
        p->peak_at = step;
    }
    free(change);
    return AN_OK;
}

static int by_place(const void *a, const void *b) {
    const an_plan_life *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* A value that another one is written over, in place, ends where that one begins: rectangles never overlap. */
static void trim(picture *p) {
    qsort(p->lives, (size_t)p->count, sizeof *p->lives, by_place);
    for (int64_t i = 0; i + 1 < p->count; i++)
        if (p->lives[i].offset == p->lives[i + 1].offset && p->lives[i].end == p->lives[i + 1].begin) p->lives[i].end--;
}

static an_status read_lives(picture *p, an_form form) {
    const cli_report *r = p->report;
    p->count = an_plan_life_count(r->plan, form);
    p->turn = -1;
    p->bytes = p->steps = 1;
    p->lives = calloc((size_t)p->count + 1, sizeof *p->lives);
    if (!p->lives) return AN_ERR_MEMORY;
    for (int64_t i = 0; i < p->count; i++) {
        an_plan_life *life = &p->lives[i];
        an_plan_life_init(life, sizeof *life);
        an_status status = an_plan_life_get(r->plan, form, i, life);
        if (status != AN_OK) return status;
        if (life->end >= p->steps) p->steps = life->end + 1;
        if (life->offset + life->bytes > p->bytes) p->bytes = life->offset + life->bytes;
        if (life->backward && (p->turn < 0 || life->begin < p->turn)) p->turn = life->begin;
    }
    trim(p);
    return find_peak(p);
}

/* Large enough to be drawn by itself, with an edge that sets it off from its neighbours. */
static bool is_large(double width, double height) {
    return width >= 2 && height >= 2;
}

static void paint(picture *p, const an_plan_life *life) {
    const double left = x_of(p, life->begin) - LEFT, right = x_of(p, life->end + 1) - LEFT;
    const double top = y_of(p, life->offset + life->bytes) - TOP, bottom = y_of(p, life->offset) - TOP;
    for (int column = (int)left; column < PANEL_WIDTH && (column < right || column == (int)left); column++)
        for (int row = (int)top; row < PANEL_HEIGHT && (row < bottom || row == (int)top); row++)
            p->grid[row * PANEL_WIDTH + column] = (unsigned char)(1 + color_of(life));
}

/* The runs of one color in the grid, column by column, as one path. */
static void write_grid(const picture *p, color c) {
    for (int column = 0; column < PANEL_WIDTH; column++) {
        int row = 0;
        while (row < PANEL_HEIGHT) {
            int end = row;
            while (end < PANEL_HEIGHT && p->grid[end * PANEL_WIDTH + column] == 1 + c) end++;
            if (end > row) printf("M%d %dv%dh1v%dz", LEFT + column, TOP + row, end - row, row - end);
            row = end + 1;
        }
    }
}

static void write_lives(picture *p) {
    for (int64_t i = 0; i < p->count; i++) {
        const an_plan_life *l = &p->lives[i];
        if (!is_large(x_of(p, l->end + 1) - x_of(p, l->begin), y_of(p, l->offset) - y_of(p, l->offset + l->bytes)))
            paint(p, l);
    }
    for (int c = 0; c < COLORS; c++) {
        printf("<path fill=\"%s\" d=\"", colors[c].fill);
        write_grid(p, (color)c);
        printf("\"/>\n<path fill=\"%s\" class=\"value\" d=\"", colors[c].fill);
        for (int64_t i = 0; i < p->count; i++) {
            const an_plan_life *l = &p->lives[i];
            const double left = x_of(p, l->begin), width = x_of(p, l->end + 1) - left;
            const double top = y_of(p, l->offset + l->bytes), height = y_of(p, l->offset) - top;
            if (color_of(l) != (color)c || !is_large(width, height)) continue;
            printf("M%.1f %.1fh%.1fv%.1fh%.1fz", left, top, width, height, -width);
        }
        printf("\"/>\n");
    }
}

/* Names the values that have room for it. */
static void write_names(const picture *p) {
    const double letter = 5.6, line = 13; /* of the font, in pixels; on the generous side */
    for (int64_t i = 0; i < p->count; i++) {
        const an_plan_life *l = &p->lives[i];
        char name[128];
        const double left = x_of(p, l->begin), width = x_of(p, l->end + 1) - left;
        const double top = y_of(p, l->offset + l->bytes), height = y_of(p, l->offset) - top;
        snprintf(name, sizeof name, "%s%s%s", l->path, *l->path ? " · " : "", l->op);
        if (height < line || width < 8 + letter * (double)strlen(name)) {
            snprintf(name, sizeof name, "%s", l->op);
            if (height < line || width < 8 + letter * (double)strlen(name)) continue;
        }
        write_text(left + width / 2, top + height / 2 + 3.5, "value-name", name);
    }
}

/* ---- axes ---- */

/* A step of 1, 2 or 5 times a power of ten that cuts `range` into about `parts`. */
static double nice_step(double range, int parts) {
    double step = 1;
    while (step * 10 <= range / parts) step *= 10;
    while (step > range / parts && step > 1e-6) step /= 10;
    if (step * 5 <= range / parts) return step * 5;
    return step * 2 <= range / parts ? step * 2 : step;
}

static void write_axes(const picture *p) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    enum { BYTE_PARTS = 6, STEP_PARTS = 8, UNITS = sizeof units / sizeof units[0] };
    double unit = 1, steps = nice_step((double)p->steps, STEP_PARTS);
    int name = 0;
    char text[32];
    for (; name + 1 < UNITS && (double)p->bytes >= 1024 * unit; name++) unit *= 1024;
    const double bytes = nice_step((double)p->bytes / unit, BYTE_PARTS);
    for (int i = 0; i * bytes * unit <= (double)p->bytes; i++) {
        const double y = y_of(p, (int64_t)(i * bytes * unit));
        printf("<path class=\"line\" d=\"M%d %.1fh%d\"/>\n", LEFT, y, PANEL_WIDTH);
        snprintf(text, sizeof text, "%.4g %s", i * bytes, units[name]);
        write_text(LEFT - 8, y + 4, "y", text);
    }
    if (steps < 1) steps = 1;
    for (int i = 0; i * steps <= (double)p->steps; i++) {
        const int64_t at = (int64_t)(i * steps);
        printf("<path class=\"axis\" d=\"M%.1f %dv5\"/>\n", x_of(p, at), TOP + PANEL_HEIGHT);
        write_text(x_of(p, at), TOP + PANEL_HEIGHT + 18, "x", cli_count(at).text);
    }
    printf("<path class=\"axis\" d=\"M%d %dv%dh%d\"/>\n", LEFT, TOP, PANEL_HEIGHT, PANEL_WIDTH);
    write_text(LEFT + PANEL_WIDTH, TOP + PANEL_HEIGHT + 38, "end", "instruction");
    printf("<text transform=\"translate(24 %d) rotate(-90)\" class=\"x\">place in the arena</text>\n",
           TOP + PANEL_HEIGHT / 2);
}

/* Where forward ends, and the moment when most is alive. */
static void write_marks(const picture *p) {
    char text[96];
    if (p->turn > 0) {
        const double x = x_of(p, p->turn);
        printf("<path class=\"turn\" d=\"M%.1f %dv%d\"/>\n", x, TOP, PANEL_HEIGHT);
        write_text(x - 6, TOP + PANEL_HEIGHT + 38, "end", "← forward");
        write_text(x + 6, TOP + PANEL_HEIGHT + 38, "begin", "backward →");
    }
    if (p->peak_bytes == 0) return;
    const double x = x_of(p, p->peak_at) + PANEL_WIDTH / 2.0 / (double)p->steps;
    snprintf(text, sizeof text, "most alive: %s", cli_bytes((double)p->peak_bytes).text);
    printf("<path class=\"peak\" d=\"M%.1f %dv%d\"/>\n", x, TOP - 8, PANEL_HEIGHT + 8);
    printf("<path fill=\"#222222\" d=\"M%.1f %dl-4 -7h8z\"/>\n", x, TOP - 1);
    const bool is_right = x > LEFT + PANEL_WIDTH * 0.75;
    write_text(is_right ? x - 7 : x + 7, TOP - 5, is_right ? "peak-end" : "peak-begin", text);
}

static void write_legend(const picture *p) {
    double x = LEFT;
    for (int c = 0; c < COLORS; c++) {
        const char *name = c == FORWARD && p->turn < 0 ? "activation" : colors[c].name;
        bool occurs = false;
        for (int64_t i = 0; i < p->count && !occurs; i++) occurs = color_of(&p->lives[i]) == (color)c;
        if (!occurs) continue;
        printf("<rect x=\"%.1f\" y=\"68\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", x, colors[c].fill);
        write_text(x + 18, 78, "begin", name);
        x += 38 + 5.8 * (double)strlen(name);
    }
}

/* ---- the whole ---- */

/* Everything that a run holds, as one bar. Labels stand beside their parts, but never closer than two lines. */
static void write_bar(const picture *p) {
    enum { LABEL = 34 }; /* pixels from one label to the next, at least */
    cli_kind kinds[CLI_KINDS];
    double middle[CLI_KINDS], label[CLI_KINDS], y = TOP + PANEL_HEIGHT, room = TOP + LABEL / 2.0;
    const double peak = p->report->memory.peak > 0 ? (double)p->report->memory.peak : 1;
    cli_kinds(&p->report->memory, kinds);
    for (int i = 0; i < CLI_KINDS; i++) {
        const double height = PANEL_HEIGHT * (double)kinds[i].bytes / peak;
        if (kinds[i].bytes == 0) continue;
        y -= height;
        middle[i] = label[i] = y + height / 2;
        printf("<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"%s\" class=\"value\"/>\n", BAR_LEFT, y,
               BAR_WIDTH, height, cli_kind_fills[i]);
    }
    for (int i = CLI_KINDS - 1; i >= 0; i--) { /* from the top: small parts are there */
        if (kinds[i].bytes == 0) continue;
        if (label[i] < room) label[i] = room;
        room = label[i] + LABEL;
    }
    room = TOP + PANEL_HEIGHT;
    for (int i = 0; i < CLI_KINDS; i++) {
        if (kinds[i].bytes == 0) continue;
        if (label[i] > room) label[i] = room;
        room = label[i] - LABEL;
        printf("<path class=\"line\" d=\"M%d %.1fL%d %.1f\"/>\n", BAR_LEFT + BAR_WIDTH + 2, middle[i],
               BAR_LEFT + BAR_WIDTH + 18, label[i]);
        write_text(BAR_LEFT + BAR_WIDTH + 24, label[i] - 3, "name", kinds[i].name);
        write_text(BAR_LEFT + BAR_WIDTH + 24, label[i] + 11, "begin", cli_bytes((double)kinds[i].bytes).text);
    }
    write_text(BAR_LEFT, 78, "name", "all memory");
    write_text(BAR_LEFT, TOP - 8, "begin", cli_bytes(peak).text);
}

static void write_head(const picture *p) {
    char text[512], sizes[256];
    const int height = HEIGHT + cli_strategies_height(p->report);
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", WIDTH,
           height, WIDTH, height);
    printf("<style>text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#444}"
           ".title{font-size:19px;font-weight:bold;fill:#222}.name{font-weight:bold;fill:#222}"
           ".x{text-anchor:middle}.y,.end,.peak-end{text-anchor:end}.peak-begin,.peak-end{font-weight:bold;fill:#222}"
           ".value{stroke:#fff;stroke-width:.5}.value-name{font-size:10px;fill:#fff;text-anchor:middle}"
           "path.line{stroke:#ccc;fill:none}path.axis{stroke:#444;fill:none}"
           "path.turn{stroke:#444;fill:none;stroke-dasharray:4 4}path.peak{stroke:#222;stroke-width:1.2;fill:none}"
           "</style>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
           WIDTH, height);
    const char *slash = strrchr(p->report->model, '/');
    cli_describe_sizes(p->report, sizes, sizeof sizes);
    snprintf(text, sizeof text, "%.160s: memory of a %s step", slash ? slash + 1 : p->report->model,
             p->report->program);
    write_text(LEFT, 34, "title", text);
    snprintf(text, sizeof text, "%s%speak %s (%s bytes)", sizes, *sizes ? "; " : "",
             cli_bytes((double)p->report->memory.peak).text, cli_count(p->report->memory.peak).text);
    write_text(LEFT, 54, "begin", text);
}

static void write_picture(picture *p) {
    write_head(p);
    write_axes(p);
    write_lives(p);
    write_marks(p);
    write_names(p);
    write_legend(p);
    write_bar(p);
    cli_draw_strategies(p->report, HEIGHT);
    printf("</svg>\n");
}

an_status cli_write_svg(const cli_report *report) {
    picture first = {.report = report}, next = {.report = report}; /* micro-batches of a step */
    unsigned char *grid = calloc(PANEL_HEIGHT, PANEL_WIDTH);
    an_status status = grid ? read_lives(&first, report->form) : AN_ERR_MEMORY;
    if (status == AN_OK && report->form == AN_FORM_TRAIN_FIRST) status = read_lives(&next, AN_FORM_TRAIN_NEXT);
    if (status == AN_OK) {
        picture *larger = next.bytes > first.bytes ? &next : &first;
        larger->grid = grid;
        write_picture(larger);
    }
    free(first.lives);
    free(next.lives);
    free(grid);
    return status;
}
