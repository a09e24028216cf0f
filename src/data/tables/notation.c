#include "data/tables/notation.h"

#include <string.h>

/* ---- as text ---- */

void an_notation_describe(const an_notation *notation, char *text, size_t capacity) {
    if (notation->kind == AN_NOTATION_DATE)
        an_date_describe(notation, text, capacity);
    else
        an_number_describe(notation, text, capacity);
}

bool an_notation_parse(const char *text, an_notation *notation) {
    return an_number_parse(text, notation) || an_date_parse(text, notation);
}

/* ---- cells ---- */

static void keep_example(an_notation_seen *seen, const char *text, size_t length, bool better) {
    if ((*seen->example && !better) || length >= sizeof seen->example) return;
    memcpy(seen->example, text, length);
    seen->example[length] = 0;
}

static an_notation_cell count(an_notation_seen *seen, bool fits) {
    seen->differing += !fits;
    return fits ? AN_CELL_FITS : AN_CELL_DIFFERS;
}

static an_notation_cell see_number(an_notation_seen *seen, uint8_t styles, uint8_t sign) {
    const bool first = seen->numbers++ == 0, fits = first || (sign == seen->sign && (styles & seen->styles));
    if (first) seen->sign = sign;
    if (fits) seen->styles = first ? styles : seen->styles & styles;
    return count(seen, fits && seen->dates == 0);
}

static an_notation_cell see_date(an_notation_seen *seen, uint8_t styles, bool has_time, bool has_zone) {
    const bool first = seen->dates++ == 0;
    const bool same = has_time == seen->has_time && has_zone == seen->has_zone && (styles & seen->date_styles);
    if (first) {
        seen->has_time = has_time;
        seen->has_zone = has_zone;
    }
    if (first || same) seen->date_styles = first ? styles : seen->date_styles & styles;
    return count(seen, (first || same) && seen->numbers == 0);
}

an_notation_cell an_notation_see(an_notation_seen *seen, const char *text, size_t length) {
    double plain;
    uint8_t sign = 0;
    bool has_mark = false, has_time = false, has_zone = false;
    const uint8_t styles = an_number_styles(text, length, &sign, &has_mark);
    const uint8_t dates = styles ? 0 : an_date_styles(text, length, &has_time, &has_zone);
    if (styles && (seen->reads_numbers || an_number_read(text, length, &plain) != AN_NUMBER_TEXT)) {
        keep_example(seen, text, length, has_mark && !seen->has_mark);
        seen->has_mark = seen->has_mark || has_mark;
        return see_number(seen, styles, sign);
    }
    if (styles || dates) keep_example(seen, text, length, false);
    if (dates && seen->reads_dates) return see_date(seen, dates, has_time, has_zone);
    seen->texts++;
    seen->unread += styles || dates;
    return AN_CELL_TEXT;
}

bool an_notation_reads(const char *text, size_t length) {
    uint8_t sign;
    bool ignored, also;
    return an_number_styles(text, length, &sign, &ignored) || an_date_styles(text, length, &ignored, &also);
}

/* ---- a column ---- */

bool an_notation_has_commas(const an_notation_seen *seen) {
    return seen->has_mark && seen->texts + seen->differing == 0 && !(seen->styles & AN_STYLES_POINT);
}

/* The styles with the decimal mark that the numbers have; 0: that is not clear. Plain numbers are what they always
 * were, unless the rest of the table has decimal commas. */
static uint8_t choose_mark(const an_notation_seen *seen, bool commas, an_csv_numbers numbers) {
    const uint8_t point = seen->styles & AN_STYLES_POINT, comma = seen->styles & AN_STYLES_COMMA;
    if (!point || !comma || !seen->has_mark) return point ? point : comma;
    if (numbers == AN_CSV_NUMBERS_POINT) return point;
    if (numbers == AN_CSV_NUMBERS_COMMA) return comma;
    const bool plain = seen->sign == 0 && (seen->styles & 1U << AN_STYLE_PLAIN);
    return plain && !commas ? point : 0;
}

static an_notation_verdict decide_numbers(const an_notation_seen *seen, bool commas, an_csv_numbers numbers,
                                          an_notation *notation) {
    const uint8_t styles = choose_mark(seen, commas, numbers);
    if (!styles) return AN_VERDICT_UNCLEAR_NUMBERS;
    notation->style = (uint8_t)__builtin_ctz(styles);
    notation->sign = seen->sign;
    if (notation->style != AN_STYLE_PLAIN || notation->sign) notation->kind = AN_NOTATION_NUMBER;
    return AN_VERDICT_NUMBERS;
}

static an_notation_verdict decide_dates(const an_notation_seen *seen, an_csv_dates dates, an_notation *notation) {
    if (an_date_is_unclear(seen->date_styles) && dates == AN_CSV_DATES_AUTO) return AN_VERDICT_UNCLEAR_DATES;
    *notation = (an_notation){.kind = AN_NOTATION_DATE,
                              .style = an_date_choose(seen->date_styles, dates),
                              .has_time = seen->has_time,
                              .has_zone = seen->has_zone};
    return AN_VERDICT_DATES;
}

an_notation_verdict an_notation_decide(const an_notation_seen *seen, bool commas, an_csv_numbers numbers,
                                       an_csv_dates dates, an_notation *notation) {
    const int64_t read = seen->numbers + seen->dates;
    *notation = (an_notation){.kind = AN_NOTATION_PLAIN};
    if (seen->texts > 0) return seen->texts < read ? AN_VERDICT_MIXED : AN_VERDICT_TEXT;
    if (seen->differing > 0) return AN_VERDICT_MIXED;
    if (seen->dates > 0) return decide_dates(seen, dates, notation);
    return seen->numbers > 0 ? decide_numbers(seen, commas, numbers, notation) : AN_VERDICT_NUMBERS;
}
