/* How the numbers and dates of a column are written: 1.234,5 € or 17.05.2024.
 *
 *     data/tables/notation.c          what all cells of a column together say
 *     data/tables/notation_number.c   numbers: decimal mark, thousands separator, currency and percent signs
 *     data/tables/notation_date.c     dates, and the numbers that a model gets of them
 *
 * A notation is decided once, from all training cells, and stored in the encoding. A cell in any other
 * notation is then refused. */
#ifndef AN_DATA_TABLES_NOTATION_H
#define AN_DATA_TABLES_NOTATION_H

#include "anneal/data.h"
#include "base/text/number.h"

typedef enum an_notation_kind { AN_NOTATION_PLAIN, AN_NOTATION_NUMBER, AN_NOTATION_DATE } an_notation_kind;

typedef struct an_notation {
    uint8_t kind;            /* AN_NOTATION_PLAIN: digits and a decimal point, or text */
    uint8_t style;           /* in the table of styles of numbers, or of dates */
    uint8_t sign;            /* of numbers, in the table of signs; 0: none */
    bool has_time, has_zone; /* of dates */
} an_notation;

/* "1.234,5 €" or "DD.MM.YYYY hh:mm". Needs AN_NOTATION_BYTES. */
enum { AN_NOTATION_BYTES = 48 };
void an_notation_describe(const an_notation *notation, char *text, size_t capacity);
/* The notation that is described so; false: none is. */
bool an_notation_parse(const char *text, an_notation *notation);

/* ---- numbers ---- */

/* Styles are bits of a set. */
enum {
    AN_STYLE_PLAIN = 0,     /* its number */
    AN_STYLES_POINT = 0x0f, /* the decimal mark is a point */
    AN_STYLES_COMMA = 0xf0  /* or a comma */
};

/* The styles in which the text is a number, 0: none; its currency or percent sign; and whether it has a point or
 * comma. */
uint8_t an_number_styles(const char *text, size_t length, uint8_t *sign, bool *has_mark);
an_number_result an_notation_number(const an_notation *notation, const char *text, size_t length, double *number);
/* Of a notation of numbers. */
void an_number_describe(const an_notation *notation, char *text, size_t capacity);
bool an_number_parse(const char *text, an_notation *notation);

/* ---- dates ---- */

/* The styles in which the text is a date, 0: none, and whether it has a time and a time zone. */
uint8_t an_date_styles(const char *text, size_t length, bool *has_time, bool *has_zone);
/* Whether one of these styles has the day before the month, and another the month before the day. */
bool an_date_is_unclear(uint8_t styles);
uint8_t an_date_choose(uint8_t found, an_csv_dates order);
/* Seconds since 1970-01-01 00:00. False: it is not written so. */
bool an_notation_date(const an_notation *notation, const char *text, size_t length, int64_t *seconds);
void an_date_describe(const an_notation *notation, char *text, size_t capacity);
bool an_date_parse(const char *text, an_notation *notation);

/* The numbers of a date: days since 1970, then sine and cosine of the time of year, of the week and, if it has a time,
 * of the day. */
enum { AN_DATE_MOST_NUMBERS = 7 };
static inline int64_t an_date_width(const an_notation *notation) {
    return notation->has_time ? AN_DATE_MOST_NUMBERS : AN_DATE_MOST_NUMBERS - 2;
}
double an_date_days(int64_t seconds);
/* In the place of a date that is missing. */
extern const int64_t an_date_missing;
/* All numbers but the first, which is left alone; those of a missing date are 0. */
void an_date_numbers(const an_notation *notation, int64_t seconds, double *numbers);

/* ---- a column ---- */

typedef enum an_notation_cell {
    AN_CELL_TEXT,
    AN_CELL_FITS,   /* a number or date, written as those before it can be */
    AN_CELL_DIFFERS /* one that is written in another way */
} an_notation_cell;

/* What was seen of the cells of a column. All zeros at first, but for what is to be read. */
typedef struct an_notation_seen {
    bool reads_numbers, reads_dates; /* in notations; otherwise these are text */
    bool has_mark, has_time, has_zone;
    uint8_t styles, date_styles; /* that read all cells so far */
    uint8_t sign;
    int64_t numbers, dates, texts; /* cells */
    int64_t differing;             /* of the numbers and dates */
    int64_t unread;                /* of the texts: numbers and dates, if they were to be read */
    char example[40];              /* a number or date, one with a point or comma if there is one */
} an_notation_seen;

/* Whether it is a number or a date, in any notation. */
bool an_notation_reads(const char *text, size_t length);
an_notation_cell an_notation_see(an_notation_seen *seen, const char *text, size_t length);
/* Whether the decimal mark of its numbers is a comma without doubt. */
bool an_notation_has_commas(const an_notation_seen *seen);

typedef enum an_notation_verdict {
    AN_VERDICT_TEXT,
    AN_VERDICT_NUMBERS, /* plain or not */
    AN_VERDICT_DATES,
    AN_VERDICT_UNCLEAR_NUMBERS,
    AN_VERDICT_UNCLEAR_DATES,
    AN_VERDICT_MIXED /* most cells are numbers or dates, but some are not, or are written in another way */
} an_notation_verdict;

/* `commas`: other columns of the table have decimal commas. Options decide where the cells do not. */
an_notation_verdict an_notation_decide(const an_notation_seen *seen, bool commas, an_csv_numbers numbers,
                                       an_csv_dates dates, an_notation *notation);

#endif
