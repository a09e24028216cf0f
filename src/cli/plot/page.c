/* The page that curves are drawn on: its style sheet, its colors, and texts. */
#include <string.h>

#include "base/text/utf8.h"
#include "cli/main/xml.h"
#include "cli/plot/plot.h"

const double plot_letter = 6.6;

/* For eyes of all kinds, as far as that goes; a set for light grounds and one for dark. */
static const struct {
    const char *light, *dark;
} colors[PLOT_MOST_RUNS] = {{"#2f6db5", "#6fa8ec"}, {"#d1495b", "#f27d8c"}, {"#2a8c4a", "#5fc27e"},
                            {"#c98a1b", "#ecb857"}, {"#6a4fb3", "#a893ea"}, {"#1b9aaa", "#5ccfdd"},
                            {"#d667a0", "#f5a3c3"}, {"#7a6a53", "#bdaa8e"}, {"#6b8e1c", "#a8c962"},
                            {"#44546a", "#a3b4cc"}, {"#b5531d", "#e6a06a"}, {"#8f3f8a", "#d39bd0"}};

static void write_style(FILE *file, int color_count) {
    fputs("<style>text{font:12px Helvetica,Arial,sans-serif;fill:#4a4f57;font-variant-numeric:tabular-nums}"
          "text.title{font-size:18px;font-weight:bold}text.head{font-size:11px}text.name{font-weight:bold}tspan{font-"
          "weight:normal}"
          ".title,.name,.value{fill:#1d2126}.head,.note{fill:#7b828c}"
          ".x{text-anchor:middle}.y,.end,.value{text-anchor:end}"
          "path{fill:none;stroke-linecap:round;stroke-linejoin:round}"
          ".ground{fill:#fff}.grid{stroke:#e7e9ec}.axis{stroke:#aab0b8}"
          ".line{stroke-width:1.3}.raw{stroke-width:1;stroke-opacity:.35}.smooth{stroke-width:2}.swatch{stroke-width:3}"
          ".dashed{stroke-width:1.1;stroke-dasharray:4 3.5}"
          ".small{stroke-width:3.4}.halo{stroke-width:8;stroke:#fff}"
          ".dots{stroke-width:5.5}.key{stroke:#7b828c}",
          file);
    for (int i = 0; i < color_count; i++)
        fprintf(file, ".r%d{stroke:%s}.band.r%d{stroke:none;fill:%s}", i, colors[i].light, i, colors[i].light);
    fputs(
        ".band{fill-opacity:.2}"
        "@media(prefers-color-scheme:dark){text{fill:#b6bcc6}.title,.name,.value{fill:#eceef1}.head,.note{fill:#8b929d}"
        ".ground{fill:#15171b}.halo{stroke:#15171b}.grid{stroke:#2a2e35}.axis{stroke:#5a616b}.key{stroke:#8b929d}",
        file);
    for (int i = 0; i < color_count; i++)
        fprintf(file, ".r%d{stroke:%s}.band.r%d{fill:%s}", i, colors[i].dark, i, colors[i].dark);
    fputs("}</style>\n", file);
}

void plot_page_begin(FILE *file, int width, int height, const char *const *names, int name_count, int color_count) {
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n",
        width, height, width, height);
    fputs("<title>", file);
    for (int i = 0; i < name_count; i++) {
        fputs(i > 0 ? ", " : "", file);
        xml_write(file, names[i]);
    }
    fputs("</title>\n", file);
    write_style(file, color_count);
    fprintf(file, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void plot_page_end(FILE *file) {
    fputs("</svg>\n", file);
}

void plot_page_text(FILE *file, double x, double y, const char *class, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    xml_write(file, text);
    fputs("</text>\n", file);
}

static size_t letter_bytes(const char *at) {
    const size_t length = an_utf8_length_in_text(at);
    return length ? length : 1;
}

void plot_page_shorten(const char *text, double room, char *out, size_t capacity) {
    const int maximum = (int)(room / plot_letter);
    int count = 0;
    for (const char *at = text; *at; count++) at += letter_bytes(at);
    const char *cut = text;
    for (; count > maximum && *cut; count--) cut += letter_bytes(cut);
    while (strlen(cut) + sizeof "…" > capacity) cut += letter_bytes(cut);
    snprintf(out, capacity, "%s%s", cut > text ? "…" : "", cut);
}
