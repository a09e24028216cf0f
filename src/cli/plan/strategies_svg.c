/* Draws what ranks can divide among themselves: a bar for each strategy, all on one scale, with what it sends
 * and how long a step takes. */
#include <stdio.h>
#include <string.h>

#include "cli/main/xml.h"
#include "cli/plan/report.h"

enum {
    LEFT = 100,
    BAR_LEFT = 200,
    BAR_WIDTH = 620,
    BAR_HEIGHT = 26,
    ROW = 40,
    HEAD = 74,     /* above the first bar */
    FOOT = 56,     /* below the last */
    COLUMNS = 840, /* of peak, sent and time */
    COLUMN = 120,
    LINE = 18,
    MOST_LETTERS = 190 /* of a line */
};

static void write_text(double x, double y, const char *class, const char *text, size_t length) {
    char part[512];
    snprintf(part, sizeof part, "%.*s", (int)length, text);
    printf("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    xml_write(stdout, part);
    printf("</text>\n");
}

static void write_whole(double x, double y, const char *class, const char *text) {
    write_text(x, y, class, text, strlen(text));
}

/* In lines that are broken at spaces; the place of the next one. */
static double write_lines(double x, double y, const char *text) {
    while (*text) {
        size_t length = strlen(text);
        if (length > MOST_LETTERS) {
            for (length = MOST_LETTERS; length > 0 && text[length] != ' ';) length--;
            if (length == 0) length = strcspn(text, " ");
        }
        write_text(x, y, "begin", text, length);
        y += LINE;
        text += length;
        text += strspn(text, " ");
    }
    return y;
}

static int notes_of(const cli_strategy *s, char *text, size_t capacity) {
    const an_strategy *a = &s->strategy;
    *text = 0;
    if (!a->automatic && a->possible) return 0;
    snprintf(text, capacity, a->automatic ? "auto takes %s: %s" : "%s cannot be used: %s", a->name, a->reason);
    return (int)(strlen(text) / (MOST_LETTERS - 20)) + 1; /* lines, on the generous side */
}

int cli_strategies_height(const cli_report *report) {
    cli_strategy strategies[CLI_MOST_STRATEGIES];
    char text[2048];
    const int count = cli_strategies(report, strategies);
    int height = HEAD + count * ROW + FOOT;
    for (int i = 0; i < count; i++) height += LINE * notes_of(&strategies[i], text, sizeof text);
    return count ? height : 0;
}

static void draw_bar(const cli_strategy *s, double y, double maximum) {
    cli_kind kinds[CLI_KINDS];
    double x = BAR_LEFT;
    cli_kinds(&s->memory, kinds);
    for (int k = 0; k < CLI_KINDS; k++) {
        const double width = BAR_WIDTH * (double)kinds[k].bytes / maximum;
        if (kinds[k].bytes == 0) continue;
        printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\" class=\"value\"><title>%s %s"
               "</title></rect>\n",
               x, y, width, BAR_HEIGHT, cli_kind_fills[k], kinds[k].name, cli_bytes((double)kinds[k].bytes).text);
        x += width;
    }
}

static void draw_strategy(const cli_strategy *s, double y, double maximum) {
    const an_strategy *a = &s->strategy;
    const double base = y + BAR_HEIGHT / 2.0 + 4;
    char seconds[32];
    write_whole(BAR_LEFT - 12, base, a->automatic ? "peak-end" : "end", a->name);
    if (!a->possible) {
        write_whole(BAR_LEFT, base, "begin", "cannot be used");
        return;
    }
    draw_bar(s, y, maximum);
    snprintf(seconds, sizeof seconds, "%.3g s", a->seconds);
    write_whole(COLUMNS + COLUMN - 30, base, "end", cli_bytes((double)s->memory.peak).text);
    write_whole(COLUMNS + 2 * COLUMN - 30, base, "end", cli_bytes((double)a->sent).text);
    write_whole(COLUMNS + 3 * COLUMN - 30, base, "end", seconds);
    write_whole(COLUMNS + 3 * COLUMN - 10, base, "begin", a->automatic ? "auto" : a->fits ? "" : "no room");
}

/* The colors that occur. */
static void draw_legend(const cli_strategy *strategies, int count, double y) {
    double x = BAR_LEFT;
    for (int k = 0; k < CLI_KINDS; k++) {
        cli_kind kinds[CLI_KINDS];
        int64_t largest = 0;
        for (int i = 0; i < count; i++) {
            cli_kinds(&strategies[i].memory, kinds);
            if (kinds[k].bytes > largest) largest = kinds[k].bytes;
        }
        if (largest == 0) continue;
        printf("<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", x, y - 10,
               cli_kind_fills[k]);
        write_whole(x + 18, y, "begin", kinds[k].name);
        x += 38 + 6.2 * (double)strlen(kinds[k].name);
    }
}

void cli_draw_strategies(const cli_report *report, int top) {
    cli_strategy strategies[CLI_MOST_STRATEGIES];
    char text[2048];
    double maximum = 1, y = top + HEAD;
    const int count = cli_strategies(report, strategies);
    if (count == 0) return;
    for (int i = 0; i < count; i++)
        if ((double)strategies[i].memory.peak > maximum) maximum = (double)strategies[i].memory.peak;
    printf("<path class=\"line\" d=\"M%d %dh%d\"/>\n", LEFT, top, 1080);
    snprintf(text, sizeof text, "memory of the fullest of %d ranks, by ranks.shard", report->exchange.ranks);
    write_whole(LEFT, top + 34, "name", text);
    write_whole(COLUMNS + COLUMN - 30, top + HEAD - 10, "end", "peak");
    write_whole(COLUMNS + 2 * COLUMN - 30, top + HEAD - 10, "end", "sent in a step");
    write_whole(COLUMNS + 3 * COLUMN - 30, top + HEAD - 10, "end", "time, estimated");
    for (int i = 0; i < count; i++) {
        draw_strategy(&strategies[i], y, maximum);
        y += ROW;
    }
    draw_legend(strategies, count, y + 8);
    y += 8 + 2 * LINE;
    for (int i = 0; i < count; i++)
        if (notes_of(&strategies[i], text, sizeof text)) y = write_lines(LEFT, y, text);
}
